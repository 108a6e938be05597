//! Recordings in `tests/recorded/` play again: the machines want what they wanted when it was
//! recorded, byte for byte. A failure that was recorded becomes a test by copying its file there.
//! After a change that means to decide otherwise, record again (docs/recording.md).

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use heliostat::runtime::record::replay::{Ending, replay};

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let files = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|f| f.expect("it can be read").path());
    let mut all: Vec<PathBuf> =
        files.filter(|f| f.extension().is_some_and(|e| e == "jsonl")).collect();
    all.sort();
    all
}

#[test]
fn every_recording_plays_again() {
    let all = recordings();
    assert!(!all.is_empty(), "there are recordings");
    let mut wrong = vec![];
    for file in &all {
        match replay(BufReader::new(File::open(file).expect("it can be read")), None) {
            // A process that crashed or was killed leaves a recording that is cut off.
            Ok(r) if matches!(r.ending, Ending::Complete | Ending::CutOff { .. }) => {
                assert!(r.controller.events > 0, "{}", file.display())
            }
            Ok(r) => wrong.push(format!("{}: {:?}", file.display(), r.ending)),
            Err(e) => wrong.push(format!("{}: {e}", file.display())),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}
