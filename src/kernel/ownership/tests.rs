use super::leftovers::marked_by;
use super::locks::{LOOK, make_lock};
use super::*;

#[test]
fn a_mark_is_known_where_it_was_made_and_nowhere_else() {
    let (here, there) = (Path::new("/run/heliostat"), Path::new("/tmp/other"));
    let m = mark(here, "lab");
    assert_eq!(marked_by(&m, here), Some("lab"));
    assert_eq!(marked_by(&m, there), None);
    for stranger in [
        "",
        "lab",
        "heliostat",
        "heliostat:lab",
        "heliostats:lab:/run/heliostat",
        "mininet:lab:/run/heliostat",
    ] {
        assert_eq!(marked_by(stranger, here), None, "{stranger}");
    }
}

#[test]
fn a_command_that_removes_what_is_stale_is_not_taken_for_a_fabric() {
    let dir = tempfile::tempdir().unwrap();
    let (base, begun) = (dir.path().join("notes"), std::time::Instant::now());
    // As on a disk that is busy.
    let removes = make_lock(&base.join("stale")).expect("free");
    std::thread::scope(|s| {
        s.spawn(|| Owned::free(&base, "stale").expect("no fabric has it"));
        s.spawn(|| drop(Owned::take(&base, "stale").expect("no fabric has it")));
        while begun.elapsed() < 3 * LOOK {
            std::thread::yield_now();
        }
        drop(removes);
    });
    assert!(!base.join("stale").exists());
}

#[test]
fn a_name_is_had_once_and_again_after_it_was_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("notes");
    let held = Owned::take(&base, "twice").expect("free");
    assert!(matches!(Owned::take(&base, "twice"), Err(OwnError::Running { .. })));
    assert_eq!(self::held(&base), ["twice"]);
    drop(held);
    assert!(!base.join("twice").exists());
    drop(Owned::take(&base, "twice").expect("free again"));
}

#[test]
fn who_only_looks_is_in_the_way_of_no_fabric() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("notes");
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    assert!(running(&base).len() <= 1)
                }
            });
        }
        let taken: Vec<_> = (0..100)
            .map(|_| Owned::take(&base, "seen").map(drop).map_err(|e| e.to_string()))
            .collect();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(taken.into_iter().find(Result::is_err), None);
    });
}
