//! Coflows over the API: declared, confirmed, looked at, taken back. All of it can be repeated, and
//! is when an answer is lost.

use super::{Client, Error, again, parse};
use crate::api::problem::ProblemDetails;
use crate::api::wire;

/// A body as JSON.
fn json(body: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(body)
        .map_err(|e| Error::Address(format!("the body cannot be written: {e}")))
}

/// Whether a proposal was refused since its tasks have no room, or too much is held, and not for a
/// fault of the request.
fn has_no_room(status: u16, text: &str) -> bool {
    let Ok(problem) = serde_json::from_str::<ProblemDetails>(text) else { return false };
    match problem.pointer {
        Some(at) => status == 422 && &*at == "/place/tasks",
        None => status == 409,
    }
}

impl Client {
    /// Declares a coflow; `key` is this request's own, so that it makes no second one when it is
    /// repeated. The answer shows the coflow as it is by then: it may be over already.
    ///
    /// # Errors
    /// No daemon, no answer in time, or why it was refused.
    pub fn declare(&self, body: &wire::CoflowBody, key: &str) -> Result<wire::Coflow, Error> {
        let body = json(body)?;
        again(|| {
            let (status, text) =
                self.ask("POST", "/api/v1/coflows", &[("idempotency-key", key)], &body)?;
            if status == 201 { parse(&text) } else { Err(self.refused(status, &text)) }
        })
    }

    /// Has a placement proposed and held; nothing if the tasks do not fit, or too much is held.
    ///
    /// # Errors
    /// No daemon, no answer in time, or why it was refused.
    pub fn propose(
        &self,
        body: &wire::CoflowBody,
        key: &str,
    ) -> Result<Option<wire::Coflow>, Error> {
        let body = json(body)?;
        again(|| {
            let (status, text) =
                self.ask("POST", "/api/v1/coflows", &[("idempotency-key", key)], &body)?;
            match status {
                201 => parse(&text).map(Some),
                _ if has_no_room(status, &text) => Ok(None),
                _ => Err(self.refused(status, &text)),
            }
        })
    }

    /// Begins a coflow that was proposed; nothing if it is not held any more.
    ///
    /// # Errors
    /// No daemon, no answer in time, or why it was refused.
    pub fn confirm(
        &self,
        id: u32,
        body: &wire::Confirmation,
    ) -> Result<Option<wire::Coflow>, Error> {
        let body = json(body)?;
        again(|| {
            let (status, text) =
                self.ask("POST", &format!("/api/v1/coflows/{id}/confirm"), &[], &body)?;
            match status {
                200 => parse(&text).map(Some),
                404 | 410 => Ok(None),
                _ => Err(self.refused(status, &text)),
            }
        })
    }

    /// A coflow as the controller shows it; nothing if it has none of this number, or has forgotten
    /// it.
    ///
    /// # Errors
    /// No daemon, no answer in time, or why it was refused.
    pub fn coflow(&self, id: u32) -> Result<Option<wire::Coflow>, Error> {
        again(|| {
            let (status, text) = self.ask("GET", &format!("/api/v1/coflows/{id}"), &[], "")?;
            match status {
                200 => parse(&text).map(Some),
                404 | 410 => Ok(None),
                _ => Err(self.refused(status, &text)),
            }
        })
    }

    /// Gives flows of a coflow other strict priorities; one that is over is no error.
    ///
    /// # Errors
    /// No daemon, no answer in time, or why it was refused.
    pub fn prioritise(&self, id: u32, body: &wire::CoflowChange) -> Result<(), Error> {
        let body = json(body)?;
        again(|| {
            let (status, text) = self.ask("PATCH", &format!("/api/v1/coflows/{id}"), &[], &body)?;
            if matches!(status, 200 | 404 | 409 | 410) {
                Ok(())
            } else {
                Err(self.refused(status, &text))
            }
        })
    }

    /// What all flows on their way have still to send.
    ///
    /// # Errors
    /// No daemon, no answer in time, or why it was refused.
    pub fn open_flows(&self) -> Result<wire::OpenFlows, Error> {
        again(|| parse(&self.get("/api/v1/flows?state=open")?))
    }

    /// Takes a coflow or a proposal back; one that is over already, or was never there, is no
    /// error.
    ///
    /// # Errors
    /// No daemon, no answer in time, or why it was refused.
    pub fn take_back(&self, id: u32) -> Result<(), Error> {
        again(|| {
            let (status, text) = self.ask("DELETE", &format!("/api/v1/coflows/{id}"), &[], "")?;
            if matches!(status, 204 | 404 | 409 | 410) {
                Ok(())
            } else {
                Err(self.refused(status, &text))
            }
        })
    }

    /// The coflows that have ended since `ended` of an earlier answer was `after`, as far as they
    /// are remembered.
    ///
    /// # Errors
    /// No daemon, no answer in time, or why it was refused.
    pub fn ended(&self, after: u64) -> Result<wire::Coflows, Error> {
        again(|| parse(&self.get(&format!("/api/v1/coflows?endedAfter={after}"))?))
    }
}
