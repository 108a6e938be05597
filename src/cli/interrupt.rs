//! Signals that ask a command to stop: what has ended by then counts.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::log;

/// For commands that run in virtual time. Becomes true at the first Ctrl-C from here on. A second
/// one ends the process, should the run not look in time.
pub fn stopped_by_ctrl_c() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let (flag, (listens, heard)) = (stop.clone(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            let Ok(mut signals) = signal(SignalKind::interrupt()) else { return };
            let _ = listens.send(());
            if signals.recv().await.is_some() {
                flag.store(true, Relaxed);
            }
            if signals.recv().await.is_some() {
                std::process::exit(130);
            }
        });
    });
    // Where Ctrl-C cannot be listened to, it ends the process.
    let _ = heard.recv();
    stop
}

/// How long a network may take to go when the process is asked to stop: whatever hangs in it, the
/// process ends then.
const GOING: Duration = Duration::from_secs(8);

/// Becomes true when the process is asked to stop. Asked a second time, or where the network's
/// `note` is still there after `GOING`, it ends at once: `abandon` removes what does not go with
/// the process, and says what it cannot remove.
pub async fn wait_for_signal(
    stop: Arc<AtomicBool>,
    (note, abandon): (PathBuf, impl FnOnce() -> Vec<String> + Send + 'static),
) {
    let named = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::hangup(),
    ];
    // What would end the process at once, and leave its network behind, ends it as the others do.
    let others = [
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGXCPU,
        libc::SIGIO,
        libc::SIGPWR,
        libc::SIGSTKFLT,
    ];
    let others =
        others.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()).map(SignalKind::from_raw);
    let kinds = named.into_iter().chain(others);
    // A file that has grown to the limit of size is an error of writing, which is said.
    let _limit = signal(SignalKind::from_raw(libc::SIGXFSZ));
    let (asked, mut heard) = tokio::sync::mpsc::channel(1);
    for kind in kinds {
        let (Ok(mut signals), asked) = (signal(kind), asked.clone()) else { continue };
        tokio::spawn(async move {
            while signals.recv().await.is_some() && asked.send(kind).await.is_ok() {}
        });
    }
    heard.recv().await;
    stop.store(true, Relaxed);
    tracing::info!("stopping; ask again to stop at once");
    // A terminal that is closed, or a service that is stopped, may send a hang-up beside another
    // signal.
    let again = async { while heard.recv().await == Some(SignalKind::hangup()) {} };
    let hangs = async {
        tokio::time::sleep(GOING).await;
        // What is still printed or written when the network is gone may take its time.
        while !note.exists() {
            tokio::time::sleep(GOING).await;
        }
    };
    tokio::select! {
        () = again => {}
        () = hangs => tracing::error!("the network has not gone in {} s: a part of it hangs", GOING.as_secs()),
    }
    let left = tokio::task::spawn_blocking(abandon).await.unwrap_or_default();
    let left = if left.is_empty() {
        "nothing of it is left".into()
    } else {
        format!("`heliostat clean` removes what is left: {}", left.join(", "))
    };
    tracing::warn!("stopped at once; {left}");
    log::flush();
    std::process::exit(1);
}

/// Tells the writers of event logs to open their files by name again.
pub type Reopen = watch::Sender<()>;

/// Passes every SIGUSR1 on. Nothing happens in a run without an event log.
pub async fn reopen_at_signal(reopen: Reopen) {
    let Ok(mut signals) = signal(SignalKind::user_defined1()) else { return };
    while signals.recv().await.is_some() {
        reopen.send_replace(());
    }
}
