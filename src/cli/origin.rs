//! Where a result comes from: its input files, and for runs that depend on them, the machine and
//! the time.

use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::files::read_shipped;
use crate::config::shipped::Shelf;
use crate::runtime::report::ResultOrigin;
use crate::units::Time;

/// The files of a run. Call it before the run begins: afterwards they may have changed.
pub fn of(topology: Option<&Path>, policy: Option<&Path>, workload: Option<&Path>) -> ResultOrigin {
    ResultOrigin {
        topology_sha256: topology.and_then(|f| sha256(Shelf::Topologies, f)),
        policy_sha256: policy.and_then(|f| sha256(Shelf::Policies, f)),
        workload_sha256: workload.and_then(|f| sha256(Shelf::Workloads, f)),
        ..ResultOrigin::default()
    }
}

/// The same with this machine and the time now.
pub fn here_and_now(origin: &ResultOrigin) -> ResultOrigin {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .map(|name| name.trim().to_owned());
    ResultOrigin { host, started_at: Some(epoch(Time::ZERO)), ..origin.clone() }
}

/// The epoch of a clock that shows `now`, as ISO 8601 in UTC.
pub fn epoch(now: Time) -> String {
    instant(jiff::Timestamp::now().checked_sub(now.since(Time::ZERO).std()).unwrap_or_default())
}

/// The instant of these milliseconds since 1970, as ISO 8601 in UTC.
pub fn at_ms(ms: u64) -> String {
    instant(
        i64::try_from(ms)
            .ok()
            .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
            .unwrap_or_default(),
    )
}

/// The milliseconds since 1970 of an instant in ISO 8601.
pub fn ms_of(text: &str) -> Option<u64> {
    text.parse::<jiff::Timestamp>().ok().and_then(|t| t.as_millisecond().try_into().ok())
}

fn instant(t: jiff::Timestamp) -> String {
    // Three decimals, of zeros too, so that all results and logs have one form.
    format!("{t:.3}")
}

/// The hash of a file, or of the shipped one of that name; none of a mix, nor of a pipe, which
/// gives its text only once.
fn sha256(shelf: Shelf, file: &Path) -> Option<String> {
    if file.exists() && !file.is_file() {
        return None;
    }
    let text = read_shipped(shelf, file, &[]).ok()?;
    let mut hex = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    Some(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_a_shipped_name_have_the_hash_of_their_text_and_a_mix_has_none() {
        let [by_name, by_file] =
            ["varys", "policies/varys.yaml"].map(|p| sha256(Shelf::Policies, Path::new(p)));
        assert_eq!(by_name, by_file);
        assert_eq!(by_name.map(|h| h.len()), Some(64));
        assert_eq!(sha256(Shelf::Workloads, Path::new("facebook")), None);
        let dir = tempfile::tempdir().unwrap();
        let empty = dir.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        let hash = sha256(Shelf::Workloads, &empty).unwrap();
        assert_eq!(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let now = here_and_now(&ResultOrigin::default());
        assert!(
            now.host.is_some()
                && now.started_at.is_some_and(|t| t.starts_with("20")
                    && t.ends_with('Z')
                    && t.len() == "2026-01-02T03:04:05.678Z".len())
        );
    }
}
