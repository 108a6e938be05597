//! The bytes that run over an emulated network: real TCP between the hosts' namespaces, one
//! connection a flow.
//!
//! Sockets are opened on a thread that walks through the namespaces; afterwards they are ordinary
//! sockets of one small async runtime. Receivers discard in the kernel (MSG_TRUNC), which halves
//! the cost of a byte. A flow is finished when its receiver has counted its last byte. What is
//! cancelled is reset: what its senders have queued is thrown away.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::coflows::network::Service;
use crate::coflows::priority::PriorityChange;
use crate::coflows::{CoflowSpec, FlowSpec, RackBytes};
use crate::fabric::{Cut, FlowProgress, ReportedEnds, SEND_BUFFER, Shipment};
use crate::ids::{CoflowId, FlowId, RackId};
use crate::topology::Topology;
use crate::topology::addresses::host_ip;
use crate::units::Bytes;
use crate::{Clock, netns, sys};

mod early;
mod table;

use table::{OnItsWay, SharedTable};
pub use table::{OpenFlow, TrafficEvent};

/// The port that every host's receiver listens on.
pub const PORT: u16 = 5300;
/// What a sender writes at once.
const CHUNK: usize = 256 << 10;
static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// A request for a socket in a host's namespace.
struct OpenRequest {
    host: usize,
    reply: oneshot::Sender<io::Result<std::net::TcpStream>>,
}

/// The traffic of an emulated network. Dropping it breaks all connections.
pub struct Traffic {
    shared: Arc<SharedTable>,
    runtime: Option<tokio::runtime::Runtime>,
    service: Service,
    opener: mpsc::Sender<OpenRequest>,
    opener_thread: JoinHandle<()>,
    receivers: Vec<tokio::task::JoinHandle<()>>,
}

impl Traffic {
    /// Starts a receiver on every host. `hosts` are the hosts' namespaces by id, `congestion` the
    /// TCP congestion control of all senders, `events` is called (on a thread of the traffic's)
    /// with what happens.
    ///
    /// # Errors
    /// When a socket cannot be opened in a namespace, or the congestion control is not there.
    pub fn start(
        topology: Arc<Topology>,
        hosts: Arc<Vec<OwnedFd>>,
        clock: Clock,
        congestion: &str,
        events: impl FnMut(TrafficEvent) + Send + 'static,
    ) -> io::Result<Self> {
        sys::raise_open_files();
        let shared = Arc::new(SharedTable::new(
            topology,
            clock,
            RandomState::new().build_hasher().finish(),
            Box::new(events),
        ));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("traffic")
            .enable_all()
            .build()?;
        let mut receivers = vec![];
        for (k, ns) in hosts.iter().enumerate() {
            let socket = netns::within(ns.as_fd(), listener).map_err(|e| {
                io::Error::new(
                    e.kind(),
                    format!("listen on {}: {e}", shared.topology.host_name(k.into())),
                )
            })?;
            let _inside = runtime.enter();
            let listener = TcpListener::from_std(socket)?;
            receivers.push(runtime.spawn(accept(listener, shared.clone())));
        }
        let (opener, opener_thread) = start_opener(hosts, congestion)?;
        Ok(Self {
            shared,
            runtime: Some(runtime),
            service: Service::Fifo,
            opener,
            opener_thread,
            receivers,
        })
    }

    /// The same where ports serve as `service` says: under [`Service::Strict`] all packets carry
    /// their flow's priority. To be said before anything is sent.
    pub fn serve(&mut self, service: Service) {
        self.service = service;
    }

    /// Which part of the traffic has died, so that coflows would wait for ever: the thread that
    /// opens sockets, a host's receiver, or the task of a flow.
    pub fn lost(&self) -> Option<String> {
        if self.opener_thread.is_finished() {
            return Some("the thread that opens the hosts' sockets has died".into());
        }
        if let Some(k) = self.receivers.iter().position(tokio::task::JoinHandle::is_finished) {
            return Some(format!(
                "the receiver of {} has died",
                self.shared.topology.host_name(k.into())
            ));
        }
        self.shared.flow_died.load(Relaxed).then(|| "the task that carried a flow has died".into())
    }

    /// Starts all flows of a coflow now; only the coflow's end is reported. `elephant` says which
    /// rack pairs' packets are marked.
    pub fn launch(&self, coflow: &CoflowSpec, elephant: impl Fn(RackId, RackId) -> bool) {
        self.ship(Shipment { coflow, report: ReportedEnds::Coflow }, elephant);
    }

    /// Starts all flows of a shipment now. `elephant` says which rack pairs' packets are marked.
    pub fn ship(&self, what: Shipment<'_>, elephant: impl Fn(RackId, RackId) -> bool) {
        let coflow = what.coflow;
        let on_its_way = OnItsWay::new(what, &self.shared.topology);
        let sent: Vec<(FlowId, FlowSpec)> = on_its_way.to_send().collect();
        // Senders begin under the table's lock: no receiver looks before the coflow is there, and a
        // cancellation finds all of them.
        let at_once = self.shared.open(coflow.id, on_its_way, || {
            sent.into_iter().map(|f| self.spawn(coflow.id, f, &elephant)).collect()
        });
        self.shared.break_if_cut(coflow.id);
        if at_once {
            self.shared
                .say(TrafficEvent::Finished { coflow: coflow.id, at: self.shared.clock.now() });
        }
    }

    fn spawn(
        &self,
        id: CoflowId,
        (k, f): (FlowId, FlowSpec),
        elephant: &impl Fn(RackId, RackId) -> bool,
    ) -> AbortHandle {
        let (shared, opener, service) = (self.shared.clone(), self.opener.clone(), self.service);
        let t = &shared.topology;
        let racks = (t.rack_of(f.from), t.rack_of(f.to));
        let (elephant, to) = (elephant(racks.0, racks.1), host_ip(t, f.to));
        let task = self.runtime.as_ref().expect("running").spawn(async move {
            let _alarm = PanicReporter(shared.clone());
            // Cancelled before it began.
            let Some(coflow) = shared.get(id) else { return };
            let again = (racks.0 != racks.1).then_some(&shared.sent_again);
            if let Err(e) =
                send(&opener, (id, k), f, (to, elephant), (&coflow, service, shared.secret), again)
                    .await
            {
                let t = &shared.topology;
                shared.failed(
                    id,
                    format!("flow {} -> {}: {e}", t.host_name(f.from), t.host_name(f.to)),
                );
            }
        });
        task.abort_handle()
    }

    /// Bytes received of every coflow on its way, by rack pair.
    pub fn progress(&self) -> Vec<(CoflowId, Vec<RackBytes>)> {
        self.shared.progress()
    }

    /// What of each flow between racks on its way has not been handed to its socket, `most` at
    /// most: `each(racks, bytes)`. O(flows).
    pub fn unsent(&self, most: Bytes, each: impl FnMut((RackId, RackId), Bytes)) {
        if most > Bytes::ZERO {
            self.shared.unsent(most, each);
        }
    }

    /// Passes all flows that have not arrived. O(flows), a system call each.
    pub fn each_open(&self, each: impl FnMut(OpenFlow)) {
        self.shared.each_open(each);
    }

    /// Whether a coflow is on its way.
    pub fn carries(&self, coflow: CoflowId) -> bool {
        self.shared.get(coflow).is_some()
    }

    /// Breaks a coflow off that cannot arrive, and says why.
    pub fn give_up(&self, coflow: CoflowId, why: String) {
        self.shared.failed(coflow, why);
    }

    /// The flows of a coflow, in its order, while it is on its way and for some time after (of the
    /// last coflows that ended).
    pub fn flows(&self, coflow: CoflowId) -> Option<Vec<FlowProgress>> {
        self.shared.flows(coflow)
    }

    /// Gives flows of a coflow other strict priorities; of one that has not begun they hold from
    /// its beginning, and nothing happens if it is over. What they hand to their hosts' ports from
    /// now on carries them; what is in queues keeps what it had.
    ///
    /// # Errors
    /// The kernel refused to mark a connection.
    pub fn prioritise(&self, coflow: CoflowId, change: &PriorityChange) -> io::Result<()> {
        self.shared.prioritise(coflow, change, self.service)
    }

    /// Payload that flows on their way have still to send, by coflow, then flow. O(flows).
    pub fn left(&self) -> Vec<(CoflowId, Vec<(FlowId, Bytes)>)> {
        self.shared.left()
    }

    /// Payload between racks that TCP has sent again, of all connections that have ended. What the
    /// ToRs count on the wire is what was asked, and this.
    pub fn sent_again(&self) -> Bytes {
        Bytes(self.shared.sent_again.load(Relaxed))
    }

    /// These are cut off for good, and why: coflows that need them break, those on their way and
    /// all that are started from now on.
    pub fn cut_off(&self, cut: impl IntoIterator<Item = (Cut, String)>) {
        self.shared.cut_off(cut);
    }

    /// Breaks a coflow off: its connections are reset, and what is on its way is not waited for.
    pub fn cancel(&self, coflow: CoflowId) {
        self.shared.cancel(coflow);
    }
}

/// Held by the task of a flow: reports its panic, of which its coflow would never hear.
struct PanicReporter(Arc<SharedTable>);

impl Drop for PanicReporter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.flow_died.store(true, Relaxed);
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        if let Some(r) = self.runtime.take() {
            r.shutdown_background();
        }
    }
}

fn listener() -> io::Result<std::net::TcpListener> {
    let s = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM.nonblocking(), None)?;
    s.set_reuse_address(true)?;
    s.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT).into())?;
    s.listen(4096)?;
    Ok(s.into())
}

/// The thread that opens sockets: it walks from namespace to namespace, 0.4 us a step.
fn start_opener(
    hosts: Arc<Vec<OwnedFd>>,
    congestion: &str,
) -> io::Result<(mpsc::Sender<OpenRequest>, JoinHandle<()>)> {
    let (tx, rx) = mpsc::channel::<OpenRequest>();
    let congestion = congestion.to_owned();
    let first = hosts.first().ok_or_else(|| io::Error::other("a network without hosts"))?;
    netns::within(first.as_fd(), || socket(&congestion).map(drop)).map_err(|e| {
        io::Error::new(e.kind(), format!("TCP congestion control {congestion}: {e}"))
    })?;
    let thread = std::thread::Builder::new().name("opener".into()).spawn(move || {
        for r in rx {
            let opened = sys::setns(hosts[r.host].as_fd(), sys::Kind::Network)
                .and_then(|()| socket(&congestion));
            let _ = r.reply.send(opened);
        }
    })?;
    Ok((tx, thread))
}

fn socket(congestion: &str) -> io::Result<std::net::TcpStream> {
    let s = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM.nonblocking(), None)?;
    // Before connect(): a connection that was born with another algorithm keeps some of its state.
    s.set_tcp_congestion(congestion.as_bytes())?;
    // Refused beyond net.core.wmem_max, which is then what we get.
    s.set_send_buffer_size(SEND_BUFFER.0 as usize)?;
    Ok(s.into())
}

/// A sender's connection. Dropped before its receiver has everything, it is reset, so that what the
/// kernel holds for it goes nowhere.
struct SenderConnection<'a> {
    stream: Arc<TcpStream>,
    arrived: bool,
    /// Where what it sent again is counted, if its racks are different.
    again: Option<&'a AtomicU64>,
}

impl Drop for SenderConnection<'_> {
    fn drop(&mut self) {
        if let Some(n) = self.again {
            n.fetch_add(sys::tcp_sent_again(self.stream.as_fd()).unwrap_or(0), Relaxed);
        }
        if !self.arrived {
            // If the socket refuses this, it goes on sending what it holds, which is not counted.
            let _ = SockRef::from(&*self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

async fn send(
    opener: &mpsc::Sender<OpenRequest>,
    (id, k): (CoflowId, FlowId),
    flow: FlowSpec,
    (to, elephant): (Ipv4Addr, bool),
    (coflow, service, secret): (&OnItsWay, Service, u64),
    again: Option<&AtomicU64>,
) -> io::Result<()> {
    let gone = || io::Error::other("the traffic has stopped");
    let (reply, opened) = oneshot::channel();
    opener.send(OpenRequest { host: flow.from.index(), reply }).map_err(|_| gone())?;
    let socket = opened.await.map_err(|_| gone())??;
    if service == Service::Strict {
        SockRef::from(&socket).set_tos_v4(coflow.tos(k, service).into())?;
        // What has waited behind others begins again when they have ended, and not up to two
        // minutes later.
        sys::tcp_tries_on(socket.as_fd())?;
    }
    let stream =
        TcpSocket::from_std_stream(socket).connect(SocketAddrV4::new(to, PORT).into()).await?;
    let mut sending = SenderConnection { stream: Arc::new(stream), arrived: false, again };
    coflow.connected(k, elephant, service, &sending.stream)?;
    let stream = &sending.stream;
    let mut said = &header(secret, id, k, flow.bytes)[..];
    while !said.is_empty() {
        said = &said[write(stream, said).await?..];
    }
    let mut left = flow.bytes.0;
    while left > 0 {
        let n = left.min(CHUNK as u64) as usize;
        left -= write(stream, &ZEROS[..n]).await? as u64;
        coflow.unsent(k, Bytes(left));
    }
    SockRef::from(&**stream).shutdown(Shutdown::Write)?;
    // The receiver closes when it has all: until then the connection must live.
    let said = read(stream).await?;
    coflow.closes(k);
    sending.arrived = true;
    match said {
        0 => Ok(()),
        _ => Err(io::Error::other("the receiver speaks")),
    }
}

/// Waits for a byte; gives zero at the end.
async fn read(stream: &TcpStream) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(&mut [0; 1]) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

/// Hands some of these bytes to the kernel; the connection is shared with the code that changes its
/// mark.
async fn write(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

/// What a sender says first: the run's secret, coflow, flow, bytes.
const HEADER: usize = 24;

fn header(secret: u64, coflow: CoflowId, flow: FlowId, bytes: Bytes) -> [u8; HEADER] {
    let mut h = [0; HEADER];
    h[..8].copy_from_slice(&secret.to_be_bytes());
    h[8..12].copy_from_slice(&coflow.0.to_be_bytes());
    h[12..16].copy_from_slice(&flow.0.to_be_bytes());
    h[16..].copy_from_slice(&bytes.0.to_be_bytes());
    h
}

async fn accept(listener: TcpListener, shared: Arc<SharedTable>) {
    let mut refused = false;
    loop {
        match listener.accept().await {
            Ok((mut stream, _)) => {
                refused = false;
                let shared = shared.clone();
                tokio::spawn(async move {
                    let _alarm = PanicReporter(shared.clone());
                    // The connection is closed after what is said here: the sender's end of it is
                    // not the cause.
                    if let Err((coflow, e)) = receive(&mut stream, &shared).await {
                        match coflow {
                            Some(c) => shared.failed(c, format!("receiver: {e}")),
                            // A connection to our port that is not one of ours.
                            None => tracing::debug!("a connection that is not ours: {e}"),
                        }
                    }
                });
            }
            // Out of descriptors, most likely: connections that end will free some. Said once.
            Err(e) => {
                if !std::mem::replace(&mut refused, true) {
                    tracing::warn!("a receiver cannot accept connections: {e}");
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }
    }
}

async fn receive(
    stream: &mut TcpStream,
    shared: &SharedTable,
) -> Result<(), (Option<CoflowId>, io::Error)> {
    let mut h = [0; HEADER];
    stream.read_exact(&mut h).await.map_err(|e| (None, e))?;
    let word = |i: usize| u32::from_be_bytes(h[i..i + 4].try_into().expect("four bytes"));
    let long = |i: usize| u64::from_be_bytes(h[i..i + 8].try_into().expect("eight bytes"));
    let (coflow, flow, asked) = (CoflowId(word(8)), FlowId(word(12)), long(16));
    let stranger = |why: &str| Err((None, io::Error::other(why.to_owned())));
    if long(0) != shared.secret {
        return stranger("it does not know the run's secret");
    }
    let Some(on_its_way) = shared.get(coflow) else { return Ok(()) };
    let Some(received) = on_its_way.begin(flow, Bytes(asked)) else {
        return stranger(
            "it is for a flow that is not there, has another size, or is received already",
        );
    };
    drain(stream, asked, received).await.map_err(|e| (Some(coflow), e))?;
    shared.done(coflow, flow);
    Ok(())
}

/// Bytes after which a receiver is woken: waking it for every packet takes 7 % of the processor
/// time that sixteen rotating racks need.
const PATIENCE: u64 = 256 << 10;

/// Counts `asked` bytes without copying them.
async fn drain(stream: &TcpStream, asked: u64, count: &AtomicU64) -> io::Result<()> {
    // Never written to: MSG_TRUNC discards in the kernel. Only its length counts.
    let mut nowhere: Vec<u8> = vec![];
    nowhere.try_reserve_exact(4 << 20).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let (mut got, mut patience) = (0, 0);
    while got < asked {
        if patience != PATIENCE.min(asked - got) {
            patience = PATIENCE.min(asked - got);
            sys::receive_low_water(stream.as_fd(), patience as i32)?;
        }
        stream.readable().await?;
        let most = (asked - got).min(nowhere.capacity() as u64) as usize;
        let read = stream.try_io(Interest::READABLE, || {
            SockRef::from(stream)
                .recv_with_flags(&mut nowhere.spare_capacity_mut()[..most], libc::MSG_TRUNC)
        });
        match read {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                got += n as u64;
                count.store(got, Relaxed);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
