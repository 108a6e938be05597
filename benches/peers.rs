//! Exact matchings beside other programs', on the same files, in one run: `taskset -c 1 cargo bench
//! --bench peers -- DIR ...`.
//!
//! ```text
//! peers --write DIR [--seeds N]           writes the matrices of `support` as .dm files (docs/circuits.md has the format)
//! peers DIR [--table] [--peer 'PROGRAM SOLVER']... [--only TEXT] [--reps N]
//! ```
//!
//! A peer is called as `PROGRAM SOLVER FILE REPS SECONDS` and prints one line of fields between
//! tabs: the second says `general` or `bipartite`, the eighth is the median time of its solver call
//! in nanoseconds and the ninth the least, the sixth and the seventh are these with the time in
//! which the demand matrix becomes what the solver takes (0: not known), the fourteenth is the
//! weight. Ours is the call with the demand matrix as its argument, so reading the demand into the
//! solver's own form is part of our time. Sequences (`w1B-128-t00.dm`, `-t01.dm` ...) are solved
//! step by step from a warm start, for us alone. A weight that differs is an error.
//!
//! `--seeds` writes classes b, d, e in nine sizes, each from that many seeds (`bB-64-s0.dm` ...).
//! `--table` takes such files: for each file we and the peers take turns, the least time of each
//! counts, and a row is a class and a size over all seeds. `scripts/peers` does both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use heliostat::circuits::Matching;
use heliostat::circuits::decompose::solstice;
use heliostat::circuits::matching::{Prices, bipartite, bipartite_from, edmonds, edmonds_from};
use heliostat::config::matrix;
use heliostat::demand::DemandMatrix;
use heliostat::units::{BitRate, Span};

mod support;

type Cold = fn(&DemandMatrix) -> Matching;
type Warm = fn(&mut Prices, &DemandMatrix, Option<&Matching>) -> Matching;

struct Options {
    dir: PathBuf,
    peers: Vec<String>,
    only: String,
    reps: usize,
    table: bool,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let run = || -> Result<(), String> {
        match &args[..] {
            [flag, dir] if flag == "--write" => return write(Path::new(dir)),
            [flag, dir, seeds, n] if flag == "--write" && seeds == "--seeds" => {
                return write_seeds(
                    Path::new(dir),
                    n.parse().map_err(|e| format!("--seeds: {e}"))?,
                );
            }
            _ => {}
        }
        let Some(options) = options(&args)? else {
            println!(
                "no directory of .dm files given: nothing is measured (`-- --write DIR` makes one)"
            );
            return Ok(());
        };
        if options.table { table(&options) } else { compare(&options) }
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn options(args: &[String]) -> Result<Option<Options>, String> {
    let mut o =
        Options { dir: PathBuf::new(), peers: vec![], only: String::new(), reps: 25, table: false };
    let mut rest = args.iter();
    while let Some(a) = rest.next() {
        let mut value = || rest.next().cloned().ok_or(format!("{a} needs a value"));
        match a.as_str() {
            "--peer" => o.peers.push(value()?),
            "--only" => o.only = value()?,
            "--table" => o.table = true,
            "--reps" => o.reps = value()?.parse().map_err(|e| format!("--reps: {e}"))?,
            dir if !dir.starts_with('-') => o.dir = dir.into(),
            other => {
                return Err(format!(
                    "{other} is not an option: --write, --table, --peer, --only, --reps"
                ));
            }
        }
    }
    Ok((!o.dir.as_os_str().is_empty()).then_some(o))
}

fn put(dir: &Path, name: &str, d: &DemandMatrix) -> Result<(), String> {
    let mut out = (d.racks() as u32).to_le_bytes().to_vec();
    d.cells().iter().for_each(|c| out.extend(c.to_le_bytes()));
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(dir.join(name), out))
        .map_err(|e| format!("{}/{name}: {e}", dir.display()))
}

fn write_seeds(dir: &Path, seeds: u64) -> Result<(), String> {
    for class in ["bB", "dB", "es"] {
        for racks in [64, 96, 128, 192, 256, 384, 512, 768, 1024] {
            for seed in 0..seeds {
                put(
                    dir,
                    &format!("{class}-{racks}-s{seed}.dm"),
                    &support::drawn(class.as_bytes()[0].into(), racks, seed),
                )?;
            }
        }
    }
    Ok(())
}

fn write(dir: &Path) -> Result<(), String> {
    for racks in [64, 256, 1024] {
        for class in ['a', 'b', 'c', 'd', 'e', 'g', 'x', 'y'] {
            let scale = if class == 'e' { 's' } else { 'B' };
            put(dir, &format!("{class}{scale}-{racks}.dm"), &support::matrix(class, racks))?;
        }
    }
    for racks in [128, 512, 1024] {
        for name in ["w1", "w2", "w3"] {
            for (k, d) in support::sequence(name, racks, 4).iter().enumerate() {
                put(dir, &format!("{name}B-{racks}-t{k:02}.dm"), d)?;
            }
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<DemandMatrix, String> {
    let content = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    matrix::read(&content, &file.display().to_string()).map_err(|e| e.to_string())
}

fn files(o: &Options) -> Result<Vec<String>, String> {
    let list = std::fs::read_dir(&o.dir).map_err(|e| format!("{}: {e}", o.dir.display()))?;
    let mut files: Vec<String> =
        list.flatten().map(|f| f.file_name().to_string_lossy().into_owned()).collect();
    files.retain(|f| f.ends_with(".dm") && f.contains(&o.only));
    files.sort_by_key(|f| {
        (
            f.split('-').nth(1).and_then(|r| r.trim_end_matches(".dm").parse().ok()).unwrap_or(0),
            f.clone(),
        )
    });
    Ok(files)
}

/// A file's least times in nanoseconds.
struct Beside {
    ours: u64,
    /// The fastest peer's call.
    call: u64,
    /// The fastest peer's call and what makes its input of the matrix.
    whole: u64,
    /// The peer with the fastest call.
    name: String,
}

fn table(o: &Options) -> Result<(), String> {
    let mut rows: BTreeMap<(&str, String, usize), Vec<Beside>> = BTreeMap::new();
    // By problem: who solves it. Who does not is not asked again.
    let mut peers = [o.peers.clone(), o.peers.clone()];
    for f in &files(o)? {
        let [class, racks, ..] = f.split('-').collect::<Vec<_>>()[..] else { continue };
        let path = o.dir.join(f);
        let d = read(&path)?;
        let problems: [(&str, Cold); 2] =
            [("bipartite", |d| bipartite(d, None)), ("general", |d| edmonds(d, None))];
        // Dense general matchings take peers seconds.
        for ((kind, solve), peers) in
            problems.into_iter().zip(&mut peers).filter(|p| p.0.0 == "bipartite" || class == "bB")
        {
            if let Some(b) = beside(o, &d, &path, kind, solve, peers)? {
                rows.entry((kind, class.to_owned(), racks.parse().unwrap_or(0)))
                    .or_default()
                    .push(b);
            }
        }
    }
    println!(
        "| problem | class | racks | seeds | ours us, median (worst) | ours / peer, median (worst) | ours / its call | peers |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for ((kind, class, racks), list) in rows {
        let sorted = |f: fn(&Beside) -> f64| {
            let mut all: Vec<f64> = list.iter().map(f).collect();
            all.sort_by(f64::total_cmp);
            (all[all.len() / 2], all[all.len() - 1])
        };
        let (ours, whole) =
            (sorted(|b| b.ours as f64 / 1e3), sorted(|b| b.ours as f64 / b.whole as f64));
        let call = sorted(|b| b.ours as f64 / b.call as f64);
        let names: BTreeSet<&str> = list.iter().map(|b| &*b.name).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let of = |(median, worst): (f64, f64)| format!("{median:.2} ({worst:.2})");
        println!(
            "| {kind} | {class} | {racks} | {} | {:.1} ({:.1}) | {} | {} | {names} |",
            list.len(),
            ours.0,
            ours.1,
            of(whole),
            of(call)
        );
    }
    Ok(())
}

/// We and the peers on one file, in turns.
fn beside(
    o: &Options,
    d: &DemandMatrix,
    path: &Path,
    kind: &str,
    solve: Cold,
    all: &mut Vec<String>,
) -> Result<Option<Beside>, String> {
    const ROUNDS: usize = 3;
    let (mut ours, mut best) = (u64::MAX, None::<Beside>);
    let mut peers = all.clone();
    for round in 0..ROUNDS {
        let ((least, _), m) = times(o.reps, 0.2, || solve(d));
        ours = ours.min(least);
        let mut asked = vec![];
        for p in &peers {
            let Some(Times { least, whole, weight, .. }) = peer(p, path, kind, o.reps, 0.2)? else {
                continue;
            };
            if weight != m.weight(d) {
                return Err(format!(
                    "{}: {p} found the weight {weight}, we {}",
                    path.display(),
                    m.weight(d)
                ));
            }
            asked.push((least, p.clone()));
            let name = p.rsplit(' ').next().unwrap_or(p).to_owned();
            best = Some(match best.take() {
                None => Beside { ours, call: least, whole, name },
                Some(b) => Beside {
                    call: b.call.min(least),
                    whole: b.whole.min(whole),
                    name: if least < b.call { name } else { b.name },
                    ..b
                },
            });
        }
        if round == 0 {
            all.retain(|p| asked.iter().any(|a| a.1 == *p));
        }
        // Who is five times as slow as the best need not be asked again about this file.
        let limit = best.as_ref().map_or(0, |b| 5 * b.call);
        peers = asked.into_iter().filter(|a| a.0 <= limit).map(|a| a.1).collect();
    }
    Ok(best.map(|b| Beside { ours, ..b }))
}

fn compare(o: &Options) -> Result<(), String> {
    let files = files(o)?;
    println!("{:<16} {:<16} {:>12}  peers: us (ours/theirs)", "file", "problem", "ours us");
    for f in &files {
        let path = o.dir.join(f);
        if let Some(stem) = f.strip_suffix("-t00.dm") {
            sequence(o, stem)?;
        } else if !f.contains("-t") {
            one(o, f, &path)?;
        }
    }
    Ok(())
}

fn one(o: &Options, name: &str, path: &Path) -> Result<(), String> {
    let d = read(path)?;
    let problems: [(&str, Cold); 2] =
        [("bipartite", |d| bipartite(d, None)), ("general", |d| edmonds(d, None))];
    for (kind, solve) in problems {
        let ((_, ns), m) = times(o.reps, 2.0, || solve(&d));
        let weight = m.weight(&d);
        let mut line = format!("{name:<16} {kind:<16} {:>12.1}", ns as f64 / 1e3);
        for p in &o.peers {
            let Some(theirs) = peer(p, path, kind, o.reps, 2.0)? else { continue };
            if theirs.weight != weight {
                return Err(format!("{name}: {p} found the weight {}, we {weight}", theirs.weight));
            }
            let solver = p.rsplit(' ').next().unwrap_or(p);
            line += &format!(
                "  {solver} {:.1} ({:.2})",
                theirs.median as f64 / 1e3,
                ns as f64 / theirs.median.max(1) as f64
            );
        }
        println!("{line}");
    }
    if name.starts_with('b') {
        // Solstice's own setting: 100 Gb/s circuits, a tenth of that electrically, 20 us in the
        // dark.
        let (rate, eps) = (BitRate(100_000_000_000), BitRate(10_000_000_000));
        let ((_, ns), slots) =
            times(o.reps, 2.0, || solstice(&d, rate, Span::micros(20), eps, Span::MAX));
        println!(
            "{name:<16} {:<16} {:>12.1}  {} configurations",
            "solstice",
            ns as f64 / 1e3,
            slots.len()
        );
    }
    Ok(())
}

/// The least and the median time of a call in nanoseconds, and what it gave.
fn times<T>(reps: usize, seconds: f64, mut f: impl FnMut() -> T) -> ((u64, u64), T) {
    let mut times = Vec::with_capacity(reps);
    let mut out = f();
    let begun = Instant::now();
    while times.len() < reps.max(1) && (times.len() < 3 || begun.elapsed().as_secs_f64() < seconds)
    {
        let t = Instant::now();
        out = std::hint::black_box(f());
        times.push(t.elapsed().as_nanos() as u64);
    }
    times.sort_unstable();
    ((times[0], times[times.len() / 2]), out)
}

/// A peer's times in nanoseconds, and the weight that it found.
struct Times {
    median: u64,
    least: u64,
    /// The least with what makes its input; [`u64::MAX`] if the peer does not say.
    whole: u64,
    weight: u128,
}

/// Nothing where a peer solves the other problem, or fails.
fn peer(
    command: &str,
    file: &Path,
    kind: &str,
    reps: usize,
    seconds: f64,
) -> Result<Option<Times>, String> {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let limits = [reps.to_string(), seconds.to_string()];
    let out = Command::new(program)
        .args(words)
        .arg(file)
        .args(limits)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let fields: Vec<&str> = text.trim().split('\t').collect();
    if !out.status.success() || fields.get(1) != Some(&kind) {
        return Ok(None);
    }
    let number = |k: usize| {
        fields
            .get(k)
            .and_then(|f| f.parse::<u128>().ok())
            .ok_or(format!("{command} printed {text:?}"))
    };
    let whole = Some(number(6)? as u64).filter(|&t| t > 0).unwrap_or(u64::MAX);
    Ok(Some(Times {
        median: number(7)? as u64,
        least: number(8)? as u64,
        whole,
        weight: number(13)?,
    }))
}

/// All steps but the first, each from the one before.
fn sequence(o: &Options, stem: &str) -> Result<(), String> {
    let paths = (0..).map(|k| o.dir.join(format!("{stem}-t{k:02}.dm"))).take_while(|p| p.exists());
    let steps: Vec<DemandMatrix> = paths.map(|p| read(&p)).collect::<Result<_, _>>()?;
    let problems: [(&str, Warm, Cold); 2] = [
        ("bipartite, warm", bipartite_from, |d| bipartite(d, None)),
        ("general, warm", edmonds_from, |d| edmonds(d, None)),
    ];
    for (kind, solve, cold) in problems {
        let mut times = vec![];
        for _ in 0..5 {
            let mut prices = Prices::default();
            solve(&mut prices, &steps[0], None);
            for d in &steps[1..] {
                let t = Instant::now();
                let m = std::hint::black_box(solve(&mut prices, d, None));
                times.push(t.elapsed().as_nanos() as u64);
                if m.weight(d) != cold(d).weight(d) {
                    return Err(format!("{stem}: warm and cold differ"));
                }
            }
        }
        times.sort_unstable();
        println!("{stem:<16} {kind:<16} {:>12.1}", times[times.len() / 2] as f64 / 1e3);
    }
    Ok(())
}
