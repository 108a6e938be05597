//! The placement policy `external`: a program that decides as a policy of ours, programs that fail,
//! and a replay without one.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use heliostat::config;
use heliostat::placement::external::{ExternalOptions, FALLBACKS, ProgramOptions};
use heliostat::placement::{Kind, Policy};
use heliostat::runtime::jobs::report::JobsResult;
use heliostat::runtime::jobs::simulate::{JobRunOptions, SimulatedJobs, simulate_with};
use heliostat::runtime::record::replay::replay;
use heliostat::runtime::record::{Pace, Recording};
use heliostat::runtime::report::RunEnd;
use heliostat::runtime::settings::ProgramSpec;
use heliostat::scheduler::spec::JobPolicy;
use heliostat::units::{Span, Time};

fn text(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn by_program(command: &[&str]) -> JobPolicy {
    let command = command.iter().map(|c| (*c).to_owned()).collect();
    by(ProgramOptions { command: Some(command), ..ProgramOptions::default() })
}

fn by(external: ProgramOptions) -> JobPolicy {
    let mut policy = JobPolicy::new(Kind::Fair);
    policy.placement.policy = Policy::External(ExternalOptions { external });
    policy
}

/// A shell program that says hello and then does something.
fn shell(then: &str) -> JobPolicy {
    by_program(&["sh", "-c", &format!("read hello; echo '{{\"protocol\":1}}'; {then}")])
}

fn has_python(test: &str) -> bool {
    let has = Command::new("python3").arg("--version").output().is_ok();
    if !has {
        println!("SKIP {test}: no python3");
    }
    has
}

/// A run of the shipped jobs, and every line of its event log.
fn run(jobs_by: &JobPolicy, course: &JobRunOptions) -> Result<(JobsResult, Vec<String>), String> {
    let topology = config::read_topology(&text("topologies/hybrid-8x2.yaml"), "t").unwrap();
    let plan = config::read_policy(&text("policies/fair.yaml"), "p").unwrap();
    let jobs = config::read_jobs(&text("workloads/jobs-8.yaml"), "j").unwrap();
    let ask = SimulatedJobs {
        topology: &topology,
        plan: &plan,
        jobs_by,
        jobs: &jobs,
        failures: &[],
        faults: &[],
        until: None,
    };
    let mut log = vec![];
    let result =
        simulate_with(&ask, course, &mut |line| log.push(serde_json::to_string(&line).unwrap()))?;
    Ok((result, log))
}

/// Runs under the policy `fair`, and under a program, whose result is given the name of the other
/// and its counters of failures.
fn decide_alike(program: &JobPolicy) -> JobsResult {
    let (ours, our_log) = run(&JobPolicy::new(Kind::Fair), &JobRunOptions::default()).unwrap();
    let (own, own_log) = run(program, &JobRunOptions::default()).unwrap();
    assert!(our_log == own_log, "the event logs differ");
    let mut alike = own.clone();
    (alike.placement, alike.summary.counters.fallbacks, alike.summary.first_fallback) =
        (ours.placement.clone(), 0, None);
    alike.summary.counters.late_answers = 0;
    alike.caveats.clone_from(&ours.caveats);
    assert_eq!(serde_json::to_string(&alike).unwrap(), serde_json::to_string(&ours).unwrap());
    own
}

#[test]
fn a_program_decides_as_the_policy_that_it_copies() {
    if !has_python("a_program_decides_as_the_policy_that_it_copies") {
        return;
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/python/fair.yaml");
    let shipped = heliostat::cli::read_policy(std::path::Path::new(file)).unwrap();
    let own = decide_alike(&shipped.jobs.expect("a policy for jobs"));
    assert_eq!((own.summary.counters.fallbacks, own.summary.first_fallback), (0, None));
}

/// `python/fair.py` at an address of its own. It ends with the value.
struct Served {
    process: Child,
    url: String,
}

impl Served {
    fn start() -> Self {
        let code = "import heliostat; \
                    heliostat.serve_http(0, place=lambda o: heliostat.Start(o.ready[0].job, o.ready[0].stages[0].stage))";
        let mut command = Command::new("python3");
        command
            .args(["-c", code])
            .env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/python"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut said).unwrap();
        let url =
            said.trim().strip_prefix("listens at ").unwrap_or_else(|| panic!("{said}")).into();
        Self { process, url }
    }

    fn policy(&self) -> JobPolicy {
        by(ProgramOptions { url: Some(self.url.clone()), ..ProgramOptions::default() })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

#[test]
fn a_program_at_an_address_decides_as_one_that_is_started() {
    if !has_python("a_program_at_an_address_decides_as_one_that_is_started") {
        return;
    }
    let served = Served::start();
    let own = decide_alike(&served.policy());
    assert_eq!((own.summary.counters.fallbacks, own.summary.first_fallback), (0, None));
    // Another run, while the connection of the first one may still be open.
    decide_alike(&served.policy());
}

/// What a policy file says before its placement.
const HEAD: &str = "name: own\ninterval: 100ms\ndemand: declared\nscheduler: eps-only\n";

#[test]
fn what_a_file_leaves_out_a_program_has_from_its_fallback() {
    for fallback in FALLBACKS {
        let file = format!(
            "{HEAD}placement: {{policy: external, external: {{command: [x], fallback: {}}}}}\n",
            fallback.name()
        );
        let (own, usual) =
            (config::read_policy(&file, "p").unwrap().jobs.unwrap(), JobPolicy::new(fallback));
        assert_eq!(
            (&own.settings, &own.placement.common),
            (&usual.settings, &usual.placement.common),
            "{}",
            fallback.name()
        );
    }
    let offers = |fallback: &str| {
        format!(
            "placement: {{policy: external, wait: {{missed: 3}}, external: {{command: [x], fallback: {fallback}}}}}"
        )
    };
    let read = |fallback: &str| config::read_policy(&format!("{HEAD}{}\n", offers(fallback)), "p");
    assert_eq!(read("capacity").unwrap().jobs.unwrap().placement.common.missed, Some(3));
    assert!(read("fair").unwrap_err().to_string().contains("counts no offers"));
}

#[test]
fn where_a_program_fails_its_fallback_decides_every_offer() {
    let answer = |start: &str| {
        format!(r#"sed -u 's/{{"offer":\([0-9]*\).*/{{"offer":\1,"start":{start}}}/'"#)
    };
    let (no_job, no_host) =
        (answer(r#"{"job":99,"stage":0}"#), answer(r#"{"job":0,"stage":0,"host":99}"#));
    for (then, why) in [
        ("exit 3", "has ended (exit status: 3)"),
        ("echo sun", "`sun`: expected value"),
        (&*no_job, "no task of stage 0 of job 99 may start now"),
        (&*no_host, "no task can start on host 99: there are 16"),
        (
            &*answer(r#"{"job":0,"stage":0,"task":99}"#),
            "task 99 of stage 0 of job 0 does not wait for a slot",
        ),
    ] {
        let own = decide_alike(&shell(then));
        let first = own.summary.first_fallback.unwrap_or_default();
        assert!(first.contains(why), "{then}: {first}");
        assert!(own.summary.counters.fallbacks >= own.summary.counters.starts, "{then}");
    }
}

/// For sed: starts a task of the last stage of the last job that is ready.
const LAST: &str = r#"s/{"offer":\([0-9]*\).*"job":\([0-9]*\),.*"stage":\([0-9]*\),.*/{"offer":\1,"start":{"job":\2,"stage":\3}}/"#;
/// For sed: starts nothing.
const NOTHING: &str = r#"s/{"offer":\([0-9]*\).*/{"offer":\1,"start":null}/"#;

#[test]
fn a_program_that_starts_nothing_ends_the_run() {
    let (r, _) = run(&shell(&format!("sed -u '{NOTHING}'")), &JobRunOptions::default()).unwrap();
    assert_eq!(
        (r.end, r.summary.counters.starts, r.summary.counters.fallbacks),
        (RunEnd::Stuck, 0, 0)
    );
}

#[test]
fn an_offer_is_made_again_when_the_program_asks_for_it() {
    let declined = NOTHING.replace("null", r#"null,"again_at_ns":5000000000"#);
    // In the first five seconds.
    let early = format!(r#"/"at_ns":\([0-4][0-9]\{{9\}}\|[0-9]\{{1,9\}}\),/{{{declined};b}}"#);
    let (r, _) =
        run(&shell(&format!("sed -u -e '{early}' -e '{LAST}'")), &JobRunOptions::default())
            .unwrap();
    assert_eq!(
        (r.end, r.summary.unfinished, r.summary.counters.fallbacks),
        (RunEnd::Finished, 0, 0),
        "{:?}",
        r.summary.first_fallback
    );
    assert_eq!(r.timeline.iter().map(|t| t.started).min(), Some(Time::ZERO + Span::secs(5)));
}

#[test]
fn a_program_that_does_not_start_is_refused() {
    for (command, why) in [
        (&["/nowhere/x"][..], "cannot be started"),
        (&["true"], "has ended"),
        (&["echo", "hello"], "said `hello` first"),
    ] {
        let refused = run(&by_program(command), &JobRunOptions::default()).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn where_a_program_is_has_one_answer() {
    for (external, wrong) in [
        ("{command: [x], url: \"http://a/\"}", "both `command` and `url`"),
        ("{url: \"https://a/\"}", "`https://a/` is no address of a program"),
        ("{url: \"http://me:secret@a/\"}", "no address"),
        ("{url: nowhere}", "no address"),
        ("{command: []}", "no program"),
        ("{within: 1ms}", "no program"),
    ] {
        let placed = format!("{HEAD}placement: {{policy: external, external: {external}}}\n");
        let circuits = format!("{}external: {external}\n", HEAD.replace("eps-only", "external"));
        for file in [placed, circuits] {
            let said = config::read_policy(&file, "p").unwrap_err().to_string();
            assert!(said.contains(wrong) && said.contains("allowed:"), "{file}: {said}");
        }
    }
    let file = format!(
        "{}external: {{url: \"http://127.0.0.1:8000/decide\"}}\n",
        HEAD.replace("eps-only", "external")
    );
    let plan = config::read_policy(&file, "p").unwrap();
    let text = serde_json::to_string(&plan.run.program).unwrap();
    assert!(text.starts_with(r#"{"url":"http://127.0.0.1:8000/decide","within":"#), "{text}");
    assert_eq!(serde_json::from_str::<Option<ProgramSpec>>(&text).unwrap(), plan.run.program);
}

#[test]
fn a_recording_plays_without_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.jsonl");
    let recording =
        Recording::start(std::fs::File::create(&file).unwrap(), Pace::Virtual, Some(1)).unwrap();
    let recorder = recording.recorder();
    let program = shell(&format!("sed -u '{LAST}'"));
    let (r, _) =
        run(&program, &JobRunOptions { record: Some(&recorder), ..JobRunOptions::default() })
            .unwrap();
    drop(recorder);
    recording.finish().unwrap();
    let again = replay(std::io::BufReader::new(std::fs::File::open(&file).unwrap()), None).unwrap();
    let counters = again.jobs.unwrap().counters;
    assert_eq!((counters, counters.starts > 0), (r.summary.counters, true));
}
