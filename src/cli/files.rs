//! Files that are read and written: never more of them than is wanted, and a result's file is old
//! or new, never half.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::CliError;
use super::changes::{KeyChange, changed};
use crate::config;
use crate::config::shipped::{self, Shelf};
use crate::draw::{PictureFormat, Sheet};
use crate::placement::Policy;
use crate::runtime::open::{self, Unread};
use crate::runtime::settings::RunPlan;
use crate::topology::Topology;

/// Bytes of the largest workload or trace that is read.
const WORKLOAD: u64 = 256_000_000;
/// Bytes of the largest result or event log that is read.
const RESULT: u64 = 4_000_000_000;

/// A file of ours as text, other than a workload: faults, notes.
///
/// # Errors
/// When it cannot be read, is not UTF-8, or is longer than such a file may be. No more of it is
/// read than that.
pub fn read_text(file: &Path) -> Result<String, CliError> {
    read(file, config::MAX_BYTES as u64)
}

/// A topology: a file, or the name of a shipped one.
///
/// # Errors
/// As [`read_text`], and a text that makes no sense.
pub fn read_topology(file: &Path) -> Result<Topology, CliError> {
    read_topology_with(file, &[])
}

/// The same with some keys changed.
///
/// # Errors
/// As [`read_topology`], and a change that leads nowhere.
pub fn read_topology_with(file: &Path, changes: &[KeyChange]) -> Result<Topology, CliError> {
    let name = file.display().to_string();
    let text =
        changed(read_shipped(Shelf::Topologies, file, &[])?, &name, Shelf::Topologies, changes)?;
    Ok(config::read_topology(&text, &name)?)
}

/// A policy: a file, or the name of a shipped one. Programs that a file names are started in its
/// directory.
///
/// # Errors
/// As [`read_topology`].
pub fn read_policy(file: &Path) -> Result<RunPlan, CliError> {
    read_policy_with(file, &[])
}

/// The same with some keys changed.
///
/// # Errors
/// As [`read_policy`], and a change that leads nowhere.
pub fn read_policy_with(file: &Path, changes: &[KeyChange]) -> Result<RunPlan, CliError> {
    let name = file.display().to_string();
    let text = changed(read_shipped(Shelf::Policies, file, &[])?, &name, Shelf::Policies, changes)?;
    let mut plan = config::read_policy(&text, &name)?;
    let directory = file.parent().filter(|d| file.is_file() && !d.as_os_str().is_empty());
    let directory = directory.and_then(|d| std::path::absolute(d).ok());
    plan.run.program.iter_mut().for_each(|p| p.directory.clone_from(&directory));
    if let Some(Policy::External(program)) = plan.jobs.as_mut().map(|j| &mut j.placement.policy) {
        program.external.directory = directory;
    }
    Ok(plan)
}

/// A policy, and the keys that the file itself gives, as the API takes them.
///
/// # Errors
/// As [`read_policy`].
pub fn read_policy_as_json(file: &Path) -> Result<(RunPlan, Value), CliError> {
    let text = read_shipped(Shelf::Policies, file, &[])?;
    let name = file.display();
    let plan = config::read_policy(&text, &name.to_string())?;
    let given = config::as_json(&text).map_err(|e| CliError::Invalid(format!("{name}: {e}")))?;
    Ok((plan, given))
}

/// A workload, jobs or a trace as text: a file, or the name of a shipped one.
///
/// # Errors
/// As [`read_text`].
pub fn read_workload(file: &Path) -> Result<String, CliError> {
    read_shipped(Shelf::Workloads, file, &[])
}

/// A file of any kind as text, or the shipped one of that name.
///
/// # Errors
/// As [`read_text`].
pub fn read_any(file: &Path) -> Result<String, CliError> {
    let shipped = file.to_str().filter(|_| !file.exists()).and_then(shipped::find);
    shipped.map_or_else(|| read_text(file), |s| Ok(s.text.into()))
}

/// A file as text, or if there is none, the shipped one of that name. `others` are names that the
/// caller knows besides.
///
/// # Errors
/// As [`read_text`]; of a name that is none, which there are.
pub fn read_shipped(shelf: Shelf, file: &Path, others: &[String]) -> Result<String, CliError> {
    let most = if shelf == Shelf::Workloads { WORKLOAD } else { config::MAX_BYTES as u64 };
    if file.exists() {
        return read(file, most);
    }
    let name = file.to_str().unwrap_or_default();
    // Of a path, the last part may be a name that is known: policies/varys.yaml, away from the
    // sources.
    let meant = file.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    match shelf.find(name) {
        Some(shipped) => Ok(shipped.text.into()),
        None => {
            Err(CliError::Invalid(format!("{}: {}", file.display(), shelf.unknown(meant, others))))
        }
    }
}

/// A result or an event log as text.
///
/// # Errors
/// As [`read_text`]; what is no JSON is not read to its end.
pub fn read_result(file: &Path) -> Result<String, CliError> {
    open::json(file, RESULT).map_err(|e| unread(file, &e))
}

/// Bytes of a file that may be no text.
///
/// # Errors
/// As [`read_text`].
pub fn read_bytes(file: &Path, most: u64) -> Result<Vec<u8>, CliError> {
    open::bytes(file, most).map_err(|e| unread(file, &e))
}

/// Standard input as text, no more of it than a file of ours may have.
///
/// # Errors
/// As [`read_text`].
pub fn read_stdin() -> Result<String, CliError> {
    open::text_of(io::stdin().lock(), config::MAX_BYTES as u64)
        .map_err(|e| unread(Path::new("stdin"), &e))
}

fn read(file: &Path, most: u64) -> Result<String, CliError> {
    open::text(file, most).map_err(|e| unread(file, &e))
}

/// An error of a file that is read.
pub fn unread(file: &Path, e: &Unread) -> CliError {
    CliError::Invalid(format!("{}{}: {e}", open::name(file), e.place()))
}

/// A token for the API: that of a file, of which no other user may know, else the one that is
/// given.
///
/// # Errors
/// The file cannot be read, is empty, has more than one line, or other users may read it.
pub fn token(file: Option<&Path>, given: Option<&str>) -> Result<Option<String>, CliError> {
    let Some(file) = file else { return Ok(given.map(str::to_owned)) };
    let text = read_text(file)?;
    let bad = |why: &str| Err(CliError::Invalid(format!("{}: {why}", file.display())));
    let mode =
        std::fs::metadata(file).map_err(|e| unread(file, &e.into()))?.permissions().mode() & 0o777;
    if mode & 0o007 != 0 {
        return bad(&format!(
            "every user of the machine may read this token or change it (mode {mode:o}); allowed: 600 or 640"
        ));
    }
    match text.trim_end_matches(['\r', '\n']) {
        "" => bad("the file is empty; allowed: one line with the token"),
        line if !line.bytes().all(|b| b.is_ascii_graphic()) => {
            bad("a token is one line of visible ASCII characters without spaces")
        }
        line => Ok(Some(line.to_owned())),
    }
}

/// Says before a long run whether its results can be written.
///
/// # Errors
/// The first file that cannot be: its directory is missing, or may not be written.
pub fn can_write(files: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<(), CliError> {
    files.into_iter().try_for_each(|file| match place(file.as_ref()) {
        Some(place) => fresh(&place).map(drop).map_err(|e| failed(file.as_ref(), &e)),
        None => Ok(()),
    })
}

/// Writes a file that is not there yet.
///
/// # Errors
/// One that is there already or cannot be written.
pub fn write_new(file: &Path, text: &str) -> Result<(), CliError> {
    let fail = |e: io::Error| match e.kind() {
        io::ErrorKind::AlreadyExists => CliError::Failed(format!(
            "{}: the file exists already; name another one",
            file.display()
        )),
        _ => failed(file, &e),
    };
    std::fs::File::create_new(file).and_then(|mut f| f.write_all(text.as_bytes())).map_err(fail)
}

/// Writes a file: what has that name stays as it is until all is written.
///
/// # Errors
/// When it cannot be written.
pub fn write_text(file: &Path, text: &str) -> Result<(), CliError> {
    write_bytes(file, text.as_bytes())
}

/// The same for bytes.
///
/// # Errors
/// When it cannot be written.
pub fn write_bytes(file: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let Some(place) = place(file) else {
        // A pipe or a device cannot be replaced.
        return open::to_write(file, true)
            .and_then(|mut f| f.write_all(bytes))
            .map_err(|e| failed(file, &e));
    };
    let write = || {
        let mut new = fresh(&place)?;
        new.write_all(bytes)?;
        new.as_file().sync_all()?;
        new.persist(&place).map_err(|e| e.error)
    };
    write().map(drop).map_err(|e| failed(file, &e))
}

/// Whether a picture can be written under this name, to be asked before a run that ends with it.
///
/// # Errors
/// The name's ending is that of no format.
pub fn can_draw(file: &Path) -> Result<(), CliError> {
    PictureFormat::of(file).map(drop).map_err(CliError::Usage)
}

/// Writes a sheet to a file, in the format that its name says; `dpi` is the number of pixels an
/// inch in a PNG file.
///
/// # Errors
/// Another format, a picture of too many pixels, or a file that cannot be written.
pub fn write_sheet(sheet: &Sheet, file: &Path, dpi: f64) -> Result<(), CliError> {
    let format = PictureFormat::of(file).map_err(CliError::Usage)?;
    write_bytes(file, &sheet.bytes(format, dpi).map_err(CliError::Failed)?)
}

/// An error of a file that is written.
pub fn failed(file: &Path, e: &io::Error) -> CliError {
    CliError::Failed(format!("{}: {}", open::name(file), open::plain(e)))
}

/// Where a file is replaced: the one behind a link. `None` for what is no file.
fn place(file: &Path) -> Option<PathBuf> {
    match std::fs::metadata(file) {
        Ok(m) if !m.is_file() && !m.is_dir() => None,
        Ok(_) => Some(file.canonicalize().unwrap_or_else(|_| file.into())),
        Err(_) => Some(file.into()),
    }
}

/// A new file beside `place`, which goes when it is dropped.
fn fresh(place: &Path) -> io::Result<tempfile::NamedTempFile> {
    if place.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let directory = place.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The mode of the file that is replaced; of a new one, that which the umask leaves.
    let mode = std::fs::metadata(place).map_or(0o666, |m| m.permissions().mode());
    let new = tempfile::Builder::new()
        .prefix(".heliostat-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    if mode != 0o666 {
        new.as_file().set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut all: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        all.sort();
        all
    }

    #[test]
    fn a_result_replaces_the_old_one_at_once_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("r.json"), dir.path().join("latest"));
        can_write([&file]).unwrap();
        assert!(names(dir.path()).is_empty(), "asking writes nothing");
        write_text(&file, "old").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("r.json", &link).unwrap();
        write_text(&link, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(dir.path()), ["latest", "r.json"]);
        write_text(Path::new("/dev/null"), "gone").unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_told_before_and_the_old_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("none/r.json");
        for wrong in [&missing, &dir.path().to_path_buf()] {
            let told = can_write([wrong]).unwrap_err().to_string();
            assert!(told.contains(&wrong.display().to_string()), "{told}");
            assert!(write_text(wrong, "x").is_err());
        }
        let full = Path::new("/dev/full");
        assert!(write_text(full, "x").unwrap_err().to_string().contains("/dev/full"));
    }

    #[test]
    fn a_file_goes_before_the_shipped_one_of_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let mine = dir.path().join("varys");
        assert!(read_policy(&mine).unwrap_err().to_string().contains("did you mean `varys`?"));
        std::fs::write(&mine, Shelf::Policies.find("aalo").unwrap().text).unwrap();
        assert_eq!(read_policy(&mine).unwrap().policy.name, "aalo");
        assert_eq!(read_policy(Path::new("varys")).unwrap().policy.name, "varys");
        assert_eq!(read_topology(Path::new("hybrid-8x2")).unwrap().rack_count(), 8);
        assert!(read_workload(Path::new("shuffle-8")).unwrap().contains("coflows:"));
        let told = read_topology(dir.path()).unwrap_err().to_string();
        assert!(told.ends_with("Is a directory"), "{told}");
    }

    #[test]
    fn no_more_is_read_than_a_file_may_have() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.yaml");
        std::fs::write(&file, "x".repeat(config::MAX_BYTES)).unwrap();
        assert_eq!(read_text(&file).unwrap().len(), config::MAX_BYTES);
        // A terabyte, if all of it were read.
        File::options().write(true).open(&file).and_then(|f| f.set_len(1 << 40)).unwrap();
        let told = read_text(&file).unwrap_err().to_string();
        assert!(
            told.contains("t.yaml: the file is too long; allowed: at most 4000000 bytes"),
            "{told}"
        );
    }

    #[test]
    fn a_token_of_a_file_is_one_line_that_others_cannot_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let of = |text: &str, mode: u32| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            token(Some(&file), Some("given")).map_err(|e| e.to_string())
        };
        assert_eq!(of("0123456789abcdef\n", 0o600), Ok(Some("0123456789abcdef".into())));
        assert_eq!(of("0123456789abcdef\r\n", 0o640), Ok(Some("0123456789abcdef".into())));
        for (text, mode, why) in [
            ("x\n", 0o644, "(mode 644)"),
            ("\n", 0o600, "empty"),
            ("a b\n", 0o600, "one line"),
            ("a\nb\n", 0o600, "one line"),
        ] {
            let told = of(text, mode).unwrap_err();
            assert!(told.starts_with(&file.display().to_string()) && told.contains(why), "{told}");
        }
        assert_eq!(token(None, Some("given")).unwrap(), Some("given".into()));
        assert!(token(Some(&dir.path().join("none")), None).is_err());
    }

    #[test]
    fn what_never_opens_or_never_ends_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for file in [Path::new("/dev/zero"), &pipe] {
            let told = read_text(file).unwrap_err().to_string();
            assert!(
                told.contains(&format!(
                    "{}: it is a device or a named pipe; allowed: a file",
                    file.display()
                )),
                "{told}"
            );
        }
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"racks: 2").unwrap();
        drop(writer);
        let open = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(read_text(Path::new(&open)).unwrap(), "racks: 2");
    }
}
