//! The schedulers with which the papers compare themselves, each whole.
//!
//! - [`fair`]: the job that holds the fewest slots has the next one (Hadoop's Fair Scheduler). On a
//!   hybrid network this is F-Hybrid, on a packet core as fast as the circuits F-EPS.
//! - [`delay`]: a job waits a little for a slot near its data (Zaharia et al., EuroSys 2010). With
//!   queues of capacity this is Yarn-CS. It waits by time or, as in Yarn, by offers ([`missed`]).
//! - [`shuffle_watcher`]: each job on the racks between which it would move the fewest bytes (Ahmad
//!   et al., USENIX ATC 2014).
//! - [`neat`]: the host where a task's transfer is predicted to cost least (Munir et al., CoNEXT
//!   2016).
//! - [`pna`]: the task that moves its input over the fewest switches, with a probability (Shen et
//!   al., CLUSTER 2016).
//! - [`tetris`]: the task whose demands fit best into what a rack has free (Grandl et al., SIGCOMM
//!   2014).
//!
//! They place data by HDFS's default ([`hdfs`](super::hdfs)) and let reduce tasks fetch as soon as
//! they run.

pub mod delay;
pub mod fair;
pub mod missed;
pub mod neat;
pub mod pna;
pub mod shuffle_watcher;
pub mod tetris;
