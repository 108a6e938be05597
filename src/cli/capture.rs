//! `heliostat capture`: packets of a port, host or switch of a running network, as a pcapng file.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock as _, PcapNgWriter};
use pcap_file::{DataLink, PcapError};

use super::interrupt::stopped_by_ctrl_c;
use super::log::say;
use super::{CliError, running};
use crate::kernel::capture::{CapturedFrame, FrameTap, LONGEST};
use crate::kernel::sys::ProcessHandle;
use crate::runtime::open;
use crate::units::Span;

/// Writes packets of a running network to a file for Wireshark or tcpdump: heliostat capture
/// r0-ocs0 --to file.pcapng
///
/// Both directions are written, until Ctrl-C, until --duration or --packets is reached, or until
/// the network ends. Stamps are the kernel's, in nanoseconds of the wall clock. Packets of bulk TCP
/// may be longer than the MTU, since the kernel cuts them later or has put them together.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where: a rack's port (r0-ocs1, r0-eps, r0-host2), or a node (h3-1, tor3, eps, sw2, ocs0), of
    /// which all interfaces are taken unless one is named (tor3/eps0)
    place: String,
    /// The file (pcapng); `-` is stdout, as in: heliostat capture h0-0 --to - | wireshark -k -i -
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// The network, if several are running
    #[arg(long)]
    name: Option<String>,
    /// Ends after this time, such as 10s
    #[arg(long, value_name = "TIME")]
    duration: Option<Span>,
    /// Ends after N packets
    #[arg(long, value_name = "N", value_parser = crate::cli::numbers::positive)]
    packets: Option<u64>,
}

/// Time between two looks at Ctrl-C, and the longest time for which a packet is not passed on.
const LOOK: Duration = Duration::from_millis(100);
/// The shortest time for which a packet is waited for.
const LEAST: Duration = Duration::from_millis(1);

/// Runs the subcommand.
///
/// # Errors
/// No such network, node or interface, no right to listen, or a file that cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let note = running::choose(args.name.as_deref())?;
    let (node, interface) = place(&args.place);
    let daemon = ProcessHandle::open(note.pid)
        .map_err(|e| CliError::Unreachable(format!("network {}: {e}", note.fabric)))?;
    running::enter(&note, &node)?;
    let failed = |e: io::Error| CliError::Failed(format!("listen at {}: {e}", args.place));
    let mut tap = FrameTap::open(interface.as_deref()).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => CliError::Invalid(format!("{}: {e}", args.place)),
        _ => failed(e),
    })?;
    let mut file =
        PacketFile::create(&args.to, &node, &tap).map_err(|e| unwritten(&args.to, &e))?;
    let (stop, until) = (stopped_by_ctrl_c(), args.duration.map(|d| Instant::now() + d.std()));
    let mut packets = 0;
    // When it was to end, since 1970: what came before is still written.
    let mut over = None;
    while args.packets.is_none_or(|most| packets < most) {
        let network_ended = || daemon.ends_within(Duration::ZERO).unwrap_or(false);
        if over.is_none()
            && (stop.load(Relaxed) || until.is_some_and(|t| Instant::now() >= t) || network_ended())
        {
            over = Some(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        }
        let rest = until.map_or(Duration::MAX, |t| t.saturating_duration_since(Instant::now()));
        let most = if over.is_some() { LEAST } else { LOOK };
        let frame = tap.next(rest.clamp(LEAST, most)).map_err(failed)?;
        if over.is_some_and(|over| frame.as_ref().is_none_or(|f| f.at > over)) {
            break;
        }
        packets += u64::from(frame.is_some());
        let written = match &frame {
            Some(f) => file.put(f),
            None => file.flush(),
        };
        match written {
            // A reader that has gone away has seen enough.
            Err(PcapError::IoError(e)) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            done => done.map_err(|e| unwritten(&args.to, &e))?,
        }
    }
    file.flush().map_err(|e| unwritten(&args.to, &e))?;
    let lost = match tap.lost().map_err(failed)? {
        0 => String::new(),
        n => format!("; {n} more came faster than they could be written"),
    };
    say!("{packets} packets of {}{lost}", args.place);
    Ok(())
}

fn unwritten(file: &Path, e: &PcapError) -> CliError {
    CliError::Failed(format!("{}: {e}", file.display()))
}

/// The node and its interface: `tor0` and `ocs1` for `r0-ocs1`, `h0-0` and all of it for `h0-0`.
fn place(text: &str) -> (String, Option<String>) {
    let of_rack = |rest: &str| {
        let (rack, port) = rest.split_once('-')?;
        rack.parse::<u32>().ok().map(|_| {
            (format!("tor{rack}"), Some(if port == "eps" { "eps0" } else { port }.to_owned()))
        })
    };
    let port = text.strip_prefix('r').and_then(of_rack);
    port.unwrap_or_else(|| {
        text.split_once('/')
            .map_or((text.into(), None), |(node, port)| (node.into(), Some(port.into())))
    })
}

/// A pcapng file that is being written. It is whole after each packet that was flushed.
struct PacketFile {
    writer: PcapNgWriter<BufWriter<Box<dyn Write>>>,
}

impl PacketFile {
    fn create(file: &Path, node: &str, tap: &FrameTap) -> Result<Self, PcapError> {
        let to: Box<dyn Write> = if file == Path::new("-") {
            Box::new(io::stdout())
        } else {
            Box::new(open::to_write(file, false).map_err(PcapError::IoError)?)
        };
        let mut writer = PcapNgWriter::new(BufWriter::new(to))?;
        for i in &tap.interfaces {
            const NANOSECONDS: u8 = 9;
            let name = InterfaceDescriptionOption::IfName(Cow::Owned(format!("{node}/{}", i.name)));
            let options = vec![name, InterfaceDescriptionOption::IfTsResol(NANOSECONDS)];
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: LONGEST as u32,
                options,
            };
            writer.write_block(&interface.into_block())?;
        }
        let mut it = Self { writer };
        it.flush()?;
        Ok(it)
    }

    fn put(&mut self, frame: &CapturedFrame) -> Result<(), PcapError> {
        const RECEIVED: u32 = 1;
        const SENT: u32 = 2;
        let block = EnhancedPacketBlock {
            interface_id: frame.interface as u32,
            timestamp: frame.at,
            original_len: frame.length as u32,
            data: Cow::Borrowed(&frame.bytes),
            options: vec![EnhancedPacketOption::Flags(if frame.outgoing {
                SENT
            } else {
                RECEIVED
            })],
        };
        self.writer.write_block(&block.into_block()).map(drop)
    }

    fn flush(&mut self) -> Result<(), PcapError> {
        self.writer.get_mut().flush().map_err(PcapError::IoError)
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn ports_of_racks_nodes_and_interfaces_have_names() {
        let of = |text: &str| {
            let (node, interface) = place(text);
            format!("{node} {}", interface.unwrap_or_default())
        };
        assert_eq!(
            ["r0-ocs1", "r12-eps", "r0-host2"].map(of),
            ["tor0 ocs1", "tor12 eps0", "tor0 host2"]
        );
        assert_eq!(
            ["h3-1", "tor3/eps0", "eps", "rx-1"].map(of),
            ["h3-1 ", "tor3 eps0", "eps ", "rx-1 "]
        );
    }
}
