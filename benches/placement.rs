//! The planners: how long they take, how that grows, and how far their plans are from the lower bounds: `cargo bench --bench
//! placement [FILTER]`. One line a case: the median of several runs after one for warming up.

use std::hint::black_box;
use std::time::{Duration, Instant};

use heliostat::placement::cluster::Cluster;
use heliostat::placement::corral::{self, Options, Scenario};
use heliostat::units::{BitRate, Bytes, Span, Time};
use heliostat::workload::jobs::{JobList, JobSpec, StageSpec, TaskTimes};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Corral's workload W1 (section 6.1): small (<= 50 tasks), medium (<= 500) and large (>= 1000) jobs, selectivities from 4:1 to 1:4.
fn w1(jobs: usize, minutes: u64, seed: u64) -> Vec<JobSpec> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut one = |k: usize| {
        let maps = match rng.random_range(0..3) {
            0 => rng.random_range(2..=50),
            1 => rng.random_range(51..=500),
            _ => rng.random_range(1000..=3000),
        };
        let mut selected = |bytes: u64| (bytes as f64 * 4f64.powf(rng.random_range(-1.0..=1.0))) as u64;
        let input = u64::from(maps) * 256_000_000;
        let shuffle = selected(input);
        let output = selected(shuffle);
        let reduces = (maps / 4).max(1);
        let stage = |name: &str, tasks: u32, bytes: u64, (input, output)| {
            // 20 MB/s a task.
            let times = TaskTimes::Even(Span(bytes / u64::from(tasks) * 50));
            StageSpec { name: name.into(), tasks, times, input: Bytes(input), output: Bytes(output) }
        };
        let arrival = Time(if minutes == 0 { 0 } else { rng.random_range(0..minutes * 60_000_000_000) });
        let map = stage("map", maps, input, (input, 0));
        let job = JobSpec::map_reduce(format!("w1-{k}"), arrival, map, stage("reduce", reduces, output, (0, output)), Bytes(shuffle));
        JobSpec { recurring: true, ..job }
    };
    JobList::new("w1", (0..jobs).map(&mut one).collect()).jobs
}

/// The median time of `runs` runs, and the last result.
fn time<T>(runs: usize, mut work: impl FnMut() -> T) -> (Duration, T) {
    let mut result = work();
    let mut times: Vec<Duration> = vec![];
    for _ in 0..runs {
        let start = Instant::now();
        result = black_box(work());
        times.push(start.elapsed());
    }
    times.sort();
    (times[runs / 2], result)
}

fn corral_case(jobs: usize, racks: usize, scenario: Scenario, minutes: u64) {
    // Figure 5: 40 machines a rack; 8 tasks a machine (240 slots in a rack of 30, figure 2), 10 Gb/s and 5:1 as in section 6.1.
    let cluster = Cluster { racks, hosts: 40, slots: 8, nic: BitRate::mbit(10_000), core: BitRate::mbit(80_000), ..Cluster::corral() };
    let list = w1(jobs, minutes, 1);
    let options = Options { scenario, ..Options::default() };
    let (took, plan) = time(5, || corral::plan(&list, &cluster, options));
    // How busy the racks are while jobs arrive.
    let work: f64 = plan.jobs.iter().map(|p| p.finish.since(p.start).as_secs_f64() * p.racks.len() as f64).sum();
    let load = if minutes == 0 { 1.0 } else { work / (minutes as f64 * 60.0 * racks as f64) };
    let (gap, n) = (plan.gap * 100.0, plan.laid_out);
    println!("corral {scenario:?} {minutes}min\t{jobs} jobs\t{racks} racks\tload {load:.2}\t{took:?}\tgap {gap:.2}%\t{n} laid out");
}

fn corral() {
    for (jobs, racks) in [(100, 100), (200, 100), (300, 100), (400, 100), (500, 100), (1000, 100), (500, 25), (500, 50), (500, 200)] {
        corral_case(jobs, racks, Scenario::Batch, 0);
    }
    for minutes in [30, 60, 120, 240, 480] {
        corral_case(500, 100, Scenario::Online, minutes);
    }
}

fn main() {
    let filter: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wanted = |name: &str| filter.is_empty() || filter.iter().any(|f| name.contains(f.as_str()));
    if wanted("corral") {
        corral();
    }
}
