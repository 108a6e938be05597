//! Requests over a daemon's unix socket, which reaches it from every network namespace of the
//! machine.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

/// Connects to a socket, whatever address a request names.
#[derive(Debug)]
pub struct Socket(pub PathBuf);

impl Connector for Socket {
    type Out = Connected;

    fn connect(
        &self,
        details: &ConnectionDetails,
        _: Option<()>,
    ) -> Result<Option<Connected>, Error> {
        let stream = UnixStream::connect(&self.0)?;
        let buffers = LazyBuffers::new(
            details.config.input_buffer_size(),
            details.config.output_buffer_size(),
        );
        Ok(Some(Connected { stream, buffers }))
    }
}

/// A connection to a socket.
#[derive(Debug)]
pub struct Connected {
    stream: UnixStream,
    buffers: LazyBuffers,
}

/// The error of a request that took too long, where a socket says so.
fn late(e: io::Error, timeout: NextTimeout) -> Error {
    match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => e.into(),
    }
}

impl Transport for Connected {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.set_write_timeout(timeout.not_zero().map(|t| *t))?;
        self.stream.write_all(&self.buffers.output()[..amount]).map_err(|e| late(e, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.set_read_timeout(timeout.not_zero().map(|t| *t))?;
        let read = loop {
            match self.stream.read(self.buffers.input_append_buf()) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|e| late(e, timeout))?,
            }
        };
        self.buffers.input_appended(read);
        Ok(read > 0)
    }

    /// A connection is not used twice where the daemon has closed it or said what was not asked
    /// for.
    fn is_open(&mut self) -> bool {
        let waiting = |s: &mut UnixStream| {
            s.set_nonblocking(true)?;
            let read = s.read(&mut [0]);
            s.set_nonblocking(false).and(read)
        };
        waiting(&mut self.stream).is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
    }
}
