//! Several policies, or one several times, on the same workload.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::{Args, CheckedRun, interrupted_at_once, one};
use crate::cli::numbers::several;
use crate::cli::{CliError, print, study, write_text};
use crate::runtime::settings::RunPlan;
use crate::runtime::study::AnyResult;
use crate::workload::Workload;

/// Carries a workload under every policy, as many times as asked for, and holds the policies
/// against the first. They take turns, so that what changes on the machine meanwhile meets all of
/// them.
///
/// # Errors
/// A run that failed or was interrupted, or coflows that did not finish.
pub fn compare(
    args: &Args,
    plan: &CheckedRun,
    workload: &Workload,
    stop: &AtomicBool,
) -> Result<(), CliError> {
    let all: Vec<(&RunPlan, &Workload)> = std::iter::once((&plan.run, workload))
        .chain(plan.others.iter().map(|(run, workload)| (run, workload)))
        .collect();
    let names = match &args.policy[..] {
        [] => vec![plan.run.policy.name.clone()],
        files => study::labels(files.iter().zip(all.iter().map(|p| p.0.policy.name.as_str()))),
    };
    let mut results: study::Results = all.iter().map(|_| vec![]).collect();
    let mut unfinished = 0;
    for (k, &of) in (0..args.repeat.unwrap_or(1)).flat_map(|_| all.iter().enumerate()) {
        let result =
            if stop.load(Relaxed) { break } else { one(args, plan, of, &plan.origins[k], stop)? };
        if !stop.load(Relaxed) {
            unfinished += result.summary.unfinished;
            results[k].push(AnyResult::Coflows(Box::new(result)));
        }
    }
    if results.iter().all(Vec::is_empty) {
        return Err(interrupted_at_once());
    }
    args.json.as_ref().map_or(Ok(()), |file| write_text(file, &study::results_json(&results)))?;
    print(&study::show(&[study::of(&names, &results)], args.shown.output))?;
    match (stop.load(Relaxed), unfinished) {
        (true, _) => {
            Err(CliError::Failed("interrupted; the runs that had ended by then stand above".into()))
        }
        (false, 0) => study::accept(args.allow, &names, &results),
        (false, n) => Err(CliError::Failed(format!("{} did not finish", several(n, "coflow")))),
    }
}
