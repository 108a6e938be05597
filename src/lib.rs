//! Heliostat: an SDN controller and optical-circuit-switch manager for hybrid electrical/optical data-centre networks.
//!
//! A hybrid network joins racks by an electrical packet switch (EPS) and by optical circuit switches (OCS). Heliostat
//! emulates one on a single Linux machine, polls what its top-of-rack switches (ToRs) want to send, decides which racks to join
//! by circuits, and sets them; or it does all that in virtual time. A result in simulation is a claim which the emulation can
//! check, with the same binary, the same files and the same policy code.
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
//! Two state machines decide and touch nothing: the [`control::Controller`] of the network and the [`scheduler`] of the tasks. They
//! take events and a time, and give actions; there is no clock, socket, thread or random number inside. A [`fabric::Fabric`]
//! does and decides nothing. [`runtime`] joins the two: `live` by the monotonic clock, `simulate` by a virtual one.
//!
//! # The rooms, in the order in which data passes through them
//!
//! A room may use rooms above it in this list, never one below. `tests/tidy.rs` reads the list from here and guards the walls.
//!
//! # Invariants
//!
//! 1. Wanted state and observed state are different types ([`plan::Wanted`], [`plan::Programmed`]); [`plan::diff`] is the one
//!    function between them.
//! 2. Full comparison is the truth; events only hurry it. A second pass over a converged fabric does nothing. A change and its
//!    reverse leave the same state.
//! 3. What failed stays in the state, with its number of attempts and the time of its retry, and shows in the API.
//! 4. Only objects that carry our mark are ever written or deleted ([`fabric::kernel::ownership`]).
//! 5. An input port joins at most one output port at a time on each plane: [`plan::check`] proves it for every plan before it is
//!    carried out, and the kernel never holds two circuits on one port, not even between two operations.
//! 6. No byte is delivered to a rack for which it was not meant. Bytes queued for a circuit that ends leave before it does; what
//!    is late goes by the EPS. We lose none.
//! 7. Units and ids are types; time, bytes and rates are integers; floating point appears in reports only. Ties break by id.
//!    Nothing iterates over a hash map. The same seed gives the same event log, byte for byte.
//! 8. Every fast algorithm has a slow, obvious twin in its tests, and a paper's worked example with the paper's numbers.
//!
//! # Where this differs from the first sketch of the house
//!
//! `fabric` stands above `control`, because the controller speaks of observations and operations, whose types the seam owns; no
//! fabric knows the controller. `runtime::report` (results) and `runtime::handle` (how others speak to a controller) stand in
//! `runtime` for want of a better place. `workload` files are read in `config`, so that one place calls the YAML library.
#![warn(missing_docs)]

pub mod units;

pub mod ids;

pub mod topology;

pub mod demand;

pub mod coflows;

pub mod circuits;

pub mod paths;

pub mod workload;

pub mod placement;

pub mod scheduler;

pub mod plan;

pub mod fabric;

pub mod control;

pub mod runtime;

pub mod config;

pub mod api;

pub mod experiment;

pub mod cli;
