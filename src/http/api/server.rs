//! The server: listeners, connections, and their orderly end.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{broadcast::error::RecvError, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_io_timeout::TimeoutStream;

use super::listeners::Listeners;
use super::routes::{self, RequestGuard};
use super::state::{App, CoflowSender, ConnectionSlot, GivenIds, RecentEvents};
use crate::runtime::handle::Handle;
use crate::runtime::journal::Journaled;

/// What is buffered of an answer that its client does not read, and of a request's head.
const BUFFER: usize = 64 << 10;
/// How long open requests may go on once the server stops.
const GRACE: Duration = Duration::from_secs(3);

/// Where the API serves, and which clients.
#[derive(Clone, Default)]
pub struct ServerOptions {
    /// The TCP address; port 0 takes a free one. `None`: no TCP.
    pub listen: Option<SocketAddr>,
    /// A unix socket, made with mode 0600. `None`: no socket.
    pub socket: Option<PathBuf>,
    /// Requests over TCP must carry it as `Authorization: Bearer`. One of the tokens is needed to
    /// listen on an address that is not loopback.
    pub token: Option<String>,
    /// The same for requests that change nothing.
    pub read_token: Option<String>,
    /// Sends coflows that are posted with `send: true`.
    pub sender: Option<Arc<dyn CoflowSender>>,
    /// What the run is called, and when it began.
    pub run: super::state::RunIdentity,
    /// The daemon's records on disk. Events are streamed and changes are answered once they are
    /// there.
    pub journal: Option<Journaled>,
}

/// Why the API cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is open to others.
    #[error("{0} is not a loopback address: give a token, or listen on 127.0.0.1")]
    NeedsToken(SocketAddr),
    /// The token is too short to keep others out.
    #[error("the token is shorter than 16 characters")]
    WeakToken,
    /// Who may read could change.
    #[error("the token that may only read is the one that may change everything")]
    SameToken,
    /// The address cannot be had.
    #[error("cannot listen on {0}: {1}")]
    Listen(String, io::Error),
    /// Somebody answers on the socket.
    #[error("{} is in use by another daemon", .0.display())]
    SocketTaken(PathBuf),
    /// No thread, or no runtime on it.
    #[error("cannot start the server: {0}")]
    Start(#[from] io::Error),
}

/// A running server. Dropping it stops it.
pub struct Server {
    /// The TCP address that was bound.
    pub address: Option<SocketAddr>,
    /// The unix socket that was made.
    pub socket: Option<PathBuf>,
    stopping: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// How a client names this server: `http://127.0.0.1:7447`, or the socket's path if there is no
    /// TCP address.
    pub fn url(&self) -> String {
        match (self.address, &self.socket) {
            (Some(a), _) => format!("http://{a}"),
            (None, Some(path)) => path.display().to_string(),
            (None, None) => String::new(),
        }
    }

    /// Whether the server's thread still runs.
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Says that it is to end, and does not wait for it.
    pub fn begin_stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Stops accepting, lets open requests end for up to 3 s, and returns when all is closed.
    pub fn stop(mut self) {
        self.halt();
    }

    fn halt(&mut self) {
        self.begin_stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(path) = self.socket.take() {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Takes the TCP address of a server to come, so that it is known to be free before anything is
/// built. Clients that connect meanwhile wait.
///
/// # Errors
/// When the address cannot be had, or would be open to others without a token.
pub fn reserve(options: &ServerOptions) -> Result<Option<TcpListener>, ServeError> {
    let tokens = [&options.token, &options.read_token];
    if tokens.iter().copied().flatten().any(|t| t.len() < 16) {
        return Err(ServeError::WeakToken);
    }
    if options.token.is_some() && options.token == options.read_token {
        return Err(ServeError::SameToken);
    }
    match options.listen {
        Some(a) if !a.ip().is_loopback() && tokens.iter().all(|t| t.is_none()) => {
            Err(ServeError::NeedsToken(a))
        }
        Some(a) => bind_tcp(a).map(Some).map_err(|e| ServeError::Listen(a.to_string(), e)),
        None => Ok(None),
    }
}

/// Starts the server; when this returns, it accepts.
///
/// # Errors
/// When an address or the socket cannot be had, or would be open to others without a token.
pub fn serve(handle: Handle, options: ServerOptions) -> Result<Server, ServeError> {
    let tcp = reserve(&options)?;
    serve_on(handle, options, tcp)
}

/// Starts the server on an address that [`reserve`] took.
///
/// # Errors
/// When the socket cannot be had.
pub fn serve_on(
    handle: Handle,
    options: ServerOptions,
    tcp: Option<TcpListener>,
) -> Result<Server, ServeError> {
    let unix = options.socket.as_deref().map(bind_unix).transpose()?;
    let address = tcp.as_ref().map(TcpListener::local_addr).transpose()?;
    let (stop, stopping) = watch::channel(false);
    let events =
        options.journal.as_ref().and_then(Journaled::told).unwrap_or_else(|| handle.events());
    let (log, mut ledger, doors) =
        (RecentEvents::default(), GivenIds::default(), Arc::new(Listeners::default()));
    if let Some(journal) = &options.journal {
        journal.events.iter().for_each(|r| log.push(r.clone()));
        journal.keys.iter().for_each(|k| ledger.remember(k.clone()));
    }
    let app = App {
        handle,
        log: Arc::new(log),
        sender: options.sender,
        ledger: Arc::new(tokio::sync::Mutex::new(ledger)),
        journal: options.journal,
        policy_turn: Arc::default(),
        door: doors.tcp.clone(),
        doors,
        board: Default::default(),
        patience: super::CONTROLLER_TIMEOUT,
        run: Arc::new(options.run),
        stopping,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (tcp, unix) = {
        let _inside = runtime.enter();
        (
            tcp.map(tokio::net::TcpListener::from_std).transpose()?,
            unix.map(tokio::net::UnixListener::from_std).transpose()?,
        )
    };
    let guard = RequestGuard::tcp(options.token, options.read_token);
    let thread = std::thread::Builder::new().name("api".into()).spawn(move || {
        runtime.block_on(async {
            let filled = tokio::spawn(fill(app.log.clone(), events));
            while_alive(filled, run(app, tcp, unix, guard)).await;
        });
    })?;
    Ok(Server { address, socket: options.socket, stopping: stop, thread: Some(thread) })
}

/// Copies the controller's events into the ring.
async fn fill(
    log: Arc<RecentEvents>,
    mut events: tokio::sync::broadcast::Receiver<Arc<crate::control::record::Record>>,
) {
    loop {
        match events.recv().await {
            Ok(record) => log.push(record),
            // The stream's readers see the gap in the numbers.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// Does `work` to its end, or until `task` has died, without which the server would serve on with
/// half of it. A task that only ends changes nothing.
async fn while_alive(task: JoinHandle<()>, work: impl Future<Output = ()>) {
    let dies = async {
        if task.await.is_ok() {
            std::future::pending().await
        }
    };
    tokio::select! {
        () = work => {}
        () = dies => {}
    }
}

async fn run(
    app: App,
    tcp: Option<tokio::net::TcpListener>,
    unix: Option<tokio::net::UnixListener>,
    guard: RequestGuard,
) {
    let mut tasks = JoinSet::new();
    if let Some(listener) = tcp {
        let app = App { door: app.doors.tcp.clone(), ..app.clone() };
        tasks.spawn(async move {
            let router = routes::router(app.clone(), guard);
            let next = || async { listener.accept().await.map(|(s, _)| s) };
            accept(next, &router, &app).await;
        });
    }
    if let Some(listener) = unix {
        let app = App { door: app.doors.unix.clone(), ..app };
        tasks.spawn(async move {
            let router = routes::router(app.clone(), RequestGuard::open());
            let next = || async { listener.accept().await.map(|(s, _)| s) };
            accept(next, &router, &app).await;
        });
    }
    // One that has died ends the others: the daemon sees the end of this thread, and says so.
    while tasks.join_next().await.is_some_and(|ended| ended.is_ok()) {}
}

/// Accepts until the server stops, no more at once than the door of `app` admits, then waits until
/// the open ones and their requests have ended, for [`GRACE`] at most.
async fn accept<S, F>(next: impl Fn() -> F, router: &Router, app: &App)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = io::Result<S>>,
{
    let (mut stopping, slots) = (app.stopping.clone(), app.door.slots.clone());
    let (mut open, mut refused) = (JoinSet::new(), false);
    loop {
        // A stop is seen also while all slots are taken.
        let slot = tokio::select! {
            () = stop_asked(&mut stopping) => break,
            slot = slots.clone().acquire_owned() => slot.map(Arc::new),
        };
        // Never closed.
        let Ok(slot) = slot else { break };
        tokio::select! {
            () = stop_asked(&mut stopping) => break,
            stream = next() => match stream {
                Ok(stream) => {
                    refused = false;
                    let (router, stopping) = (router.clone(), app.stopping.clone());
                    open.spawn(connection(stream, (router, slot), stopping));
                }
                // Out of file descriptors, most likely: give others the time to close theirs. Said
                // once.
                Err(e) => {
                    if !std::mem::replace(&mut refused, true) {
                        tracing::warn!("cannot accept connections to the API: {e}");
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
        while open.try_join_next().is_some() {}
    }
    let _ =
        tokio::time::timeout(GRACE, slots.acquire_many(app.door.limits.connections as u32)).await;
}

/// Waits until the server stops.
async fn stop_asked(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|s| *s).await;
}

async fn connection<S>(
    stream: S,
    (router, slot): (Router, ConnectionSlot),
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = TowerToHyperService::new(router);
    let service = service_fn(|mut request: hyper::Request<_>| {
        request.extensions_mut().insert(slot.clone());
        router.call(request)
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(super::CLIENT_TIMEOUT)
        .max_headers(64)
        .max_buf_size(BUFFER);
    // A client that does not read what it asked for loses its connection.
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(super::CLIENT_TIMEOUT));
    let mut conn =
        std::pin::pin!(builder.serve_connection(TokioIo::new(Box::pin(stream)), service));
    tokio::select! {
        _ = conn.as_mut() => return,
        () = stop_asked(&mut stopping) => conn.as_mut().graceful_shutdown(),
    }
    let _ = conn.await;
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Makes the socket under a name of its own, closes it to others, and only then gives it its name.
/// A socket on which no process answers is a leftover and is replaced; anything else of that name
/// is not ours and stays.
fn bind_unix(path: &Path) -> Result<UnixListener, ServeError> {
    let fail = |e| ServeError::Listen(path.display().to_string(), e);
    if let Ok(meta) = std::fs::symlink_metadata(path) {
        if !meta.file_type().is_socket() {
            return Err(fail(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "a file of that name is not a socket",
            )));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(ServeError::SocketTaken(path.into()));
        }
    }
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(format!(".{}", std::process::id()));
    let fresh = PathBuf::from(fresh);
    let _ = std::fs::remove_file(&fresh);
    let listener = UnixListener::bind(&fresh).map_err(fail)?;
    let placed = std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| listener.set_nonblocking(true))
        .and_then(|()| std::fs::rename(&fresh, path));
    placed.map_err(|e| {
        let _ = std::fs::remove_file(&fresh);
        fail(e)
    })?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_dies_ends_the_server_and_one_that_ends_does_not() {
        let work = || std::future::pending::<()>();
        let dies = tokio::spawn(async { panic!("as it shall") });
        let patience = Duration::from_secs(60);
        tokio::time::timeout(patience, while_alive(dies, work())).await.expect("its death is seen");
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let work = async {
            tokio::task::yield_now().await;
            ended.await.expect("told");
        };
        let ends = tokio::spawn(async move { end.send(()).expect("heard") });
        tokio::time::timeout(patience, while_alive(ends, work)).await.expect("the work ends");
    }
}
