//! Heliostat: an SDN controller and optical-circuit-switch manager for hybrid electrical/optical
//! data-centre networks.
//!
//! A hybrid network joins racks by an electrical packet switch (EPS) and by optical circuit
//! switches (OCS). Heliostat emulates one on a single Linux machine, polls what its top-of-rack
//! switches (ToRs) want to send, decides which racks to join by circuits, and sets them; or it does
//! all that in virtual time. A result in simulation is a claim which the emulation can check, with
//! the same binary, the same files and the same policy code.
//!
//! # How a circuit comes about
//!
//! ```text
//!  fabric::observe ─► demand ─► circuits ─► circuits::timetable ─► plan::diff ─► plan::check ─► fabric::apply
//!   (counters,        (R x R    (matching,   (reservations with     (what must     (no port      (kernel: BPF arrays or
//!    backlog)          bytes)    Sunflow ..)  times, per port)       be changed)    twice)         netlink; sim: events)
//!  └────────────────────────── one cycle of control::Controller, every interval ──────────────────────────┘
//! ```
//!
//! Two state machines decide and touch nothing: the [`control::Controller`] of the network and the
//! [`scheduler`] of the tasks. They take events and a time, and give actions; there is no clock,
//! socket, thread or random number inside. A [`fabric::Fabric`] does and decides nothing.
//! [`runtime`] joins the two: `live` by the monotonic clock, `simulate` by a virtual one.
//!
//! # Crates
//!
//! Each folder of `src` but `cli` is a crate, and this one gives all their rooms a name.
//! `docs/architecture.md` draws who uses whom.
//!
//! # Invariants
//!
//! 1. Wanted state and observed state are different types ([`plan::Wanted`], [`plan::Programmed`]);
//!    [`plan::diff`] is the one function between them.
//! 2. Full comparison is the truth; events only hurry it. A second pass over a converged fabric
//!    does nothing. A change and its reverse leave the same state.
//! 3. What failed stays in the state, with its number of attempts and the time of its retry, and
//!    shows in the API.
//! 4. Only objects that carry our mark are ever written or deleted ([`kernel::ownership`]).
//! 5. An input port joins at most one output port at a time on each plane. [`plan::check`] proves
//!    it for every plan before it is carried out. [`plan::apply`] refuses what would break it, in
//!    the model and before anything is written into the kernel. The kernel never holds two circuits
//!    on one port, not even between two operations.
//! 6. No byte is delivered to a rack for which it was not meant. Bytes queued for a circuit that
//!    ends leave before it does; what is late goes by the EPS. We lose none.
//! 7. Units and ids are types; time, bytes and rates are integers. `f64` decides only where its
//!    values are exact, in a paper's score, or in a model that approximates (below). Ties break by
//!    id. Nothing iterates over a hash map. The same seed gives the same event log, byte for byte.
//! 8. Every fast algorithm has a slow, obvious twin in its tests, and a paper's worked example with
//!    the paper's numbers.
//!
//! 9. A thread that panics ends the run: the drivers watch their threads. Locks are
//!    `parking_lot`'s, which are not poisoned, so that the ending can still read what is there.
//!
//! # Where floating point is used
//!
//! `f64` decides in three cases: its values are whole numbers below 2^53, which it holds exactly; a
//! paper defines a score by fractions; or a model is an approximation that a user asks for, and
//! says so (`within: sums`, where times and books stay whole numbers). Equal scores are ordered by
//! id. A quotient that is guessed in `f64` is made exact in whole numbers. Only operations are used
//! whose results IEEE 754 fixes, so that every machine decides alike: no logarithm, exponential,
//! power or angle. In the simulator and the rooms that decide, these files use it:
//!
//! | file in `src` | for |
//! |---|---|
//! | `circuits/decompose/tms.rs` | exact: quotients, mended in whole numbers |
//! | `circuits/coflows/orders/bssi.rs` | score: Sincronia's weights |
//! | `sim/big_switch/levels.rs` | exact: rates below 2^53 bits a second |
//! | `sim/big_switch/levels/side.rs` | exact: rates below 2^53 bits a second |
//! | `sim/big_switch/lines.rs` | exact: quotients of whole numbers below 2^52 |
//! | `sim/aggregate/coflow.rs` | model: rates and what is left |
//! | `sim/aggregate/reduce.rs` | model: sums of these |
//! | `sim/aggregate/levels.rs` | model: rates under max-min |
//! | `sim/aggregate/maxmin.rs` | model: capacities |
//! | `sim/aggregate/mod.rs` | model: capacities |
//! | `sim/aggregate/residual.rs` | model: rates |
//! | `sim/aggregate/endpoints.rs` | model: rates and what is left |
//! | `jobs/placement/baselines/tetris.rs` | score: Tetris' alignment and remaining work |
//! | `jobs/placement/jobpacker/sort.rs` | score: JobPacker's packing into sub-batches |
//! | `circuits/coflows/mod.rs` | report: shares |
//! | `jobs/placement/corral/lp.rs` | report: the lower bound of a plan |
//! | `jobs/placement/corral/mod.rs` | report: means and gaps |
//! | `jobs/placement/corral/price.rs` | report: the lower bound of a plan |
//! | `jobs/placement/coscheduler/schedule.rs` | report: means |
//! | `jobs/placement/jobpacker/manager.rs` | report: means |
//! | `jobs/placement/jobpacker/mod.rs` | report: means |
//!
//! `tests/library/tidy.rs` reads this table, and finds every other use.
//!
//! # Why some rooms are where they are
//!
//! - [`fabric`] is below [`control`]: observations and operations are the fabric's types, and the
//!   controller decides in their terms. No fabric uses the controller.
//! - [`runtime::report`] holds the results of a run, which the live and the virtual driver fill in
//!   the same way; [`runtime::handle`] is how other threads send events to a controller and read
//!   its last snapshot. Both drivers and the API use them, so they are in `runtime`.
//! - Workload files are read in `config`, since it alone calls the YAML library; `workload` knows
//!   the formats of other tools' traces.
#![forbid(unsafe_code)]

pub use heliostat_base::{ids, paths, text, topology, units};
pub use heliostat_circuits as circuits;
pub use heliostat_circuits::{coflows, demand};
pub use heliostat_control as control;
pub use heliostat_draw as draw;
pub use heliostat_experiment as experiment;
pub use heliostat_http::{api, client};
pub use heliostat_jobs::{placement, scheduler, workload};
pub use heliostat_kernel as kernel;
pub use heliostat_run::{config, runtime};
pub use heliostat_seam::{fabric, plan};
pub use heliostat_sim as sim;

pub mod cli;

#[cfg(test)]
mod testing;
