//! Ctrl-C for commands that run in virtual time: what has ended by then counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

/// Becomes true at the first Ctrl-C from here on. A second one ends the process, should the run not look in time.
pub fn stopped_by_ctrl_c() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let (flag, (listens, heard)) = (stop.clone(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let Ok(mut signals) = signal(SignalKind::interrupt()) else { return };
            let _ = listens.send(());
            if signals.recv().await.is_some() {
                flag.store(true, Ordering::Relaxed);
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
