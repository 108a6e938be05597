//! The preference matrix of a plan as a picture: a row a task, a column a host, the darker the more
//! the task would save there.

use crate::cli::tables;
use crate::draw::{Anchor, Ink, MarkShape, Pen, Sheet, colour, font};
use crate::ids::HostId;
use crate::placement::hit::plan::{Grades, HitPlan};
use crate::topology::Topology;
use crate::units::Bytes;
use crate::workload::jobs::JobSpec;

/// Height of a row, and of the heading above a stage's rows.
const ROW: f64 = 9.0;
const HEADING: f64 = 26.0;
/// Size of headings, and of the numbers of tasks.
const TEXT: (f64, f64) = (9.0, 7.0);
/// The most areas that are drawn: beyond them a viewer is slow.
const MOST: usize = 20_000;
/// Hosts without a slot, which are no candidates.
const GREY: Ink = Ink::new(225, 225, 225);

/// The matrices of some jobs, or why they are left out.
pub struct Matrices<'a> {
    topology: &'a Topology,
    all: Vec<(&'a JobSpec, &'a HitPlan, &'a Grades)>,
    left_out: Option<String>,
}

impl<'a> Matrices<'a> {
    /// Those of the stages that were graded. O(tasks x hosts).
    pub fn new(topology: &'a Topology, plans: &[(&'a JobSpec, &'a HitPlan)]) -> Self {
        let of = |&(job, plan): &(&'a JobSpec, &'a HitPlan)| {
            plan.grades.iter().map(move |g| (job, plan, g)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = plans.iter().flat_map(of).collect();
        let areas: usize =
            all.iter().flat_map(|a| &a.2.saved).map(|row| runs(row, topology).len()).sum();
        let left_out = (areas > MOST).then(|| {
            all.clear();
            format!("what hosts save for tasks is left out, as it has {areas} areas; --job draws one job, and -o json has all")
        });
        Self { topology, all, left_out }
    }

    /// How high they are.
    pub fn height(&self) -> f64 {
        let one = |a: &(&JobSpec, &HitPlan, &Grades)| HEADING + ROW * a.2.saved.len() as f64;
        self.all.iter().map(one).sum::<f64>() + if self.left_out.is_some() { HEADING } else { 0.0 }
    }

    /// How wide the longest heading is.
    pub fn width(&self) -> f64 {
        let all = self.all.iter().map(|&a| heading(a)).chain(self.left_out.clone());
        all.map(|text| font::width(&text, TEXT.0)).fold(0.0, f64::max)
    }

    /// Draws them below `top`; the column of host h is `wide` and its middle is at `columns[h]`.
    pub fn draw(&self, sheet: &mut Sheet, left: f64, top: f64, (columns, wide): (&[f64], f64)) {
        if let Some(why) = &self.left_out {
            sheet.text((left, top + HEADING / 2.0), TEXT.0, Anchor::Start, why.as_str());
        }
        let mut y = top;
        for &(job, plan, grades) in &self.all {
            sheet.text(
                (left, y + HEADING / 2.0),
                TEXT.0,
                Anchor::Start,
                heading((job, plan, grades)),
            );
            y += HEADING;
            let most =
                grades.saved.iter().flatten().map(|v| v.unsigned_abs()).max().unwrap_or(0).max(1);
            let stage = &job.stages[grades.stage].name;
            for (task, row) in grades.saved.iter().enumerate() {
                let name = format!("{stage} {task}");
                sheet
                    .text(
                        (columns[0] - wide / 2.0 - 3.0, y + ROW / 2.0),
                        TEXT.1,
                        Anchor::End,
                        task.to_string(),
                    )
                    .says(&name);
                for run in runs(row, self.topology) {
                    let (first, last) =
                        (columns[run.hosts.0.index()], columns[run.hosts.1.index()]);
                    let shape = MarkShape::Rect((first - wide / 2.0, y), last - first + wide, ROW);
                    sheet
                        .fill(shape, shade(run.saved, most))
                        .says(format!("{name} on {}", self.told(&run)));
                }
                let host = plan
                    .tasks
                    .iter()
                    .find(|t| (t.stage, t.task as usize) == (grades.stage, task))
                    .map(|t| t.host);
                if let Some(host) = host {
                    let corner = (columns[host.index()] - wide / 2.0, y);
                    sheet
                        .stroke(MarkShape::Rect(corner, wide, ROW), Pen::new(Ink::BLACK, 1.0))
                        .says(format!("{name} goes here"));
                }
                y += ROW;
            }
        }
    }

    /// What a run of hosts is to a task, in words.
    fn told(&self, run: &HostRun) -> String {
        let (first, last) =
            (self.topology.host_name(run.hosts.0), self.topology.host_name(run.hosts.1));
        let hosts = if first == last { first } else { format!("{first}..{last}") };
        let size =
            |v: i128| tables::bytes(Bytes(u64::try_from(v.unsigned_abs()).unwrap_or(u64::MAX)));
        match run.saved {
            None => format!("{hosts}: no slot"),
            Some(v) if v < 0 => format!("{hosts}: costs {} more", size(v)),
            Some(v) => format!("{hosts}: saves {}", size(v)),
        }
    }
}

fn heading((job, plan, grades): (&JobSpec, &HitPlan, &Grades)) -> String {
    let size = |v: u128| tables::bytes(Bytes(u64::try_from(v).unwrap_or(u64::MAX)));
    let (name, stage) = (&job.name, &job.stages[grades.stage].name);
    let cost = format!("cost {} at random, {} as planned", size(plan.before), size(plan.after));
    format!(
        "{name}, {stage} by host: blue saves, orange costs more; framed where the task goes. {name}: {cost}"
    )
}

/// Neighbouring hosts that are worth the same to a task.
struct HostRun {
    hosts: (HostId, HostId),
    /// What is saved there; `None`: they have no slot.
    saved: Option<i128>,
}

fn runs(row: &[i128], topology: &Topology) -> Vec<HostRun> {
    let mut all: Vec<HostRun> = vec![];
    for h in &topology.hosts {
        let saved = (h.slots > 0).then(|| row[h.id.index()]);
        match all.last_mut().filter(|run| run.saved == saved) {
            Some(run) => run.hosts.1 = h.id,
            None => all.push(HostRun { hosts: (h.id, h.id), saved }),
        }
    }
    all
}

/// From white, nothing, to the full colour of the largest grade.
fn shade(saved: Option<i128>, most: u128) -> Ink {
    let Some(v) = saved else { return GREY };
    let share = v.unsigned_abs() as f64 / most as f64;
    colour(if v < 0 { 4 } else { 0 }).tint(share as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    #[test]
    fn neighbours_that_are_worth_the_same_are_one_area() {
        let mut t = Topology::uniform("t", 2, 2, BitRate(8), BitRate(8), vec![]);
        t.hosts[3].slots = 0;
        let found: Vec<_> =
            runs(&[7, 7, -2, 7], &t).iter().map(|r| (r.hosts.0.0, r.hosts.1.0, r.saved)).collect();
        assert_eq!(found, [(0, 1, Some(7)), (2, 2, Some(-2)), (3, 3, None)]);
    }

    #[test]
    fn colours_say_the_sign_and_the_size() {
        assert_eq!(shade(Some(10), 10), colour(0));
        assert_eq!(shade(Some(-10), 10), colour(4));
        assert_eq!(shade(Some(0), 10), Ink::WHITE);
        assert_eq!(shade(None, 10), GREY);
        assert_eq!(shade(Some(5), 10), colour(0).tint(0.5));
    }
}
