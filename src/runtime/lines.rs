//! A file of lines that grows while a run goes on, and has only whole lines whatever becomes of the disk.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// A file to which lines are appended. Each call is one write, so that a process that is killed leaves what it wrote before.
#[derive(Debug)]
pub struct LineFile {
    path: PathBuf,
    file: File,
    /// Bytes of the lines that are in the file.
    length: u64,
    /// Lines that could not be written.
    missing: u64,
    /// Why the last write failed, if it did.
    broken: Option<String>,
}

/// What changed with a call of [`LineFile::append`]: each is said once, however many lines it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The file cannot be written any more.
    Broke(String),
    /// The file can be written again.
    Healed,
}

impl LineFile {
    /// Lines go behind the first `length` bytes of a file; what the file has behind them is cut off. A pipe or a device has no length.
    ///
    /// # Errors
    /// When the file cannot be cut.
    pub fn new(path: &Path, mut file: File, length: u64) -> io::Result<Self> {
        if file.metadata()?.is_file() {
            file.set_len(length)?;
            file.seek(SeekFrom::Start(length))?;
        }
        Ok(Self { path: path.into(), file, length, missing: 0, broken: None })
    }

    /// Appends `count` lines, each with its end, as a whole. Where the disk refuses, none of them is left in the file, they count as
    /// missing, and the next call tries again.
    pub fn append(&mut self, lines: &[u8], count: u64) -> Option<Turn> {
        if lines.is_empty() {
            return None;
        }
        match self.file.write_all(lines) {
            Ok(()) => {
                self.length += lines.len() as u64;
                self.broken.take().map(|_| Turn::Healed)
            }
            Err(e) => {
                let _ = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::Start(self.length)));
                self.missing += count;
                let why = format!("{}: {e}", self.path.display());
                (self.broken.replace(why.clone()).as_ref() != Some(&why)).then_some(Turn::Broke(why))
            }
        }
    }

    /// A file on a disk that is full.
    #[cfg(test)]
    pub fn full() -> Self {
        let path = Path::new("/dev/full");
        File::options().write(true).open(path).and_then(|f| Self::new(path, f, 0)).expect("a device")
    }

    /// Bytes of the lines in the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Number of lines that could not be written.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Why lines cannot be written now, if that is so.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_full_is_told_once_and_the_lines_are_counted() {
        let mut f = LineFile::full();
        assert!(matches!(f.append(b"a\nb\n", 2), Some(Turn::Broke(why)) if why.starts_with("/dev/full: No space left")));
        assert_eq!((f.append(b"c\n", 1), f.missing(), f.length()), (None, 3, 0));
        assert!(f.broken().is_some());
        let dir = tempfile::tempdir().unwrap();
        f.file = File::create(dir.path().join("x")).unwrap();
        assert_eq!((f.append(b"d\n", 1), f.append(b"e\n", 1)), (Some(Turn::Healed), None));
        assert_eq!((f.missing(), f.length(), f.broken()), (3, 4, None));
    }

    #[test]
    fn what_is_behind_the_whole_lines_is_cut_off() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "one\ntw").unwrap();
        let open = File::options().write(true).open(file.path()).unwrap();
        let mut f = LineFile::new(file.path(), open, 4).unwrap();
        assert_eq!(f.append(b"two\n", 1), None);
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "one\ntwo\n");
    }
}
