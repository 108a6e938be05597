//! spark-submit in the first host, and what it reports while it runs.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::shown::SparkOutcome;
use super::{LOOK, SparkRun, program};
use crate::cli::files::write_text;
use crate::kernel::sys::{self, ProcessHandle};
use crate::runtime::open;

/// How long a driver may take to end when it is asked to.
const GOING: Duration = Duration::from_secs(10);

/// Spark says warnings and errors, on stderr.
const LOG: &str = "rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
# What it says of every machine without Hadoop, and of the directory that is set for it.
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.conf.name = org.apache.spark.SparkConf
logger.conf.level = error
";

/// Runs the application to its end. Gives why it failed, if it did.
///
/// # Errors
/// It could not be started or followed.
pub fn submit(
    plan: &SparkRun<'_>,
    scratch: &Path,
    logs: &Path,
    outcome: &mut SparkOutcome,
    stop: &AtomicBool,
) -> Result<Option<String>, String> {
    let report = scratch.join("report.jsonl");
    write_text(&scratch.join(super::LOG4J), LOG).map_err(|e| e.to_string())?;
    let made = open::to_write(&report, false).and_then(|_| open::to_read(&report));
    let mut lines =
        BufReader::new(made.map_err(|e| format!("{}: {}", report.display(), open::plain(&e)))?);
    let mut child = sys::ends_with_parent(sys::own_session(&mut command(plan, scratch, logs)))
        .spawn()
        .map_err(|e| format!("start spark-submit: {e}"))?;
    let followed = follow(child.id(), &mut lines, outcome, stop);
    // Executors and whatever else it started are in its session.
    let _ = sys::kill_group(child.id());
    let status = followed
        .and_then(|ended| child.wait().map(|s| (ended, s)))
        .map_err(|e| format!("follow the application: {e}"))?;
    Ok(Some(status)
        .filter(|(ended, s)| *ended && !s.success())
        .map(|(_, s)| format!("the application failed ({s})")))
}

fn command(plan: &SparkRun<'_>, scratch: &Path, logs: &Path) -> Command {
    let (driver, spark) = (&plan.hosts[0], plan.spark);
    let mut command = Command::new(program());
    command
        .args(["exec", "--name", &plan.place.name, driver, "--"])
        .arg(spark.home.join("bin/spark-submit"));
    command
        .args(["--master", "spark-heliostat", "--driver-class-path"])
        .arg(class_path(plan.jar, &plan.args.conf));
    for (key, value) in super::settings(plan, scratch, logs) {
        command.arg("--conf").arg(format!("{key}={value}"));
    }
    for setting in &plan.args.conf {
        command.args(["--conf", setting]);
    }
    command.args(&plan.args.app).stdin(Stdio::null());
    spark.environment(&mut command);
    command.env("SPARK_LOCAL_IP", driver).env("SPARK_LOCAL_HOSTNAME", driver);
    command
}

/// Where the driver finds classes: the plug-in, and what the user's settings add, which the option
/// of spark-submit would hide.
fn class_path(jar: &Path, conf: &[String]) -> OsString {
    let mut all = OsString::from(jar);
    let added = |c: &'_ String| c.strip_prefix("spark.driver.extraClassPath=").map(str::to_owned);
    if let Some(more) = conf.iter().rev().find_map(added) {
        all.push(format!(":{more}"));
    }
    all
}

/// Waits until a child has ended, and takes what is reported until then. Says whether it ended by
/// itself, and was not asked to.
fn follow(
    child: u32,
    lines: &mut impl BufRead,
    outcome: &mut SparkOutcome,
    stop: &AtomicBool,
) -> io::Result<bool> {
    let mut part = String::new();
    loop {
        let ended = sys::child_has_ended(child)?;
        while lines.read_line(&mut part)? > 0 {
            // A line that is half written has no end yet.
            if part.ends_with('\n') {
                outcome.take(&part);
                part.clear();
            }
        }
        if ended {
            return Ok(true);
        }
        if stop.load(Relaxed) {
            let process = ProcessHandle::open(child)?;
            process.terminate()?;
            process.ends_within(GOING)?;
            return Ok(false);
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_the_user_stand_beside_the_plug_in() {
        let of = |conf: &[&str]| {
            class_path(Path::new("/p.jar"), &conf.iter().map(|c| c.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["spark.executor.extraClassPath=/a"]), "/p.jar");
        assert_eq!(
            of(&["spark.driver.extraClassPath=/a", "spark.driver.extraClassPath=/b:/c"]),
            "/p.jar:/b:/c"
        );
    }
}
