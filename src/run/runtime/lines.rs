//! A file of lines that grows while a run goes on, and has only whole lines whatever becomes of the
//! disk.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::open;

/// A file to which lines are appended. Each call is one write, so that a process that is killed
/// leaves what it wrote before. A file that was opened to append to may be cut or moved by other
/// programs meanwhile.
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

/// What changed with a call of [`LineFile::append`]: each is said once, however many lines it
/// concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineFileChange {
    /// The file cannot be written any more.
    Broke(String),
    /// The file can be written again.
    Healed,
}

impl LineFile {
    /// Lines go behind the first `length` bytes of a file; what the file has behind them is cut
    /// off. A pipe or a device has no length.
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

    /// Appends `count` lines, each with its end, as a whole. Where the disk refuses, none of them
    /// is left in the file, they count as missing, and the next call tries again.
    pub fn append(&mut self, lines: &[u8], count: u64) -> Option<LineFileChange> {
        if lines.is_empty() {
            return None;
        }
        match self.write_whole(lines) {
            Ok(()) => {
                self.length += lines.len() as u64;
                self.broken.take().map(|_| LineFileChange::Healed)
            }
            Err(e) => {
                self.missing += count;
                let why = format!("{}: {e}", self.path.display());
                (self.broken.replace(why.clone()).as_ref() != Some(&why))
                    .then_some(LineFileChange::Broke(why))
            }
        }
    }

    /// Writes all of it, or nothing: what was written before the disk refused is cut off again.
    fn write_whole(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut rest = lines;
        while !rest.is_empty() {
            let refused = match self.file.write(rest) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(n) => {
                    rest = &rest[n..];
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => e,
            };
            let _ = self.cut((lines.len() - rest.len()) as u64);
            return Err(refused);
        }
        Ok(())
    }

    /// Cuts the last bytes off.
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        let end = self.file.metadata()?.len().saturating_sub(bytes);
        self.file.set_len(end)?;
        self.file.seek(SeekFrom::Start(end)).map(drop)
    }

    /// Goes on in the file that has the name now, behind what it holds; it is made if there is
    /// none. Where that fails, the lines go to the old file still.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn reopen(&mut self) -> Result<(), String> {
        let opened =
            open::to_write(&self.path, true).and_then(|file| Ok((file.metadata()?.len(), file)));
        (self.length, self.file) = opened.map_err(|e| format!("{}: {e}", self.path.display()))?;
        Ok(())
    }

    /// A file on a disk that is full.
    #[cfg(test)]
    pub fn full() -> Self {
        let path = Path::new("/dev/full");
        File::options()
            .write(true)
            .open(path)
            .and_then(|f| Self::new(path, f, 0))
            .expect("a device")
    }

    /// What another program has done to the file that takes lines away, if one has; pipes and
    /// devices have no lines.
    pub fn meddled(&self) -> Option<&'static str> {
        let found = self.file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        match () {
            () if !open::stands_at(&self.file, &self.path) => Some("it was removed or replaced"),
            () if found.len() < self.length => Some("it was cut"),
            () if found.len() > self.length && self.broken.is_none() => {
                Some("another program wrote to it")
            }
            () => None,
        }
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
        assert!(
            matches!(f.append(b"a\nb\n", 2), Some(LineFileChange::Broke(why)) if why.starts_with("/dev/full: No space left"))
        );
        assert_eq!((f.append(b"c\n", 1), f.missing(), f.length()), (None, 3, 0));
        assert!(f.broken().is_some());
        let dir = tempfile::tempdir().unwrap();
        f.file = File::create(dir.path().join("x")).unwrap();
        assert_eq!(
            (f.append(b"d\n", 1), f.append(b"e\n", 1)),
            (Some(LineFileChange::Healed), None)
        );
        assert_eq!((f.missing(), f.length(), f.broken()), (3, 4, None));
    }

    #[test]
    fn lines_go_to_the_file_that_has_the_name_when_it_is_asked_for_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("x"), dir.path().join("x.1"));
        let open = || File::options().create(true).append(true).open(&path).unwrap();
        let mut f = LineFile::new(&path, open(), 0).unwrap();
        f.append(b"a\n", 1);
        std::fs::rename(&path, &old).unwrap();
        f.append(b"b\n", 1);
        assert_eq!((f.reopen(), f.length()), (Ok(()), 0));
        f.append(b"c\n", 1);
        // Asked without need, it goes on behind what is there.
        assert_eq!((f.reopen(), f.length()), (Ok(()), 2));
        f.append(b"d\n", 1);
        let read = |p: &Path| std::fs::read_to_string(p).unwrap();
        assert_eq!((read(&old), read(&path)), ("a\nb\n".into(), "c\nd\n".into()));
        // Cut by another program (copytruncate), it has no hole before the next line.
        open().set_len(0).unwrap();
        f.append(b"e\n", 1);
        assert_eq!(read(&path), "e\n");
        drop(dir);
        assert!(f.reopen().is_err_and(|why| why.contains("No such file")));
        assert_eq!(f.append(b"f\n", 1), None, "the old file is there until it is closed");
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
