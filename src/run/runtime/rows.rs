//! What has ended in a run, told as it does: results of runs that are too long to keep all of it.

use crate::coflows::CoflowRecord;
use crate::scheduler::record::{JobRecord, TaskRun};

/// One that has ended.
#[derive(Clone, Copy, Debug)]
pub enum ResultRow<'a> {
    /// A coflow, finished or taken back.
    Coflow(&'a CoflowRecord),
    /// A job.
    Job(&'a JobRecord),
    /// An attempt of a task.
    Task(&'a TaskRun<String>),
}

/// Takes rows, each once, in the order of the ends. What has not ended when the run does comes
/// last.
pub type RowSink<'a> = &'a dyn Fn(ResultRow);
