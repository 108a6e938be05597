//! The `timed` mechanism: circuits with their times in arrays that BPF programs read.
//!
//! An operation is a few stores into shared memory; nobody needs to be awake when a circuit changes.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::bpf::programs::{self, Arrays, FROM, OUT, SLOT_CELLS, SLOTS, TorProgram, UNTIL};
use super::network::Network;
use super::nl::NEW;
use super::{Clock, queues, tc};
use crate::circuits::timetable::{Reservation, Timetable};
use crate::control::policy::{Admit, ELEPHANT_DSCP};
use crate::demand::DemandMatrix;
use crate::fabric::{OpResult, PortCounters};
use crate::ids::{PlaneId, RackId};
use crate::plan::Op;
use crate::units::{Span, Time};

/// The arrays, and what was written into them.
pub struct Timed {
    arrays: Arrays,
    clock: Clock,
    guard: Span,
    /// By plane, then rack: index of the OCS's port.
    out: Vec<Vec<u32>>,
    /// By port: what its slots hold. The daemon is the only writer, so this is what the programs see.
    slots: Vec<[Option<Reservation>; SLOTS]>,
}

impl Timed {
    /// Loads the programs and sets the queues of every port.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn install(net: &mut Network, admit: Admit, clock: Clock) -> io::Result<Self> {
        let topology = net.topology.clone();
        let (racks, planes) = (topology.rack_count(), topology.planes.len());
        let arrays = Arrays::new(racks, planes)?;
        let guard = super::guard(&topology);
        let tos = (admit == Admit::Marked).then_some(ELEPHANT_DSCP << 2);
        for (r, tor) in net.tors.iter_mut().enumerate() {
            let program = programs::load_tor(&arrays, &TorProgram { rack: r, ocs: &tor.ocs, tos, guard })?;
            let mut v = queues::eps_port(tor.eps, topology.racks[r].uplink);
            for (p, &link) in topology.planes.iter().zip(&tor.ocs) {
                v.extend(queues::ocs_port(link, p.rate, r, racks, false));
            }
            for &h in &tor.hosts {
                v.push((tc::clsact(h), NEW));
                v.push((tc::bpf_ingress(h, program.as_fd(), "heliostat_tor"), NEW));
            }
            tor.node.send(v)?;
        }
        for (p, core) in net.ocs.iter_mut().enumerate() {
            let mut v = vec![];
            let loaded = (0..racks).map(|r| programs::load_crossbar(&arrays, p, r)).collect::<io::Result<Vec<_>>>()?;
            for (program, &port) in loaded.iter().zip(&core.ports) {
                v.push((tc::clsact(port), NEW));
                v.push((tc::bpf_ingress(port, program.as_fd(), "heliostat_ocs"), NEW));
            }
            core.node.send(v)?;
        }
        let out = net.ocs.iter().map(|c| c.ports.clone()).collect();
        Ok(Self { arrays, clock, guard, out, slots: vec![[None; SLOTS]; (planes * racks).max(1)] })
    }

    fn port(&self, plane: PlaneId, input: RackId) -> usize {
        plane.index() * self.arrays.racks + input.index()
    }

    /// What the slots hold, without what has ended.
    pub fn programmed(&self, now: Time) -> Timetable {
        self.slots.iter().flatten().flatten().filter(|r| r.until > now).copied().collect()
    }

    /// Carries out operations in order. Once one was refused, the reservations behind it are held against all that stands:
    /// a port whose circuit did not end in time must not get another.
    pub fn apply_all(&mut self, ops: &[Op]) -> Vec<OpResult> {
        let mut refused = false;
        let mut one = |op: &Op| {
            let clash = match op {
                Op::Reserve(r) if refused => self.clash(r),
                _ => None,
            };
            let outcome = clash.map_or_else(|| self.apply(op), Err);
            refused |= outcome.is_err();
            OpResult { op: *op, outcome }
        };
        ops.iter().map(&mut one).collect()
    }

    fn clash(&self, r: &Reservation) -> Option<String> {
        let standing = self.slots.iter().flatten().flatten().filter(|o| o.plane == r.plane && o.until > r.setup_at && o.up_from < r.until);
        let mut hit = standing.filter(|o| (o.input == r.input || o.output == r.output) && o.up_from != r.up_from);
        hit.next().map(|o| format!("{} -> {} still holds a port until {}", o.input, o.output, o.until))
    }

    fn apply(&mut self, op: &Op) -> Result<Time, String> {
        let now = self.clock.now();
        match *op {
            Op::Reserve(r) => self.reserve(r, now)?,
            Op::End { plane, input, up_from, until } => {
                let (port, k) = self.find(plane, input, up_from)?;
                // Never a cut into packets under way: a queue gets its time to drain, or the circuit stays.
                if until < now + self.guard {
                    return Err(format!("too late: a circuit ends {} after the order or later", self.guard));
                }
                self.cell(port, k, UNTIL).store(self.clock.to_kernel(until), Release);
                let slot = self.slots[port][k].as_mut().expect("found");
                slot.until = until;
            }
            Op::Cancel { plane, input, up_from } => {
                let (port, k) = self.find(plane, input, up_from)?;
                self.cell(port, k, UNTIL).store(0, Release);
                self.slots[port][k] = None;
            }
        }
        Ok(self.clock.now())
    }

    fn find(&self, plane: PlaneId, input: RackId, up_from: Time) -> Result<(usize, usize), String> {
        let port = self.port(plane, input);
        let found = self.slots[port].iter().position(|s| s.is_some_and(|r| r.up_from == up_from));
        found.map(|k| (port, k)).ok_or_else(|| format!("no circuit of {input} on {plane} begins at {up_from}"))
    }

    fn reserve(&mut self, r: Reservation, now: Time) -> Result<(), String> {
        let port = self.port(r.plane, r.input);
        let again = self.slots[port].iter().position(|s| s.is_some_and(|o| o.up_from == r.up_from));
        let free = || self.slots[port].iter().position(|s| s.is_none_or(|o| o.until <= now));
        let k = again.or_else(free).ok_or_else(|| format!("all {SLOTS} slots of {} on {} hold circuits", r.input, r.plane))?;
        let out = u64::from(self.out[r.plane.index()][r.output.index()]) << 32 | u64::from(r.output.0);
        self.cell(port, k, UNTIL).store(0, Release);
        self.cell(port, k, OUT).store(out, Release);
        self.cell(port, k, FROM).store(self.clock.to_kernel(r.up_from), Release);
        self.cell(port, k, UNTIL).store(self.clock.to_kernel(r.until), Release);
        self.slots[port][k] = Some(r);
        Ok(())
    }

    fn cell(&self, port: usize, slot: usize, which: usize) -> &std::sync::atomic::AtomicU64 {
        self.arrays.ports.cell(port, slot * SLOT_CELLS + which)
    }

    /// Bytes sent, and of those, bytes that crossed: `R x R` each.
    pub fn counters(&self) -> (DemandMatrix, DemandMatrix) {
        let racks = self.arrays.racks;
        let (mut sent, mut crossed) = (DemandMatrix::zero(racks), DemandMatrix::zero(racks));
        for k in 0..racks * racks {
            let (i, j) = (RackId::from(k / racks), RackId::from(k % racks));
            // Crossed first: it can never be seen ahead of sent.
            crossed.set(i, j, self.arrays.crossed.cell(k, 0).load(Acquire));
            sent.set(i, j, self.arrays.sent.cell(k, 0).load(Relaxed));
        }
        (sent, crossed)
    }

    /// The counters of every port, by plane and rack.
    pub fn ports(&self) -> Vec<Vec<PortCounters>> {
        let racks = self.arrays.racks;
        let read = |p: usize, r: usize| {
            let c = |k| self.arrays.counts.cell(p * racks + r, k).load(Relaxed);
            PortCounters {
                crossed_packets: c(programs::CROSSED_PACKETS),
                crossed_bytes: c(programs::CROSSED_BYTES),
                lost_dark: c(programs::LOST_DARK),
                misdelivered: c(programs::MISDELIVERED),
            }
        };
        (0..self.out.len()).map(|p| (0..racks).map(|r| read(p, r)).collect()).collect()
    }

    /// Bytes that ToRs admitted to circuits and that have not crossed: what waits in virtual output queues, and what was lost.
    pub fn in_queues(&self) -> u64 {
        let sum = |a: &super::bpf::SharedArray| (0..self.arrays.racks.pow(2)).map(|k| a.cell(k, 0).load(Relaxed)).sum::<u64>();
        sum(&self.arrays.admitted).saturating_sub(sum(&self.arrays.crossed))
    }
}

/// Whether this process may load programs and make shared arrays.
///
/// # Errors
/// What the kernel said.
pub fn probe() -> io::Result<()> {
    let arrays = Arrays::new(2, 1)?;
    programs::load_crossbar(&arrays, 0, 0)?;
    programs::load_tor(&arrays, &TorProgram { rack: 0, ocs: &[10], tos: None, guard: Span::millis(1) })?;
    Ok(())
}
