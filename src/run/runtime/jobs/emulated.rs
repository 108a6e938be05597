//! Jobs on an emulation of this very process: no API lies between the scheduler and the traffic.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::live::{JobsNetwork, NetworkEvent};
use crate::coflows::CoflowSpec;
use crate::control::Event;
use crate::ids::{CoflowId, FlowId};
use crate::kernel::traffic::TrafficEvent;
use crate::runtime::emulation::Emulation;
use crate::units::{Bytes, Time};

/// The traffic of an emulation on which nothing else is sent: coflows keep the scheduler's numbers.
pub struct Emulated<'a> {
    emulation: &'a Emulation,
    words: Receiver<TrafficEvent>,
    /// Takes every coflow when it starts, with the emulation's time.
    began: &'a mut dyn FnMut(Time, &CoflowSpec),
}

impl<'a> Emulated<'a> {
    /// The traffic from now on; `began` is called with every coflow that starts.
    pub fn new(emulation: &'a Emulation, began: &'a mut dyn FnMut(Time, &CoflowSpec)) -> Self {
        Self { emulation, words: emulation.listen(), began }
    }
}

impl JobsNetwork for Emulated<'_> {
    fn start(&mut self, coflow: &CoflowSpec) -> Result<(), String> {
        let now = self.emulation.clock.now();
        (self.began)(now, coflow);
        self.emulation.launch(&CoflowSpec { arrival: now, ..coflow.clone() });
        Ok(())
    }

    fn cancel(&mut self, coflow: CoflowId) -> Result<(), String> {
        self.emulation.traffic.cancel(coflow);
        self.emulation.live.handle.notify(Event::CoflowCancelled { id: coflow, why: None });
        Ok(())
    }

    fn left(&mut self) -> Result<Vec<(CoflowId, FlowId, Bytes)>, String> {
        let all = self.emulation.traffic.left().into_iter();
        Ok(all
            .flat_map(|(id, flows)| flows.into_iter().map(move |(flow, bytes)| (id, flow, bytes)))
            .collect())
    }

    fn next(&mut self, patience: Duration) -> Result<Option<NetworkEvent>, String> {
        match self.words.recv_timeout(patience) {
            Ok(TrafficEvent::FlowFinished { coflow, flow, .. }) => {
                Ok(Some(NetworkEvent::Flow(coflow, flow)))
            }
            Ok(TrafficEvent::Finished { coflow, .. }) => Ok(Some(NetworkEvent::Coflow(coflow))),
            Ok(TrafficEvent::Failed { coflow, why }) => {
                Err(format!("coflow {} broke: {why}", coflow.0))
            }
            Err(RecvTimeoutError::Timeout) => self.emulation.died().map_or(Ok(None), Err),
            Err(RecvTimeoutError::Disconnected) => Err("another run listens to the traffic".into()),
        }
    }
}
