//! Coflows on their way: what a sender is asked, and how far their flows are.

use heliostat_circuits::coflows::{CoflowSpec, FlowSpec};

use crate::units::{Bytes, Time};

/// What the sender of a coflow reports the ends of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedEnds {
    /// The coflow's.
    Coflow,
    /// Every flow's, each before its coflow's, and the coflow's.
    Flows,
}

/// A coflow that is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Shipment<'a> {
    /// The coflow, with its flows.
    pub coflow: &'a CoflowSpec,
    /// What is reported of it.
    pub report: ReportedEnds,
}

/// How far a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowProgress {
    /// As it was asked.
    pub spec: FlowSpec,
    /// Payload that its receiver has counted.
    pub received: Bytes,
    /// When that was all of it.
    pub finished: Option<Time>,
    /// Its strict priority, which counts where ports serve by priority.
    pub priority: u8,
}
