//! Exact matchings beside other programs', on the same files, in one run: `taskset -c 1 cargo bench --bench peers -- DIR ...`.
//!
//! ```text
//! peers --write DIR                       writes the matrices of `support` as .dm files (docs/circuits.md has the format)
//! peers DIR [--peer 'PROGRAM SOLVER']... [--only TEXT] [--reps N]
//! ```
//!
//! A peer is called as `PROGRAM SOLVER FILE REPS SECONDS` and prints one line of fields between tabs: the second says `general` or
//! `bipartite`, the eighth is the median time of its solver call in nanoseconds, the fourteenth the weight. Ours is the call with the
//! demand matrix as its argument, so reading the demand into the solver's own form is part of our time and not of theirs. Sequences
//! (`w1B-128-t00.dm`, `-t01.dm` ...) are solved step by step from a warm start, for us alone. A weight that differs is an error.

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
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let run = || -> Result<(), String> {
        if let [flag, dir] = &args[..]
            && flag == "--write"
        {
            return write(Path::new(dir));
        }
        let Some(options) = options(&args)? else {
            println!("no directory of .dm files given: nothing is measured (`-- --write DIR` makes one)");
            return Ok(());
        };
        compare(&options)
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
    let mut o = Options { dir: PathBuf::new(), peers: vec![], only: String::new(), reps: 25 };
    let mut rest = args.iter();
    while let Some(a) = rest.next() {
        let mut value = || rest.next().cloned().ok_or(format!("{a} needs a value"));
        match a.as_str() {
            "--peer" => o.peers.push(value()?),
            "--only" => o.only = value()?,
            "--reps" => o.reps = value()?.parse().map_err(|e| format!("--reps: {e}"))?,
            dir if !dir.starts_with('-') => o.dir = dir.into(),
            other => return Err(format!("{other} is not an option: --write, --peer, --only, --reps")),
        }
    }
    Ok((!o.dir.as_os_str().is_empty()).then_some(o))
}

fn write(dir: &Path) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let put = |name: String, d: &DemandMatrix| {
        let mut out = (d.racks() as u32).to_le_bytes().to_vec();
        d.cells().iter().for_each(|c| out.extend(c.to_le_bytes()));
        std::fs::write(dir.join(&name), out).map_err(|e| format!("{name}: {e}"))
    };
    for racks in [64, 256, 1024] {
        for class in ['a', 'b', 'c', 'd', 'e', 'g', 'x', 'y'] {
            let scale = if class == 'e' { 's' } else { 'B' };
            put(format!("{class}{scale}-{racks}.dm"), &support::matrix(class, racks))?;
        }
    }
    for racks in [128, 512, 1024] {
        for name in ["w1", "w2", "w3"] {
            for (k, d) in support::sequence(name, racks, 4).iter().enumerate() {
                put(format!("{name}B-{racks}-t{k:02}.dm"), d)?;
            }
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<DemandMatrix, String> {
    let content = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    matrix::read(&content, &file.display().to_string()).map_err(|e| e.to_string())
}

fn compare(o: &Options) -> Result<(), String> {
    let list = std::fs::read_dir(&o.dir).map_err(|e| format!("{}: {e}", o.dir.display()))?;
    let mut files: Vec<String> = list.flatten().map(|f| f.file_name().to_string_lossy().into_owned()).collect();
    files.retain(|f| f.ends_with(".dm") && f.contains(&o.only));
    files.sort_by_key(|f| (f.split('-').nth(1).and_then(|r| r.trim_end_matches(".dm").parse().ok()).unwrap_or(0), f.clone()));
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
    let problems: [(&str, Cold); 2] = [("bipartite", |d| bipartite(d, None)), ("general", |d| edmonds(d, None))];
    for (kind, solve) in problems {
        let (ns, m) = median(o.reps, || solve(&d));
        let weight = m.weight(&d);
        let mut line = format!("{name:<16} {kind:<16} {:>12.1}", ns as f64 / 1e3);
        for p in &o.peers {
            let Some((theirs, w)) = peer(p, path, kind, o.reps)? else { continue };
            if w != weight {
                return Err(format!("{name}: {p} found the weight {w}, we {weight}"));
            }
            let solver = p.split(' ').nth(1).unwrap_or(p);
            line += &format!("  {solver} {:.1} ({:.2})", theirs as f64 / 1e3, ns as f64 / theirs.max(1) as f64);
        }
        println!("{line}");
    }
    if name.starts_with('b') {
        // Solstice's own setting: 100 Gb/s circuits, a tenth of that electrically, 20 us in the dark.
        let (rate, eps) = (BitRate(100_000_000_000), BitRate(10_000_000_000));
        let (ns, slots) = median(o.reps, || solstice(&d, rate, Span::micros(20), eps, Span::MAX));
        println!("{name:<16} {:<16} {:>12.1}  {} configurations", "solstice", ns as f64 / 1e3, slots.len());
    }
    Ok(())
}

/// The median time of a call, and what it gave.
fn median<T>(reps: usize, mut f: impl FnMut() -> T) -> (u64, T) {
    let mut times = Vec::with_capacity(reps);
    let mut out = f();
    let begun = Instant::now();
    while times.len() < reps.max(1) && (times.len() < 3 || begun.elapsed().as_secs() < 2) {
        let t = Instant::now();
        out = std::hint::black_box(f());
        times.push(t.elapsed().as_nanos() as u64);
    }
    times.sort_unstable();
    (times[times.len() / 2], out)
}

/// A peer's median and weight; nothing where it solves the other problem, or fails.
fn peer(command: &str, file: &Path, kind: &str, reps: usize) -> Result<Option<(u64, u128)>, String> {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let out = Command::new(program).args(words).arg(file).args([&reps.to_string(), "2"]).output().map_err(|e| format!("{program}: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let fields: Vec<&str> = text.trim().split('\t').collect();
    if !out.status.success() || fields.get(1) != Some(&kind) {
        return Ok(None);
    }
    let number = |k: usize| fields.get(k).and_then(|f| f.parse::<u128>().ok()).ok_or(format!("{command} printed {text:?}"));
    Ok(Some((number(7)? as u64, number(13)?)))
}

/// All steps but the first, each from the one before.
fn sequence(o: &Options, stem: &str) -> Result<(), String> {
    let paths = (0..).map(|k| o.dir.join(format!("{stem}-t{k:02}.dm"))).take_while(|p| p.exists());
    let steps: Vec<DemandMatrix> = paths.map(|p| read(&p)).collect::<Result<_, _>>()?;
    let problems: [(&str, Warm, Cold); 2] =
        [("bipartite, warm", bipartite_from, |d| bipartite(d, None)), ("general, warm", edmonds_from, |d| edmonds(d, None))];
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
