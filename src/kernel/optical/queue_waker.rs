//! Wakes the queue of a port after its gate has opened, by sending a frame behind it.
//!
//! A gate that opens does not wake its queue, which would sleep until its old timer ends; any frame
//! does. The call that sends the frame also carries waiting packets through the kernel, which takes
//! milliseconds. So a thread of its own makes this call, and the thread that opens the gates is in
//! time for the next one. A second thread for this did not carry more.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread::JoinHandle;

use pnet::datalink::DataLinkSender;

use super::prober;
use crate::netns;
use crate::network::{EmulatedNetwork, Tor};

/// EtherType of a frame that no host takes (IEEE 802 local experimental 2).
const WAKING: u16 = 0x88b6;

/// A rack, and the plane to which its port leads.
type TorPort = (usize, usize);

/// The thread that wakes queues; dropping this ends it.
pub struct QueueWaker {
    ports: Option<mpsc::Sender<TorPort>>,
    thread: Option<JoinHandle<()>>,
}

impl QueueWaker {
    /// Starts the thread, with a socket for the OCS ports of every ToR.
    ///
    /// # Errors
    /// No sockets or no thread can be had.
    pub fn start(net: &EmulatedNetwork) -> io::Result<Self> {
        let of_tor = |t: &Tor| {
            netns::within(t.node.ns.as_fd(), || {
                t.ocs.iter().map(|&l| Ok(prober::frames(l, WAKING)?.0)).collect()
            })
        };
        let mut sockets: Vec<Vec<Box<dyn DataLinkSender>>> =
            net.tors.iter().map(of_tor).collect::<io::Result<_>>()?;
        let (ports, asked) = mpsc::channel::<TorPort>();
        let thread = std::thread::Builder::new().name("nudge".into()).spawn(move || {
            for (rack, plane) in asked {
                if let Some(Err(e)) = sockets[rack][plane].send_to(&[0; 46], None) {
                    tracing::debug!("the queue of rack {rack} to plane {plane} was not woken: {e}");
                }
            }
        })?;
        Ok(Self { ports: Some(ports), thread: Some(thread) })
    }

    /// Wakes the queues of a port.
    ///
    /// # Panics
    /// The thread has died: then the thread of the caller dies too, and the run ends.
    pub fn wake(&self, port: TorPort) {
        let told = self.ports.as_ref().is_some_and(|p| p.send(port).is_ok());
        assert!(told, "the thread that wakes queues has died");
    }
}

impl Drop for QueueWaker {
    fn drop(&mut self) {
        drop(self.ports.take());
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}
