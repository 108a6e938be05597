//! Last bytes in flight where links have a delay: each arrives that much after it was sent.
//!
//! The delay is that of the flow's route when its last byte is sent. Connection set-up, windows and
//! retransmissions are not in this model.

use std::collections::{BTreeMap, BTreeSet};

use super::FlowFinished;
use crate::coflows::CoflowSpec;
use crate::ids::{CoflowId, FlowId, HostId};
use crate::units::{Bytes, Span, Time};

/// A flow's hosts, and whether it is marked.
pub type FlowHosts = (HostId, HostId, bool);

/// Flows that are being sent, and last bytes in flight.
#[derive(Debug, Default)]
pub struct Delays {
    sending: BTreeMap<(CoflowId, FlowId), FlowHosts>,
    arriving: BTreeSet<(Time, CoflowId, FlowId)>,
}

impl Delays {
    /// A coflow begins; `marked` says for each flow whether it is marked, and flows beyond its end
    /// are not. A flow without bytes ends at once.
    pub fn add(&mut self, coflow: &CoflowSpec, marked: &[bool]) {
        let flows = coflow.flows.iter().enumerate().filter(|(_, f)| f.bytes > Bytes::ZERO);
        let is_marked = |k: usize| marked.get(k).copied().unwrap_or(false);
        self.sending.extend(
            flows.map(|(k, f)| ((coflow.id, FlowId::from(k)), (f.from, f.to, is_marked(k)))),
        );
    }

    /// A coflow is cancelled, with what is in flight.
    pub fn cancel(&mut self, coflow: CoflowId) {
        self.sending.retain(|(id, _), _| *id != coflow);
        self.arriving.retain(|(_, id, _)| *id != coflow);
    }

    /// These flows have sent their last bytes, each with the delay that `of` gives. Leaves what has
    /// arrived by `now` in `done`, by time.
    pub fn pass(
        &mut self,
        done: &mut Vec<FlowFinished>,
        now: Time,
        of: impl Fn(FlowHosts) -> Span,
    ) {
        for d in done.drain(..) {
            let delay = self.sending.remove(&(d.coflow, d.flow)).map_or(Span::ZERO, &of);
            self.arriving.insert((d.at + delay, d.coflow, d.flow));
        }
        while let Some(&(at, coflow, flow)) = self.arriving.first().filter(|a| a.0 <= now) {
            self.arriving.pop_first();
            done.push(FlowFinished { coflow, flow, at });
        }
    }

    /// When the next last byte arrives.
    pub fn next(&self) -> Option<Time> {
        self.arriving.first().map(|a| a.0)
    }
}
