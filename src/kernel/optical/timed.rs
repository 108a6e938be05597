//! The `timed` mechanism: circuits with their times in arrays that BPF programs read.
//!
//! An operation is a few stores into shared memory; no thread needs to run when a circuit changes.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use parking_lot::Mutex;

use super::admission::CircuitAdmission;
use super::held::{HeldBytes, PairCounters};
use super::slots::Slots;
use super::switcher::CircuitSwitcher;
use crate::bpf::SharedArray;
use crate::bpf::programs::{self, CircuitArrays, FROM, OUT, SLOT_CELLS, TorProgram, UNTIL};
use crate::bpf::switches;
use crate::circuits::timetable::Reservation;
use crate::coflows::elephants::Admit;
use crate::demand::DemandMatrix;
use crate::fabric::{Damage, OpResult, PortCounters};
use crate::ids::{PlaneId, RackId};
use crate::network::EmulatedNetwork;
use crate::nl::NEW;
use crate::plan::{Op, Programmed};
use crate::topology::PortQueues;
use crate::units::{Span, Time};
use crate::{Clock, Serving, queues, tc};

/// How long traffic is admitted by its port when nothing more is heard of the controller.
const LEASE: Span = Span::millis(2000);

/// The arrays, and what was written into them.
pub struct Timed {
    arrays: CircuitArrays,
    clock: Clock,
    /// By plane, then rack: index of the OCS's port.
    out: Vec<Vec<u32>>,
    /// The daemon is the only writer, so the programs see the same.
    slots: Arc<Mutex<Slots>>,
    /// Where packets wait for their circuit: the thread that opens the gates.
    gates: Option<CircuitSwitcher>,
    /// Where packets wait for their circuit: what the ToRs hold.
    held: Option<HeldBytes>,
}

impl Timed {
    /// Loads the programs and sets the queues of every port.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn install(
        net: &mut EmulatedNetwork,
        Serving { admit, port, service }: Serving,
        clock: Clock,
    ) -> io::Result<Self> {
        let topology = net.topology.clone();
        let (racks, planes) = (topology.rack_count(), topology.planes.len());
        let arrays = CircuitArrays::new(racks, planes)?;
        let guard = crate::guard(&topology, admit);
        // If no circuit returns packets, all racks share one queue, as on a real switch, unless the
        // topology says otherwise; programs count by rack.
        let bought = planes == 0 && topology.eps.queues == PortQueues::One;
        let shared = bought || queues::uplink_is_shared(&topology, service);
        for (r, tor) in net.tors.iter_mut().enumerate() {
            let tor_program = TorProgram { rack: r, ocs: &tor.ocs, admit, port, guard };
            let program = programs::load_tor(&arrays, &tor_program)?;
            let mut v = queues::tor_eps_port(tor.eps, &topology, r, service, shared);
            for (p, &link) in topology.planes.iter().zip(&tor.ocs) {
                v.extend(queues::ocs_port(
                    link,
                    (&topology, p),
                    r,
                    queues::Classes::ByProgram,
                    admit,
                ));
                let arrivals = programs::load_arrivals(&arrays, p.id.index(), r)?;
                v.push((tc::clsact(link), NEW));
                v.push((tc::bpf_ingress(link, arrivals.as_fd(), "heliostat_in"), NEW));
                tor.node.log.hold([arrivals]);
            }
            for &h in &tor.hosts {
                v.push((tc::clsact(h), NEW));
                v.push((tc::bpf_ingress(h, program.as_fd(), "heliostat_tor"), NEW));
            }
            tor.node.send(v)?;
            tor.node.log.hold([program]);
        }
        for (p, core) in net.ocs.iter_mut().enumerate() {
            let mut v = vec![];
            let loaded = (0..racks)
                .map(|r| programs::load_crossbar(&arrays, p, r))
                .collect::<io::Result<Vec<_>>>()?;
            for (program, &port) in loaded.iter().zip(&core.ports) {
                v.push((tc::clsact(port), NEW));
                v.push((tc::bpf_ingress(port, program.as_fd(), "heliostat_ocs"), NEW));
            }
            core.node.send(v)?;
            core.node.log.hold(loaded);
        }
        let out = net.ocs.iter().map(|c| c.ports.clone()).collect();
        let slots = Arc::new(Mutex::new(Slots::new(topology, guard)));
        let gates = if admit.waits() {
            Some(CircuitSwitcher::start(
                net,
                CircuitAdmission::gates(net)?,
                false,
                guard,
                slots.clone(),
                clock,
            )?)
        } else {
            None
        };
        let held = admit.waits().then(|| HeldBytes::new(racks));
        Ok(Self { arrays, clock, out, slots, gates, held })
    }

    /// Reservations that have not ended.
    pub fn programmed(&self, now: Time) -> Programmed {
        self.slots.lock().programmed(now)
    }

    /// Compares the kernel's arrays with what was written into them, and writes again what another
    /// process changed.
    pub fn keep(&mut self) -> Vec<Damage> {
        let slots = self.slots.lock();
        let mut damage = vec![];
        for (port, slot, held) in slots.held() {
            let cells = [OUT, FROM, UNTIL]
                .map(|which| self.arrays.ports.cell(port, slot * SLOT_CELLS + which).load(Relaxed));
            let right = held.map(|r| cells_of(&self.out, self.clock, &r));
            if right.map_or(cells[2] == 0, |right| right == cells) {
                continue;
            }
            write(&self.arrays, &self.out, self.clock, port, slot, held);
            let (plane, rack) =
                (PlaneId::from(port / self.arrays.racks), RackId::from(port % self.arrays.racks));
            let what = format!(
                "circuit {slot} of {rack}'s port on plane {} was changed in the programs' array, and has been written again",
                plane.0
            );
            damage.push(Damage { what, port: Some((plane, rack)), ..Damage::default() });
        }
        damage
    }

    /// Carries out operations in order.
    pub fn apply_all(&mut self, ops: &[Op]) -> Vec<OpResult> {
        let (arrays, out, clock) = (&self.arrays, &self.out, self.clock);
        let mut slots = self.slots.lock();
        let results = slots.apply_all(
            ops,
            || clock.now(),
            |port, slot, held| write(arrays, out, clock, port, slot, held),
        );
        drop(slots);
        if let Some(g) = &self.gates {
            g.wake();
        }
        results
    }

    /// The thread that opens the gates of packets that wait for their circuit.
    pub fn gates(&self) -> Option<&CircuitSwitcher> {
        self.gates.as_ref()
    }

    /// Number of racks, R.
    pub fn racks(&self) -> usize {
        self.arrays.racks
    }

    /// Has what comes from the policy's ports count as marked between these pairs of racks only,
    /// for two seconds.
    pub fn admit_by_port(&self, pairs: &BTreeSet<(RackId, RackId)>) {
        let racks = self.arrays.racks;
        let until = self.clock.to_kernel(self.clock.now() + LEASE);
        for k in 0..racks * racks {
            let pair = (RackId::from(k / racks), RackId::from(k % racks));
            self.arrays
                .by_port
                .cell(k, 0)
                .store(if pairs.contains(&pair) { until } else { 0 }, Relaxed);
        }
    }

    /// What ToRs held for circuits at the last [`Self::counters`], if packets wait for them.
    pub fn held(&self) -> Option<&DemandMatrix> {
        self.held.as_ref().map(HeldBytes::held)
    }

    /// Bytes sent, and bytes that crossed an OCS: `R x R` each. What waits in a ToR for its circuit
    /// has not been sent: else a coflow would have no demand left while its last bytes wait.
    pub fn counters(&mut self) -> (DemandMatrix, DemandMatrix) {
        let racks = self.arrays.racks;
        let read = |array: &SharedArray| {
            let cells = (0..racks * racks).map(|k| array.cell(k, 0).load(Acquire));
            DemandMatrix::from_cells(racks, cells.collect())
        };
        // Crossed first: it can never be seen ahead of sent.
        let crossed = read(&self.arrays.crossed);
        let Some(held) = &mut self.held else { return (read(&self.arrays.sent), crossed) };
        let admitted = read(&self.arrays.admitted);
        let counted = PairCounters { sent: read(&self.arrays.sent), admitted, crossed };
        let crossed = counted.crossed.clone();
        let now = self.clock.now();
        let circuits = self.slots.lock().programmed(now).timetable;
        (held.look(counted, circuits.iter().copied(), now).clone(), crossed)
    }

    /// Packets that ToRs admitted to circuits, that crossed, and that were sent back, as the kernel
    /// handles them (aggregated).
    pub fn packets(&self) -> [u64; 3] {
        let sum = |a: &SharedArray, entries: usize, k: usize| {
            (0..entries).map(|e| a.cell(e, k).load(Relaxed)).sum()
        };
        let (pairs, ports) =
            (self.arrays.racks * self.arrays.racks, self.out.len() * self.arrays.racks);
        [
            sum(&self.arrays.admitted, pairs, 1),
            sum(&self.arrays.crossed, pairs, 1),
            sum(&self.arrays.counts, ports, programs::SENT_BACK),
        ]
    }

    /// The counters of every port, by plane and rack.
    pub fn ports(&self) -> Vec<Vec<PortCounters>> {
        let racks = self.arrays.racks;
        let read = |p: usize, r: usize| {
            let c = |k| self.arrays.counts.cell(p * racks + r, k).load(Relaxed);
            PortCounters {
                crossed_packets: c(programs::CROSSED_PACKETS),
                crossed_bytes: c(programs::CROSSED_BYTES),
                late_packets: c(programs::LATE),
                misdelivered: c(programs::MISDELIVERED),
            }
        };
        (0..self.out.len()).map(|p| (0..racks).map(|r| read(p, r)).collect()).collect()
    }
}

/// Writes a slot's reservation into the kernel: `until` last; it is zero while the rest is written.
fn write(
    arrays: &CircuitArrays,
    out: &[Vec<u32>],
    clock: Clock,
    port: usize,
    slot: usize,
    held: Option<Reservation>,
) {
    let cell = |which: usize| arrays.ports.cell(port, slot * SLOT_CELLS + which);
    let Some(r) = held else { return cell(UNTIL).store(0, Release) };
    let [way, from, until] = cells_of(out, clock, &r);
    // A new end of a circuit that exists is one store, so that the circuit does not go dark
    // meanwhile.
    if cell(OUT).load(Relaxed) != way || cell(FROM).load(Relaxed) != from {
        cell(UNTIL).store(0, Release);
        cell(OUT).store(way, Release);
        cell(FROM).store(from, Release);
    }
    cell(UNTIL).store(until, Release);
}

/// The cells of a slot for a reservation: output, begin and end.
fn cells_of(out: &[Vec<u32>], clock: Clock, r: &Reservation) -> [u64; 3] {
    let way = u64::from(out[r.plane.index()][r.output.index()]) << 32 | u64::from(r.output.0);
    [way, clock.to_kernel(r.up_from), clock.to_kernel(r.until)]
}

/// Whether this process may load programs and make shared arrays.
///
/// # Errors
/// What the kernel said, or a processor that may exchange loads ([`programs`] has why).
pub fn probe() -> io::Result<()> {
    if !cfg!(target_arch = "x86_64") {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "it relies on the order of loads and stores of x86-64",
        ));
    }
    let arrays = CircuitArrays::new(2, 1)?;
    programs::load_crossbar(&arrays, 0, 0)?;
    programs::load_tor(
        &arrays,
        &TorProgram { rack: 0, ocs: &[10], admit: Admit::All, port: None, guard: Span::millis(1) },
    )?;
    let arrays = switches::PathArrays::new(2, 1, 2, 4)?;
    switches::load_first(&arrays, 0, 0, None)?;
    switches::load_next(&arrays, 1)?;
    Ok(())
}
