//! An archive of Spark's classes: a JVM that maps it starts in half of the time, and all JVMs share
//! its memory (class data sharing, JEP 350). It is made once for a Spark and a JDK.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest as _, Sha256};

use super::plugin::{Spark, cache, hex, program};
use crate::cli::files;

/// What is run so that its classes are loaded: an application with the usual shuffles.
const APPLICATION: &str = include_str!("../../../spark/shuffles.py");

/// The archive for this Spark with this plug-in, made if it was not there, in the place of one for
/// another plug-in. `options`: those of all JVMs.
///
/// # Errors
/// It cannot be made, and why; Spark runs without it.
pub fn archive(spark: &Spark, jar: &Path, options: &str) -> Result<PathBuf, String> {
    let java = Command::new(program("java")).arg("-version").output();
    let java = java.map_err(|e| format!("start java: {e}"))?;
    let of = |what: String| hex(Sha256::digest(what));
    let here = format!("classes-{}-", of(format!("{:?} {:?}", spark.home, java.stderr)));
    let file = cache().join(format!("{here}{}.jsa", of(format!("{jar:?} {options}"))));
    if file.exists() {
        return Ok(file);
    }
    super::note("makes an archive of Spark's classes, once, for quicker starts");
    let failed = |e: std::io::Error| format!("{}: {e}", file.display());
    let scratch = tempfile::tempdir_in(cache()).map_err(failed)?;
    let [new, application] = ["classes.jsa", "shuffles.py"].map(|name| scratch.path().join(name));
    files::write_text(&application, APPLICATION).map_err(|e| e.to_string())?;
    let mut submit = spark.submit();
    submit.args(["--master", "local[2]", "--driver-class-path"]).arg(jar);
    submit.args(["--conf", "spark.ui.enabled=false", "--conf"]);
    submit.arg(format!(
        "spark.driver.defaultJavaOptions={options} -XX:ArchiveClassesAtExit={}",
        new.display()
    ));
    submit.arg(&application).args(["sort", "group", "join", "--mb", "1"]);
    submit.env("SPARK_LOCAL_IP", "127.0.0.1").current_dir(scratch.path()).stdin(Stdio::null());
    let ran = submit.output().map_err(|e| format!("start spark-submit: {e}"))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        return Err(format!("spark-submit ({}): {}", ran.status, said.trim()));
    }
    // Another process may have made the same meanwhile.
    fs::rename(&new, &file).map_err(failed)?;
    // Each has 160 MB.
    for old in fs::read_dir(cache()).into_iter().flatten().flatten().map(|f| f.path()) {
        let name = old.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&here) && old != file {
            let _ = fs::remove_file(&old);
        }
    }
    Ok(file)
}
