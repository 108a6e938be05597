//! The schedulers with which the papers compare themselves, each whole.
//!
//! - [`fair`]: whoever holds the fewest slots has the next one (Hadoop's Fair Scheduler). On a hybrid network this is F-Hybrid, on a
//!   packet core as fast as the circuits F-EPS.
//! - [`delay`]: a job waits a little for a slot near its data (Zaharia et al., EuroSys 2010). With queues of capacity this is Yarn-CS.
//! - [`shuffle_watcher`]: each job on the racks between which it would move the fewest bytes (Ahmad et al., USENIX ATC 2014).
//! - [`tetris`]: the task whose demands fit best into what a rack has free (Grandl et al., SIGCOMM 2014).
//! - [`corral`], [`jobpacker`], [`coscheduler`]: the executors of the planners of the same names; [`corral`] is LocalShuffle too.
//!
//! The baselines place data by HDFS's default ([`hdfs`]) and let reduce tasks fetch as soon as they run.

use crate::ids::JobId;
use crate::placement::policy::{Pick, View, startable};

pub mod corral;
pub mod coscheduler;
pub mod delay;
pub mod fair;
pub mod hdfs;
pub mod jobpacker;
pub mod shuffle_watcher;
pub mod tetris;

/// The first job in the queues' order that has something for this rack, and which stage.
pub fn first_of(view: &dyn View, mut fits: impl FnMut(JobId, usize) -> bool) -> Option<Pick> {
    view.ready().find_map(|job| startable(view, job).find(|&s| fits(job, s)).map(|stage| Pick { job, stage }))
}
