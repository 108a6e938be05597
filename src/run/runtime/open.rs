//! The one place where files that people name are opened: to be read, and to be written line by
//! line.
//!
//! A named pipe without another end would never open, a device may never end or act when it is
//! opened, and a file may be longer than the memory. So the kind is looked at before a file is
//! opened and once more when it is, no more is read than is wanted, and text is UTF-8 whose faults
//! have a place. `tests/tidy.rs` holds `cli`, `config` and `runtime` to it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::text;

/// Bytes after which it is looked whether the rest is worth reading.
const HEAD: u64 = 1 << 16;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// What the system says, or the kind of the file.
    #[error("{}", plain(.0))]
    Io(#[from] io::Error),
    /// It is longer than such a file may be.
    #[error("the file is too long; allowed: at most {0} bytes")]
    TooLong(u64),
    /// Another program can make text of it.
    #[error("{0}; allowed: text in UTF-8")]
    Packed(&'static str),
    /// It is no text.
    #[error("{why}; allowed: {allowed}")]
    NotText {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What is there.
        why: String,
        /// What may be.
        allowed: &'static str,
    },
}

impl Unread {
    /// Line and column of what is wrong, behind colons; nothing where there is no place.
    pub fn place(&self) -> String {
        match self {
            Self::NotText { line, column, .. } => format!(":{line}:{column}"),
            _ => String::new(),
        }
    }
}

/// An error of the system without its number.
pub fn plain(e: &io::Error) -> String {
    let text = e.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).into()
}

/// Beginnings of files that are packed or written by other programs, and what to say of them.
const MAGIC: [(&[u8], &str); 17] = [
    (b"\x1f\x8b", "packed by gzip: unpack it first (gunzip)"),
    (b"\x1f\x9d", "packed by compress: unpack it first (uncompress)"),
    (b"\xfd7zXZ\0", "packed by xz: unpack it first (unxz)"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd: unpack it first (unzstd)"),
    (b"\x04\x22\x4d\x18", "packed by lz4: unpack it first (unlz4)"),
    (b"BZh", "packed by bzip2: unpack it first (bunzip2)"),
    (b"LZIP", "packed by lzip: unpack it first (lzip -d)"),
    (b"PK\x03\x04", "a zip archive (.zip, .npz, .xlsx): unpack it first (unzip)"),
    (b"PK\x05\x06", "a zip archive without files"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first (7z x)"),
    (b"\x93NUMPY", "an array of NumPy (.npy): write it as text first (tolist, savetxt)"),
    (b"\x89HDF", "an HDF5 file: write it as text first"),
    (b"PAR1", "a Parquet file: write it as text first"),
    (b"SQLite format 3\0", "an SQLite data base: write it as text first"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
];

/// What a file is that begins so, if it is packed or another program's.
pub fn packed(content: &[u8]) -> Option<&'static str> {
    let bzip = content.starts_with(b"BZh") && !content.get(3).is_some_and(u8::is_ascii_digit);
    let tar = content.get(257..262).is_some_and(|m| m == b"ustar");
    let known =
        MAGIC.iter().find(|(magic, _)| content.starts_with(magic)).filter(|_| !bzip).map(|m| m.1);
    known.or(tar.then_some("a tar archive: unpack it first (tar -x)"))
}

/// Whether a path names what is open already: a pipe of `<(...)`, or standard input. Its other end
/// is there.
fn is_open(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().filter_map(|p| p.to_str()).collect();
    path == Path::new("/dev/stdin")
        || path.starts_with("/dev/fd")
        || matches!(parts[..], ["/", "proc", _, "fd", _] | ["/", "proc", _, "task", _, "fd", _])
}

fn admit(found: &Metadata, is_open: bool) -> io::Result<()> {
    let kind = found.file_type();
    if kind.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    if kind.is_char_device()
        || kind.is_block_device()
        || kind.is_socket()
        || kind.is_fifo() && !is_open
    {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a device or a named pipe; allowed: a file",
        ));
    }
    Ok(())
}

/// Opens a file to read it.
///
/// # Errors
/// It is not there, may not be read, or is a device, a named pipe or a directory.
pub fn to_read(path: &Path) -> io::Result<File> {
    let is_open = is_open(path);
    admit(&std::fs::metadata(path)?, is_open)?;
    let mut options = File::options();
    options.read(true);
    if !is_open {
        // Should a pipe have taken its place meanwhile.
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    let file = options.open(path)?;
    admit(&file.metadata()?, is_open)?;
    Ok(file)
}

/// Opens what lines are written to: a file, which is made if there is none and emptied unless it is
/// to be `appended`; a device, or a pipe that a program reads.
///
/// # Errors
/// It cannot be made or written, or is a pipe that no program reads.
pub fn to_write(path: &Path, appended: bool) -> io::Result<File> {
    let options = |flags: i32| {
        let mut options = OpenOptions::new();
        options.write(true).create(true).append(appended).truncate(!appended).custom_flags(flags);
        options
    };
    if std::fs::metadata(path).is_ok_and(|m| m.file_type().is_fifo()) && !is_open(path) {
        // Without a reader this fails, where the next one would wait for it.
        let found = options(libc::O_NONBLOCK).open(path);
        drop(found.map_err(|e| match e.raw_os_error() {
            Some(libc::ENXIO) => {
                io::Error::new(io::ErrorKind::NotConnected, "no program reads this named pipe")
            }
            _ => e,
        })?);
    }
    options(libc::O_NOCTTY).open(path)
}

/// Opens a file in a directory of ours to read and write it in place; it is made if there is none.
/// It is never what a link names.
///
/// # Errors
/// It cannot be made or opened, or is no file.
pub fn own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY);
    let not_ours = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a link, a device, a named pipe or a directory; allowed: a file",
        )
    };
    if std::fs::symlink_metadata(path).is_ok_and(|m| !m.is_file()) {
        return Err(not_ours());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_ours()) }
}

/// Opens a directory, to lock it and to know it again.
///
/// # Errors
/// It is none, or may not be read.
pub fn directory(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_DIRECTORY).open(path)
}

/// Whether an open file or directory is still the one that has this name.
pub fn stands_at(file: &File, path: &Path) -> bool {
    let one = |m: Metadata| (m.dev(), m.ino());
    let here = std::fs::symlink_metadata(path).map(one);
    here.is_ok_and(|here| file.metadata().map(one).is_ok_and(|held| held == here))
}

/// A file's bytes, without a byte order mark.
///
/// # Errors
/// It cannot be read, is longer than `most` bytes, or packed.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, Unread> {
    let file = to_read(path)?;
    bytes_of(&file, file.metadata()?.len(), most, |_| Ok(()))
}

/// `length` is what the source is known to have at least.
fn bytes_of(
    source: impl Read,
    length: u64,
    most: u64,
    look: impl Fn(&[u8]) -> Result<(), Unread>,
) -> Result<Vec<u8>, Unread> {
    let (mut source, mut content) = (source.take(most.saturating_add(1)), vec![]);
    (&mut source).take(HEAD).read_to_end(&mut content)?;
    if let Some(what) = packed(&content) {
        return Err(Unread::Packed(what));
    }
    if content.starts_with(b"\xef\xbb\xbf") {
        content.drain(..3);
    }
    look(&content)?;
    if length > most {
        return Err(Unread::TooLong(most));
    }
    source.read_to_end(&mut content)?;
    if source.limit() == 0 { Err(Unread::TooLong(most)) } else { Ok(content) }
}

/// A file's text, without a byte order mark. Nothing that moves a terminal's cursor is in it.
///
/// # Errors
/// As [`bytes`], and what is no such text, with its place.
pub fn text(path: &Path, most: u64) -> Result<String, Unread> {
    let file = to_read(path)?;
    text_from(&file, file.metadata()?.len(), most)
}

/// The same of what is open.
///
/// # Errors
/// As [`text()`].
pub fn text_of(source: impl Read, most: u64) -> Result<String, Unread> {
    text_from(source, 0, most)
}

fn text_from(source: impl Read, length: u64, most: u64) -> Result<String, Unread> {
    let text = decoded(bytes_of(source, length, most, head_is_text)?)?;
    let hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    match text.char_indices().find(|&(_, c)| hidden(c)) {
        Some((at, c)) => {
            let (line, column) = place(&text[..at]);
            let why = format!("a control character, U+{:04X}", u32::from(c));
            Err(Unread::NotText {
                line,
                column,
                why,
                allowed: "text: no control characters but tabs and ends of lines",
            })
        }
        None => Ok(text),
    }
}

/// The text of a file of JSON, which may be long: what begins as no JSON does is not read to its
/// end.
///
/// # Errors
/// As [`bytes`], and what is no UTF-8.
pub fn json(path: &Path, most: u64) -> Result<String, Unread> {
    let look = |head: &[u8]| {
        head_is_text(head)?;
        let first = head.trim_ascii_start().first();
        if first.is_none_or(|b| matches!(b, b'{' | b'[')) || head.len() < HEAD as usize / 2 {
            return Ok(());
        }
        Err(Unread::NotText {
            line: 1,
            column: 1,
            why: "this is no JSON".into(),
            allowed: "JSON, or lines of it",
        })
    };
    let file = to_read(path)?;
    decoded(bytes_of(&file, file.metadata()?.len(), most, look)?)
}

/// Whether the head of a text is text, as far as it shows: the last character may be cut.
fn head_is_text(head: &[u8]) -> Result<(), Unread> {
    if head.contains(&0) {
        let before = head.split(|&b| b == 0).next().unwrap_or_default();
        let (line, column) = place(&String::from_utf8_lossy(before));
        return Err(Unread::NotText {
            line,
            column,
            why: "a zero byte: this is no text".into(),
            allowed: "text in UTF-8",
        });
    }
    match std::str::from_utf8(head) {
        Err(e) if e.error_len().is_some() => Err(not_utf8(head, e.valid_up_to())),
        _ => Ok(()),
    }
}

fn decoded(content: Vec<u8>) -> Result<String, Unread> {
    String::from_utf8(content).map_err(|e| not_utf8(e.as_bytes(), e.utf8_error().valid_up_to()))
}

fn not_utf8(content: &[u8], valid: usize) -> Unread {
    let (line, column) = place(&String::from_utf8_lossy(&content[..valid]));
    let why =
        format!("byte 0x{:02x} is not UTF-8", content.get(valid).copied().unwrap_or_default());
    Unread::NotText { line, column, why, allowed: "text in UTF-8" }
}

/// Line and column of what follows a text.
fn place(before: &str) -> (usize, usize) {
    (before.matches('\n').count() + 1, before.chars().rev().take_while(|&c| c != '\n').count() + 1)
}

/// A path in a message: as it is given, with codes for what cannot be seen.
pub fn name(path: &Path) -> String {
    text::escaped(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mkfifo(path: &Path) {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn text_is_utf8_and_its_faults_have_a_place() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        let of = |content: &[u8]| {
            std::fs::write(&file, content).unwrap();
            text(&file, 1 << 20).map_err(|e| format!("{}: {e}", e.place()))
        };
        assert_eq!(of(b"\xef\xbb\xbfname: x\r\n\ty"), Ok("name: x\r\n\ty".into()));
        for (content, told) in [
            (&b"a\nb\xc3\xa9\xffz"[..], ":2:3: byte 0xff is not UTF-8"),
            (b"ab\xc3", ":1:3: byte 0xc3 is not UTF-8"),
            (b"ab\ncd\x1b[2J", ":2:3: a control character, U+001B"),
            ("a\n\u{9b}2J".as_bytes(), ":2:1: a control character, U+009B"),
            (b"ab\ncd\0e", ":2:3: a zero byte"),
            (b"\x1f\x8b\x08\0", ": packed by gzip: unpack it first"),
            (b"\xfd7zXZ\0", ": packed by xz"),
            (b"\x28\xb5\x2f\xfd\x04", ": packed by zstd"),
            (b"BZh91AY", ": packed by bzip2"),
            (b"PK\x03\x04", ": a zip archive"),
            (b"\x93NUMPY\x01", ": an array of NumPy (.npy)"),
            (b"\xff\xfen\0", ": text in UTF-16: save it as UTF-8"),
        ] {
            let found = of(content).unwrap_err();
            assert!(found.starts_with(told), "{found} for {content:?}");
        }
        assert_eq!(of(b"BZh is a word"), Ok("BZh is a word".into()));
    }

    #[test]
    fn what_is_long_or_no_json_is_not_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        // A terabyte, if all of it were read.
        let long = |begins: &[u8]| {
            std::fs::write(&file, begins).unwrap();
            File::options().write(true).open(&file).and_then(|f| f.set_len(1 << 40)).unwrap();
        };
        long(&b" x".repeat(1 << 16));
        assert!(json(&file, 1 << 42).unwrap_err().to_string().contains("this is no JSON"));
        long(b"{}");
        assert!(json(&file, 1 << 42).unwrap_err().to_string().contains("a zero byte"));
        assert!(text(&file, 1 << 42).unwrap_err().to_string().contains("a zero byte"));
        assert!(matches!(bytes(&file, 1 << 10), Err(Unread::TooLong(1024))));
        std::fs::write(&file, b"12345").unwrap();
        assert_eq!(bytes(&file, 5).unwrap(), b"12345");
        assert!(matches!(bytes(&file, 4), Err(Unread::TooLong(4))));
    }

    #[test]
    fn pipes_devices_and_links_do_not_hold_a_process_up() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, link, file) =
            (dir.path().join("pipe"), dir.path().join("link"), dir.path().join("file"));
        mkfifo(&pipe);
        std::os::unix::fs::symlink("file", &link).unwrap();
        for wrong in [&*pipe, Path::new("/dev/zero"), dir.path()] {
            assert!(to_read(wrong).is_err(), "{wrong:?}");
            assert!(own(wrong).is_err(), "{wrong:?}");
        }
        assert!(own(&link).unwrap_err().to_string().contains("it is a link") && !file.exists());
        assert!(
            to_write(&pipe, true)
                .unwrap_err()
                .to_string()
                .contains("no program reads this named pipe")
        );
        own(&file).unwrap();
        assert!(
            to_read(&link).is_ok()
                && to_write(&link, false).is_ok()
                && to_write(Path::new("/dev/null"), true).is_ok()
        );
        // A kernel's file that never ends where it is read.
        assert!(
            !is_open(Path::new("/proc/kmsg"))
                && is_open(Path::new("/proc/self/fd/7"))
                && is_open(Path::new("/dev/fd/63"))
        );
    }
}
