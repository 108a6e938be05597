//! The machine on which a live run is: what it is, and what else it did meanwhile.

use std::fs::read_to_string;
use std::time::{Duration, Instant};

use crate::runtime::report::{MachineUse, RunMachine};

/// Release of the kernel; empty if it does not say.
pub fn kernel() -> String {
    read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Model of the processors; empty if the kernel does not say.
pub fn processor() -> String {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |l: &str| {
        l.strip_prefix("model name")
            .and_then(|l| l.split_once(':'))
            .map(|(_, name)| name.trim().to_owned())
    };
    cpuinfo.lines().find_map(named).unwrap_or_default()
}

/// Number of processors that may be used.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The resources for which something may wait, by their files in `/proc/pressure`.
const PRESSURES: [&str; 3] = ["cpu", "memory", "io"];

/// Watches the machine over a run.
pub struct MachineWatch {
    begun: Instant,
    first: MachineTimes,
}

impl MachineWatch {
    /// From now on.
    pub fn start() -> Self {
        Self { begun: Instant::now(), first: MachineTimes::now() }
    }

    /// What the machine is.
    pub fn facts(&self) -> RunMachine {
        let said = |text: String| Some(text).filter(|t| !t.is_empty());
        let revision = option_env!("HELIOSTAT_REVISION").map(str::to_owned);
        RunMachine {
            kernel: said(kernel()),
            processor: said(processor()),
            cores: Some(cores()),
            revision,
            ..RunMachine::default()
        }
    }

    /// What it is, and what it did until now.
    pub fn end(&self) -> RunMachine {
        let took = self.begun.elapsed();
        let load = MachineTimes::now().since(&self.first, took);
        RunMachine { seconds: Some(took.as_secs_f64()), load, ..self.facts() }
    }
}

/// Times that the kernel has counted, in ticks; pressures in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MachineTimes {
    /// Of all programs: user, system, stolen, all.
    machine: Option<[u64; 4]>,
    /// Of this process and those that it started: user, system.
    own: [u64; 2],
    waited: [Option<u64>; 3],
}

impl MachineTimes {
    fn now() -> Self {
        let machine = read_to_string("/proc/stat").ok().and_then(|text| of_machine(&text));
        let waited = PRESSURES.map(|name| {
            read_to_string(format!("/proc/pressure/{name}")).ok().and_then(|text| waited(&text))
        });
        Self { machine, own: own(), waited }
    }

    /// Shares of the time since an earlier look, which was `took` before.
    fn since(&self, first: &Self, took: Duration) -> Option<MachineUse> {
        let (now, then) = (self.machine?, first.machine?);
        let [user, system, stolen, all] = [0, 1, 2, 3].map(|k| now[k].saturating_sub(then[k]));
        let [own_user, own_system] = [0, 1].map(|k| self.own[k].saturating_sub(first.own[k]));
        // The kernel counts work of the network twice: as a kind of its own, and as work of the
        // program that it interrupted. So each kind is taken alone.
        let others = user.saturating_sub(own_user) + system.saturating_sub(own_system);
        let share = |ticks: u64| if all == 0 { 0.0 } else { ticks as f64 / all as f64 };
        let pressed = |k: usize| {
            let more = self.waited[k]?.saturating_sub(first.waited[k]?);
            Some((more as f64 / took.as_micros().max(1) as f64).min(1.0))
        };
        Some(MachineUse {
            others: share(others),
            stolen: share(stolen),
            cpu: pressed(0),
            memory: pressed(1),
            io: pressed(2),
        })
    }
}

/// The first line of `/proc/stat`: user, system, stolen, all.
fn of_machine(text: &str) -> Option<[u64; 4]> {
    let ticks: Vec<u64> = text
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .take(8)
        .map_while(|w| w.parse().ok())
        .collect();
    let [user, nice, system, .., stolen] = ticks[..] else { return None };
    (ticks.len() == 8).then(|| [user + nice, system, stolen, ticks.iter().sum()])
}

/// Time in which something waited, of a file in `/proc/pressure`.
fn waited(text: &str) -> Option<u64> {
    text.lines().find(|l| l.starts_with("some"))?.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Of this process and those that it started, ended ones too. O(processes of the machine).
fn own() -> [u64; 2] {
    let numbers = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    let all: Vec<ProcessTimes> = numbers
        .filter_map(|pid: u32| {
            ProcessTimes::read(pid, &read_to_string(format!("/proc/{pid}/stat")).ok()?)
        })
        .collect();
    let mut ours = vec![std::process::id()];
    let mut k = 0;
    while k < ours.len() {
        let parent = ours[k];
        ours.extend(all.iter().filter(|p| p.parent == parent).map(|p| p.pid));
        k += 1;
    }
    let mine = all.iter().filter(|p| ours.contains(&p.pid));
    mine.fold([0, 0], |sum, p| [sum[0] + p.user, sum[1] + p.system])
}

/// What `/proc/PID/stat` says of a process and of its children that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessTimes {
    pid: u32,
    parent: u32,
    user: u64,
    system: u64,
}

impl ProcessTimes {
    fn read(pid: u32, stat: &str) -> Option<Self> {
        // Its name, in brackets, may hold blanks.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |k: usize| fields.get(k)?.parse::<u64>().ok();
        let parent = fields.get(1)?.parse().ok()?;
        Some(Self {
            pid,
            parent,
            user: number(11)? + number(13)?,
            system: number(12)? + number(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(machine: [u64; 4], own: [u64; 2], cpu: u64) -> MachineTimes {
        MachineTimes { machine: Some(machine), own, waited: [Some(cpu), None, None] }
    }

    #[test]
    fn what_others_take_is_told_apart_from_the_run_itself() {
        let first = look([100, 50, 0, 1000], [10, 10], 0);
        // In four seconds of two processors: 200 ticks of ours, 160 of others, 80 stolen.
        let then = look([380, 130, 80, 1800], [160, 60], 1_000_000);
        let busy = then.since(&first, Duration::from_secs(4)).unwrap();
        assert_eq!(
            (busy.others, busy.stolen, busy.cpu, busy.io),
            (160.0 / 800.0, 0.1, Some(0.25), None)
        );
        let of = |load| RunMachine { load: Some(load), ..RunMachine::default() }.busy();
        assert_eq!(
            of(busy).as_deref(),
            Some("processors: 20 % busy with other programs, 10 % stolen by the host")
        );
        assert_eq!(of(MachineUse { others: 0.09, ..MachineUse::default() }), None);
        assert_eq!(
            of(MachineUse { stolen: 0.5, ..MachineUse::default() }).as_deref(),
            Some("processors: 50 % stolen by the host")
        );
        // Interrupts by the network count as ours, and are in no other program's time.
        let network =
            look([120, 55, 0, 1800], [20, 200], 0).since(&first, Duration::from_secs(4)).unwrap();
        assert_eq!(network.others, 10.0 / 800.0);
    }

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(of_machine("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n"), Some([3, 3, 8, 36]));
        assert_eq!((of_machine("cpu 1 2"), of_machine("")), (None, None));
        assert_eq!(
            waited("some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull total=9\n"),
            Some(1234)
        );
        let stat = "7 (a) b) S 3 7 7 0 -1 4194304 100 0 0 0 11 12 13 14 20 0 1 0";
        assert_eq!(
            ProcessTimes::read(7, stat),
            Some(ProcessTimes { pid: 7, parent: 3, user: 24, system: 26 })
        );
        let here = MachineWatch::start().end();
        assert!(here.kernel.is_some() && here.cores.is_some() && here.load.is_some(), "{here:?}");
    }
}
