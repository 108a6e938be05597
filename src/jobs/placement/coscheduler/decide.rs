//! The best schedule of a job's reduces: the one that ends its shuffle first (Co-scheduler section
//! IV-F, Algorithm 1, lines 15 to 18).

use crate::ids::{RackId, by_name};
use crate::units::{Bytes, Span};

use super::super::cluster::Cluster;
use super::explore::explore;
use super::network::{CoflowForecaster, RackTransfer};
use super::reduces::{heavy_racks, spread};

/// What is known when all maps of a job are done.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleQuestion<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The map output by rack, each rack once.
    pub maps: &'a [(RackId, Bytes)],
    /// Number of reduce tasks.
    pub reduces: u32,
    /// Every R_red to consider ([`super::reduces::widths`], [`super::reduces::recurring_widths`]).
    pub widths: &'a [usize],
    /// By rack: when each slot becomes free, from now, sorted; empty for a rack that must not be
    /// used.
    pub free: &'a [Vec<Span>],
}

/// One possible schedule, judged.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CandidateSchedule {
    /// Racks and the reduce tasks of each, most first.
    #[serde(serialize_with = "by_name::pairs")]
    pub racks: Vec<(RackId, u32)>,
    /// t_max: all reduce tasks have their slots, from now.
    #[serde(rename = "start_ns")]
    pub start: Span,
    /// How long the shuffle then takes.
    #[serde(rename = "cct_ns")]
    pub cct: Span,
    /// t_max and CCT.
    #[serde(rename = "finish_ns")]
    pub finish: Span,
}

/// All schedules that were considered.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ConsideredSchedules {
    /// The place of the best in `candidates`.
    pub best: usize,
    /// By the number of racks.
    pub candidates: Vec<CandidateSchedule>,
}

impl ConsideredSchedules {
    /// The best schedule.
    pub fn best(&self) -> &CandidateSchedule {
        &self.candidates[self.best]
    }
}

/// The coflow of a job whose maps made `maps` by rack and whose reduce tasks are in `racks`: by map
/// rack, then as `racks`. Every reduce task takes the same share of every rack's output; what
/// rounding leaves, the last rack takes. O(maps * racks).
pub fn coflow(maps: &[(RackId, Bytes)], racks: &[(RackId, u32)]) -> Vec<RackTransfer> {
    let tasks: u64 = racks.iter().map(|r| u64::from(r.1)).sum::<u64>().max(1);
    let mut out = Vec::with_capacity(maps.len() * racks.len());
    for &(from, bytes) in maps {
        let small = bytes.0.checked_mul(tasks).is_some();
        let until = |before: u64| {
            let wide = || (u128::from(bytes.0) * u128::from(before) / u128::from(tasks)) as u64;
            if small { bytes.0 * before / tasks } else { wide() }
        };
        let (mut before, mut sent) = (0u64, 0u64);
        for &(to, own) in racks {
            before += u64::from(own);
            let now = until(before);
            out.push(RackTransfer { from, to, bytes: Bytes(now - sent) });
            sent = now;
        }
    }
    out
}

/// Judges every width and takes the schedule that ends the shuffle first; among equals the one on
/// fewer racks. One in which a rack gets more tasks than it has slots, so that they run in waves,
/// is taken only if there is no other. Nothing if no width can be placed.
///
/// The shuffle is judged on the racks that were chosen, all map racks included; the paper judges it
/// before. So bytes that stay in their rack count nothing, and `network` can answer for real ports.
/// O(widths (R log R + maps * width)).
pub fn decide(
    question: &ScheduleQuestion,
    network: &impl CoflowForecaster,
) -> Option<ConsideredSchedules> {
    let smallest =
        heavy_racks(question.maps, question.reduces, question.cluster).iter().map(|m| m.1).min()?;
    let mut local = vec![0u64; question.free.len()];
    question.maps.iter().for_each(|m| local[m.0.index()] = m.1.0);
    let candidate = |&width: &usize| {
        let tasks = spread(smallest, question.reduces, width, question.cluster)?;
        let chosen =
            explore(&tasks, question.free, question.cluster.circuits, |r| local[r.index()])?;
        let cct = network.completion(&coflow(question.maps, &chosen.racks), chosen.start);
        Some(CandidateSchedule {
            racks: chosen.racks,
            start: chosen.start,
            cct,
            finish: chosen.start + cct,
        })
    };
    let candidates: Vec<CandidateSchedule> = question.widths.iter().filter_map(candidate).collect();
    let waves = |c: &CandidateSchedule| {
        c.racks.iter().any(|r| r.1 as usize > question.free[r.0.index()].len())
    };
    let best = (0..candidates.len()).min_by_key(|&k| {
        (waves(&candidates[k]), candidates[k].finish, candidates[k].racks.len())
    })?;
    Some(ConsideredSchedules { best, candidates })
}
