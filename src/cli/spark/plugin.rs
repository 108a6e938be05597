//! Spark, a JDK, and the plug-in that Spark needs: compiled against the Spark that is there, at
//! first use.
//!
//! The sources are in this program, so that no file has to be shipped or found. What does not fit
//! another version of Spark fails here with the compiler's message, not in a job.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sha2::{Digest as _, Sha256};

use crate::cli::{CliError, files};

/// The oldest Java that Spark 4 takes.
const JAVA: u32 = 17;

macro_rules! sources {
    ($($file:literal),* $(,)?) => { [$(($file, include_str!(concat!("../../../spark/src/", $file)))),*] };
}

/// The plug-in, by path.
const SOURCES: [(&str, &str); 15] = sources![
    "META-INF/services/org.apache.spark.scheduler.ExternalClusterManager",
    "heliostat/spark/Blocks.java",
    "heliostat/spark/Board.java",
    "heliostat/spark/Clock.java",
    "heliostat/spark/Coflows.java",
    "heliostat/spark/Controller.java",
    "heliostat/spark/DirectBackend.java",
    "heliostat/spark/HeliostatClusterManager.java",
    "heliostat/spark/HeliostatScheduler.java",
    "heliostat/spark/Output.java",
    "heliostat/spark/PlacedTaskSet.java",
    "heliostat/spark/Placement.java",
    "heliostat/spark/Settings.java",
    "heliostat/spark/Shuffle.java",
    "heliostat/spark/Slots.java",
];

/// The Spark of a Python, and a JDK.
pub struct Spark {
    /// The Python that has it.
    pub python: PathBuf,
    /// Where it is installed.
    pub home: PathBuf,
    version: String,
}

impl Spark {
    /// Looks for pyspark and a JDK.
    ///
    /// # Errors
    /// One of them is missing, and what installs it.
    pub fn find(python: Option<&Path>) -> Result<Self, CliError> {
        let from_env = || std::env::var_os("PYSPARK_PYTHON").map(PathBuf::from);
        let python =
            python.map(PathBuf::from).or_else(from_env).unwrap_or_else(|| "python3".into());
        let ask = "import os, pyspark, sys; print(sys.executable); print(os.path.dirname(pyspark.__file__)); print(pyspark.__version__)";
        let told = Command::new(&python).args(["-c", ask]).output();
        let told = told
            .ok()
            .filter(|o| o.status.success())
            .map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
        let lines: Vec<String> = told.unwrap_or_default().lines().map(str::to_owned).collect();
        let [python, home, version] = <[String; 3]>::try_from(lines).map_err(|_| {
            let install = "python3 -m venv spark-env && spark-env/bin/pip install pyspark";
            CliError::Failed(format!(
                "pyspark is not installed for {}: `{install}`, then --python spark-env/bin/python",
                python.display()
            ))
        })?;
        let major = version.split('.').next().and_then(|v| v.parse::<u32>().ok());
        if major.is_none_or(|v| v < 4) {
            return Err(CliError::Failed(format!(
                "pyspark {version} is too old: 4.0 or later is needed"
            )));
        }
        Ok(Self { python: python.into(), home: home.into(), version })
    }

    /// The plug-in as a jar, compiled against this Spark if that was not done before.
    ///
    /// # Errors
    /// There is no JDK, or the plug-in does not compile against this Spark.
    pub fn plugin(&self) -> Result<PathBuf, CliError> {
        jdk()?;
        let mut hash = Sha256::new();
        hash.update(&self.version);
        SOURCES.iter().for_each(|(name, text)| hash.update([name, "\0", text, "\0"].concat()));
        let cache = cache();
        fs::create_dir_all(no_settings()).map_err(|e| files::failed(&no_settings(), &e))?;
        let jar = cache.join(format!("spark-{}-{}.jar", self.version, hex(hash.finalize())));
        if jar.exists() {
            return Ok(jar);
        }
        let scratch = tempfile::tempdir_in(&cache).map_err(|e| files::failed(&cache, &e))?;
        self.compile(scratch.path())?;
        // Another process may have made the same meanwhile.
        fs::rename(scratch.path().join("plugin.jar"), &jar).map_err(|e| files::failed(&jar, &e))?;
        Ok(jar)
    }

    /// `spark-submit` without arguments. Of what the user has set for Spark elsewhere it reads
    /// nothing.
    pub fn submit(&self) -> Command {
        let mut submit = Command::new(self.home.join("bin/spark-submit"));
        self.environment(&mut submit);
        submit
    }

    /// Sets what `spark-submit` and all that it starts find in their environment.
    pub fn environment(&self, command: &mut Command) {
        command.env("SPARK_HOME", &self.home).env("SPARK_CONF_DIR", no_settings());
        command.env("PYSPARK_PYTHON", &self.python).env("PYSPARK_DRIVER_PYTHON", &self.python);
        for name in ["SPARK_LOCAL_DIRS", "PYSPARK_SUBMIT_ARGS", "HELIOSTAT_CONTROLLER"] {
            command.env_remove(name);
        }
    }

    fn compile(&self, scratch: &Path) -> Result<(), CliError> {
        let mut javac = Command::new(program("javac"));
        javac
            .args(["--release", "17", "-nowarn", "-proc:none", "-d", "classes", "-cp"])
            .arg(self.home.join("jars/*"));
        for (name, text) in SOURCES {
            let java = name.ends_with(".java");
            let file = scratch.join(if java { "sources" } else { "classes" }).join(name);
            let folder = file.parent().unwrap_or(scratch);
            fs::create_dir_all(folder).map_err(|e| files::failed(folder, &e))?;
            files::write_text(&file, text)?;
            if java {
                javac.arg(file);
            }
        }
        let ran = javac.current_dir(scratch).output();
        succeeded(ran, &format!("compile the plug-in for pyspark {}", self.version))?;
        let mut jar = Command::new(program("jar"));
        let ran = jar
            .args(["--create", "--file", "plugin.jar", "-C", "classes", "."])
            .current_dir(scratch)
            .output();
        succeeded(ran, "pack the plug-in")
    }
}

fn succeeded(ran: std::io::Result<Output>, what: &str) -> Result<(), CliError> {
    let ran = ran.map_err(|e| CliError::Failed(format!("{what}: {e}")))?;
    let said = String::from_utf8_lossy(&ran.stderr);
    if ran.status.success() {
        Ok(())
    } else {
        Err(CliError::Failed(format!("{what}: {}", said.trim())))
    }
}

/// The first eight bytes of a hash.
pub fn hex(hash: impl AsRef<[u8]>) -> String {
    hash.as_ref().iter().take(8).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// A program of the JDK.
pub fn program(name: &str) -> PathBuf {
    std::env::var_os("JAVA_HOME")
        .map_or_else(|| name.into(), |home| Path::new(&home).join("bin").join(name))
}

/// Whether there is a JDK that is new enough.
fn jdk() -> Result<(), CliError> {
    let told =
        Command::new(program("javac")).arg("-version").output().ok().filter(|o| o.status.success());
    let told = told.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    let install = format!(
        "a JDK of version {JAVA} or later is needed: `sudo apt install openjdk-{JAVA}-jdk-headless`, or JAVA_HOME"
    );
    match told {
        None => Err(CliError::Failed(format!("there is no javac; {install}"))),
        Some(told) if version(&told).is_none_or(|v| v < JAVA) => {
            Err(CliError::Failed(format!("{told} was found; {install}")))
        }
        Some(_) => Ok(()),
    }
}

/// The version that `javac 17.0.15` tells.
fn version(told: &str) -> Option<u32> {
    told.strip_prefix("javac ")?.split(['.', '-', '+']).next()?.parse().ok()
}

/// Spark's directory for settings, which is empty. It stands in the path of classes, where an
/// archive of them can have no other directory.
fn no_settings() -> PathBuf {
    cache().join("no-settings")
}

/// Where what was compiled is kept.
pub fn cache() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(".cache"));
    set("XDG_CACHE_HOME").or_else(home).unwrap_or_else(std::env::temp_dir).join("heliostat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_java_are_read() {
        assert_eq!(version("javac 17.0.15"), Some(17));
        assert_eq!(version("javac 21-ea"), Some(21));
        assert_eq!(version("javac 1.8.0_292"), Some(1));
        assert_eq!(version("something"), None);
    }

    #[test]
    fn all_sources_are_in_the_program() {
        let folder = crate::testing::repository("spark/src/heliostat/spark");
        let files =
            fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
        let mut there: Vec<String> = files.map(|f| format!("heliostat/spark/{f}")).collect();
        there.sort_unstable();
        assert_eq!(SOURCES[1..].iter().map(|s| s.0).collect::<Vec<_>>(), there);
    }

    #[test]
    fn a_python_without_pyspark_is_told_how_to_get_it() {
        let e =
            Spark::find(Some(Path::new("false"))).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(e.contains("pip install pyspark"), "{e}");
    }
}
