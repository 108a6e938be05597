//! Journals that are written by a real controller, cut off anywhere, and read again.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::coflows::RackBytes;
use crate::control::policy::CircuitPolicy;
use crate::control::previous_run::LOST;
use crate::control::record::RecordedEvent;
use crate::control::{Action, Controller, Event, ProgressBy};
use crate::ids::{CoflowId, RackId};
use crate::runtime::handle::HandlePeer;
use crate::units::{BitRate, Bytes, Span, Time};

pub(super) fn network() -> Arc<Topology> {
    Arc::new(Topology::uniform("net", 4, 1, BitRate::mbit(100), BitRate::mbit(100), vec![]))
}

/// A daemon: a controller, and the journal that it writes.
struct Daemon {
    controller: Controller,
    ends: HandlePeer,
    now: Time,
    writing: Writing,
    told: broadcast::Receiver<Arc<Record>>,
}

impl Daemon {
    fn start(directory: &Path, size: u64) -> Self {
        let journal = Journal { size, ..Journal::open(directory, network()).expect("a journal") };
        let (past, now) = (journal.found().past.clone(), journal.found().at);
        let controller = Controller::new(network(), CircuitPolicy::default(), now, Span::ZERO);
        let plan = Arc::new(CircuitPolicy::default().into());
        let (handle, ends) = Handle::new(network(), plan, controller.snapshot(now, "test"), 0);
        let events = handle.events();
        let mut fresh = (controller, ends, now);
        tell(&mut fresh, Event::Resumed { past: Box::new(past) });
        let writing = journal.start(&handle, events).expect("a thread");
        let told = writing.journal.told().expect("the first reader");
        let (controller, ends, now) = fresh;
        Self { controller, ends, now, writing, told }
    }

    fn tell(self, event: Event) -> Self {
        let Self { controller, ends, now, writing, told } = self;
        let mut all = (controller, ends, now + Span::millis(1));
        tell(&mut all, event);
        Self { controller: all.0, ends: all.1, now: all.2, writing, told }
    }

    fn arrives(self, id: u32) -> Self {
        self.tell(arrival(id))
    }

    fn finishes(self, id: u32) -> Self {
        let at = self.now;
        self.tell(Event::CoflowFinished { id: CoflowId(id), at })
    }

    /// Waits until all of it is in the file.
    fn commit(&self) {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime")
            .block_on(self.writing.journal.commit());
    }

    /// Ends without another word. What was answered by then is in the file.
    fn end(self) -> u64 {
        drop((self.controller, self.ends));
        self.writing.finish().expect("written")
    }
}

pub(super) fn arrival(id: u32) -> Event {
    let pairs = vec![RackBytes { from: RackId(0), to: RackId(1), bytes: Bytes(100) }];
    let (id, name, progress, priorities) =
        (CoflowId(id), format!("c{id}"), ProgressBy::Sender, Default::default());
    Event::CoflowArrived { id, name, pairs, bound: Span(5), progress, weight: 1, priorities }
}

/// Tells a controller, and passes its events and snapshot on as the control loop does.
pub(super) fn tell((controller, ends, now): &mut (Controller, HandlePeer, Time), event: Event) {
    controller.handle(event, *now).expect("accepted");
    while let Some(action) = controller.poll_action() {
        if let Action::Log { record } = action {
            let _ = ends.events.send(Arc::new(record));
        }
    }
    ends.snapshot.send_replace(Arc::new(controller.snapshot(*now, "test")));
}

fn text(directory: &Path) -> Vec<u8> {
    std::fs::read(file::path(directory)).expect("the journal")
}

#[test]
fn what_became_of_every_coflow_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let d = Daemon::start(dir.path(), SIZE).arrives(7).arrives(9).arrives(11).finishes(7);
    let d = d.tell(Event::CoflowCancelled { id: CoflowId(9), why: Some("link down".into()) });
    d.writing.journal.keep(IdempotencyKey { key: "k".into(), digest: "d".into(), id: CoflowId(9) });
    d.commit();
    let mut d = d;
    let told: Vec<u64> = std::iter::from_fn(|| d.told.try_recv().ok()).map(|r| r.seq).collect();
    assert_eq!(told, [0, 1, 2, 3, 4], "told once they are in the file");
    assert!(matches!(Journal::open(dir.path(), network()), Err(JournalError::Held(_))));
    assert_eq!(d.end(), 0);

    let mut d = Daemon::start(dir.path(), SIZE);
    let (events, keys) = (d.writing.journal.events.clone(), d.writing.journal.keys.clone());
    assert_eq!(
        (events.iter().map(|r| r.seq).collect::<Vec<_>>(), keys.len()),
        (vec![0, 1, 2, 3, 4], 1)
    );
    d.commit();
    let lost = d.told.try_recv().expect("the event of what was lost");
    assert_eq!(
        (lost.seq, &lost.what),
        (5, &RecordedEvent::CoflowCancelled { id: CoflowId(11), why: Some(LOST.into()) })
    );
    let s = d.controller.snapshot(d.now, "test").coflows;
    let of = |id: u32| s.get(CoflowId(id)).expect("remembered").clone();
    assert_eq!(
        (of(7).cct, of(7).received, of(7).name),
        (Some(Span::millis(2)), Bytes(100), "c7".into())
    );
    assert_eq!((of(9).why.as_deref(), of(11).why.as_deref()), (Some("link down"), Some(LOST)));
    assert_eq!(
        (s.totals.finished, s.totals.cancelled, s.totals.received, s.closed.total()),
        (1, 2, Bytes(100), 3)
    );
    assert!(
        [7, 9, 11].iter().all(|&id| s.used.contains(CoflowId(id)))
            && s.used.max() == Some(CoflowId(11))
    );
    // What is lost is lost once.
    assert_eq!(d.end(), 0);
    let d = Daemon::start(dir.path(), SIZE);
    let s = d.controller.snapshot(d.now, "test").coflows;
    assert_eq!(
        (
            s.totals.cancelled,
            s.closed.total(),
            d.controller.snapshot(d.now, "t").coflows.live.len()
        ),
        (2, 3, 0)
    );
}

#[test]
fn a_journal_is_bounded_and_forgets_no_number() {
    const SMALL: u64 = 200_000;
    let dir = tempfile::tempdir().unwrap();
    let mut d = Daemon::start(dir.path(), SMALL);
    let (mut largest, mut all) = (0, 0);
    for id in 0..3000 {
        d = d.arrives(id).finishes(id);
        if id % 50 == 0 {
            d.commit();
            largest = largest.max(text(dir.path()).len());
        }
        all += 1;
    }
    d.commit();
    let remembered = text(dir.path()).len();
    println!("{all} coflows: {largest} bytes at most");
    assert!(remembered > 100_000, "most coflows are young and remembered");
    assert_eq!(d.end(), 0);
    let d = Daemon::start(dir.path(), SMALL);
    let s = d.controller.snapshot(d.now, "test").coflows;
    assert_eq!(
        (s.totals.finished, s.used.max(), s.closed.total()),
        (3000, Some(CoflowId(2999)), 3000)
    );
    assert_eq!(d.writing.journal.events.len(), EVENTS);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "the journal and its mark");
}

#[test]
fn what_is_no_journal_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let told = |text: &[u8]| {
        std::fs::write(file::path(dir.path()), text).unwrap();
        Journal::open(dir.path(), network()).map(|j| j.found().torn).map_err(|e| e.to_string())
    };
    assert_eq!(told(b""), Ok(0));
    assert_eq!(told(b"{\"head\""), Ok(7), "cut off in the first line");
    let told_of = |text: &[u8], why: &str| {
        let told = told(text).unwrap_err();
        assert!(told.contains("journal.jsonl") && told.contains(why), "{told}");
    };
    told_of(b"racks: 4\nx\n", "line 1, column 1: ");
    let head = file::JournalHead::new(
        &network(),
        (0, Time::ZERO),
        Default::default(),
        Default::default(),
        0,
    );
    let line = |h: &file::JournalHead| {
        serde_json::to_string(&file::JournalLine::Head(Box::new(h.clone()))).unwrap() + "\n"
    };
    told_of(
        line(&file::JournalHead { racks: 5, ..head.clone() }).as_bytes(),
        "of network `net` with 5 racks, not of `net` with 4",
    );
    told_of(line(&file::JournalHead { format: 9, ..head.clone() }).as_bytes(), "its form is 9");
    // One line that makes sense is enough.
    std::fs::write(file::path(dir.path()), line(&head) + "{\"event\":7}\n" + "{}\n" + &line(&head))
        .unwrap();
    let journal = Journal::open(dir.path(), network()).unwrap();
    let damaged: Vec<usize> = journal.found().damaged.iter().map(|d| d.0).collect();
    assert_eq!(
        (damaged, journal.found().damaged[2].2.as_str()),
        (vec![2, 3, 4], "a head that is not the first line")
    );
}

/// What another program does to the files of a daemon that runs: nothing that was answered is lost.
#[test]
fn what_is_taken_away_is_written_again() {
    let path = file::path;
    type Meddle = fn(&Path);
    let ways: [(&str, Meddle); 6] = [
        ("cut", |d| {
            drop(
                std::fs::File::options().write(true).open(file::path(d)).and_then(|f| f.set_len(0)),
            )
        }),
        ("cut in the middle", |d| {
            drop(
                std::fs::File::options()
                    .write(true)
                    .open(file::path(d))
                    .and_then(|f| f.set_len(700)),
            )
        }),
        ("removed", |d| std::fs::remove_file(file::path(d)).unwrap()),
        ("replaced", |d| {
            std::fs::copy(file::path(d), d.join("other")).unwrap();
            std::fs::rename(d.join("other"), file::path(d)).unwrap();
        }),
        ("the directory removed", |d| std::fs::remove_dir_all(d).unwrap()),
        ("the directory moved away", |d| std::fs::rename(d, d.with_extension("old")).unwrap()),
    ];
    for (what, meddle) in ways {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("journal");
        let d = Daemon::start(&own, SIZE).arrives(1).arrives(2).finishes(1);
        d.commit();
        meddle(&own);
        let d = d.arrives(3);
        d.commit();
        assert!(path(&own).is_file(), "{what}");
        let troubles: Vec<bool> = std::iter::from_fn(|| d.ends.commands.try_recv().ok())
            .filter_map(|c| {
                if let Event::Trouble { why, .. } = c.event { Some(why.is_some()) } else { None }
            })
            .collect();
        assert_eq!(troubles, [true, false], "{what}: told, and that it is well again");
        assert!(matches!(Journal::open(&own, network()), Err(JournalError::Held(_))), "{what}");
        assert_eq!(d.end(), 0, "{what}");
        let journal = Journal::open(&own, network()).unwrap();
        let past = &journal.found().past;
        assert_eq!(
            (past.closed.total(), past.open.iter().map(|c| c.id.0).collect::<Vec<_>>()),
            (1, vec![2, 3]),
            "{what}"
        );
        assert!(journal.found().damaged.is_empty());
    }
}

#[test]
fn no_file_that_is_removed_lets_a_second_daemon_in() {
    for gone in [&["mark.json"][..], &["journal.jsonl"], &["mark.json", "journal.jsonl"]] {
        let dir = tempfile::tempdir().unwrap();
        let d = Daemon::start(dir.path(), SIZE).arrives(1);
        d.commit();
        gone.iter().for_each(|name| std::fs::remove_file(dir.path().join(name)).unwrap());
        assert!(
            matches!(Journal::open(dir.path(), network()), Err(JournalError::Held(_))),
            "{gone:?}"
        );
        let d = d.arrives(2);
        d.commit();
        assert!(
            ["mark.json", "journal.jsonl"].iter().all(|name| dir.path().join(name).is_file()),
            "{gone:?}"
        );
        assert_eq!(d.end(), 0);
        assert_eq!(
            Journal::open(dir.path(), network()).unwrap().found().past.open.len(),
            2,
            "{gone:?}"
        );
    }
}

#[test]
fn a_pipe_or_a_link_in_the_place_of_a_file_is_refused() {
    for name in ["mark.json", "journal.jsonl"] {
        for kind in ["pipe", "link", "directory"] {
            let dir = tempfile::tempdir().unwrap();
            let at = dir.path().join(name);
            match kind {
                "pipe" => assert!(
                    std::process::Command::new("mkfifo").arg(&at).status().unwrap().success()
                ),
                "link" => std::os::unix::fs::symlink("/etc/passwd", &at).unwrap(),
                _ => std::fs::create_dir(&at).unwrap(),
            }
            let told = Journal::open(dir.path(), network()).map(drop).unwrap_err().to_string();
            assert!(told.contains(name) && told.contains("allowed: a file"), "{kind}: {told}");
        }
    }
}

/// A journal of some coflows, made once: cutting it is fast.
fn sample() -> (tempfile::TempDir, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let mut d = Daemon::start(dir.path(), SIZE);
    for id in 0..12 {
        d = d.arrives(id);
        if id % 3 == 1 {
            d = d.finishes(id - 1);
            d.commit();
        }
    }
    d.commit();
    d.end();
    let whole = text(dir.path());
    (dir, whole)
}

#[test]
fn a_journal_that_is_cut_off_anywhere_is_read_up_to_there_and_gives_no_number_again() {
    let (dir, whole) = sample();
    let mark = std::fs::read(dir.path().join("mark.json")).unwrap();
    for n in 0..=whole.len() {
        std::fs::write(file::path(dir.path()), &whole[..n]).unwrap();
        std::fs::write(dir.path().join("mark.json"), &mark).unwrap();
        let journal = Journal::open(dir.path(), network()).unwrap_or_else(|e| panic!("{n}: {e}"));
        let found = journal.found();
        let torn = whole[..n].iter().rev().take_while(|&&b| b != b'\n').count() as u64;
        assert_eq!(found.torn, torn, "of {n} bytes");
        assert!(
            found.past.used.max() == Some(CoflowId(11)) && found.past.seq == 16,
            "the mark holds them: {n}"
        );
        assert!(found.past.open.len() + found.past.closed.len() <= 12);
    }
}

fn opened(text: &[u8]) -> Result<JournalContents, JournalError> {
    let one = tempfile::tempdir().unwrap();
    std::fs::write(file::path(one.path()), text).unwrap();
    Journal::open(one.path(), network()).map(|j| j.found().clone())
}

#[test]
fn lines_without_checksums_are_read_as_they_were_written() {
    let whole = String::from_utf8(sample_once().clone()).unwrap();
    assert!(whole.lines().all(|l| l.starts_with("{\"crc\":\"")));
    let old: String =
        whole.lines().map(|l| format!("{{{}\n", &l[r#"{"crc":"12345678","#.len()..])).collect();
    assert_eq!(opened(old.as_bytes()).unwrap(), opened(whole.as_bytes()).unwrap());
    // Some of a line that has none may be wrong, and is lost alone.
    let broken = old.replacen("\"open\":", "\"opem\":", 1);
    assert_eq!(opened(broken.as_bytes()).unwrap().damaged.len(), 1);
}

#[test]
fn a_mark_that_is_damaged_is_told_and_not_believed() {
    let (dir, _) = sample();
    let at = dir.path().join("mark.json");
    let text = std::fs::read_to_string(&at).unwrap();
    let open = || {
        Journal::open(dir.path(), network())
            .map(|j| (j.found().unmarked, j.found().past.used.max().map(|id| id.0)))
            .unwrap()
    };
    assert_eq!(open(), (false, Some(11)));
    for wrong in [
        text.replacen("\"id\":11", "\"id\":4294967295", 1),
        text.replacen("\"seq\"", "\"sek\"", 1),
        "x".into(),
    ] {
        assert_ne!(wrong, text);
        std::fs::write(&at, wrong).unwrap();
        assert_eq!(open(), (true, Some(11)));
        assert_eq!(open(), (false, Some(11)), "it is written again");
    }
    // Of an older program.
    std::fs::write(&at, "{\"seq\":99,\"id\":40,\"at\":7}").unwrap();
    assert_eq!(open(), (false, Some(40)));
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    /// A damaged byte is never believed, and loses one record.
    #[test]
    fn any_change_of_a_byte_loses_one_record(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let whole = sample_once();
        let k = at.index(whole.len());
        prop_assume!(whole[k] != byte);
        let mut text = whole.clone();
        text[k] = byte;
        let (found, good) = (opened(&text).unwrap(), opened(whole).unwrap());
        prop_assert!(found.torn > 0 || (1..=2).contains(&found.damaged.len()), "{:?}", found.damaged);
        let known = |f: &JournalContents| f.past.open.len() + f.past.closed.len();
        prop_assert!(known(&found) + 1 >= known(&good) && known(&found) <= known(&good), "{} of {}", known(&found), known(&good));
    }
}

fn sample_once() -> &'static Vec<u8> {
    static SAMPLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    SAMPLE.get_or_init(|| sample().1)
}
