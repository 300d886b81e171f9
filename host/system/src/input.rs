//! Files that were named, or that stand in the tree: read whole, but no more of them than there should be.

use std::fs::{FileType, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of a file of results at most.
pub const RESULTS: u64 = 256 << 20;

/// Bytes of PTX, or of a source file, at most.
pub const SOURCE: u64 = 64 << 20;

/// Bytes of a chip's description at most.
pub const DESCRIPTION: u64 = 1 << 20;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The system does not give it.
    #[error("{}: {reason}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// What has the name is no file.
    #[error("{} is {what}: name a file", file.display())]
    NoFile {
        /// What was named.
        file: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It has no end, or is none of ours.
    #[error("{} has more than {most} bytes, the most that such a file may have: name another", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// How many it may have.
        most: u64,
    },
    /// It is no text.
    #[error("{} is no text: byte {at} is not UTF-8", file.display())]
    NoText {
        /// The file.
        file: PathBuf,
        /// The first byte that is none.
        at: usize,
    },
}

impl InputError {
    /// Whether there is nothing of that name.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { reason, .. } if reason.kind() == io::ErrorKind::NotFound)
    }
}

/// The bytes of a file, of which there are at most `most`. Directories, pipes, sockets and devices are refused.
///
/// # Errors
/// If it cannot be read, is no file, or has more bytes.
pub fn bytes(file: impl AsRef<Path>, most: u64) -> Result<Vec<u8>, InputError> {
    let file = file.as_ref();
    let wrong = |reason| InputError::Io { file: file.to_owned(), reason };
    let refuse = |what: FileType| match special(what) {
        Some(what) => Err(InputError::NoFile { file: file.to_owned(), what }),
        None => Ok(()),
    };
    // To open a device may do something, so it is asked before; what has the name may change, so it is asked again.
    refuse(std::fs::metadata(file).map_err(wrong)?.file_type())?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(target_os = "linux")]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let opened = options.open(file).map_err(wrong)?;
    refuse(opened.metadata().map_err(wrong)?.file_type())?;
    let mut bytes = Vec::new();
    opened.take(most + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > most {
        return Err(InputError::TooLarge { file: file.to_owned(), most });
    }
    Ok(bytes)
}

/// The same of a file of text.
///
/// # Errors
/// As [`bytes`], and if it is no UTF-8.
pub fn text(file: impl AsRef<Path>, most: u64) -> Result<String, InputError> {
    let bytes = bytes(&file, most)?;
    String::from_utf8(bytes)
        .map_err(|error| InputError::NoText { file: file.as_ref().to_owned(), at: error.utf8_error().valid_up_to() })
}

/// What it is, if it is no file.
fn special(what: FileType) -> Option<&'static str> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kinds = [
            (what.is_fifo(), "a pipe"),
            (what.is_socket(), "a socket"),
            (what.is_char_device() || what.is_block_device(), "a device"),
        ];
        if let Some((_, kind)) = kinds.into_iter().find(|(is, _)| *is) {
            return Some(kind);
        }
    }
    match what.is_file() {
        true => None,
        false if what.is_dir() => Some("a directory"),
        false => Some("no regular file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_to_its_end_if_that_comes_soon_enough() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("four");
        std::fs::write(&file, "four").expect("a file");
        assert_eq!(text(&file, 4).expect("as many as it may have"), "four");
        let error = text(&file, 3).expect_err("one too many").to_string();
        assert_eq!(
            error,
            format!("{} has more than 3 bytes, the most that such a file may have: name another", file.display())
        );
        std::fs::write(&file, b"ab\xFF").expect("a file");
        assert!(text(&file, 3).expect_err("no text").to_string().ends_with("is no text: byte 2 is not UTF-8"));
        assert_eq!(bytes(&file, 3).expect("bytes"), b"ab\xFF");
        assert!(text(folder.path().join("none"), 3).expect_err("no file").is_missing());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_refused_by_what_it_is_and_nobody_waits_for_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let [pipe, socket, link] = ["pipe", "socket", "link"].map(|name| folder.path().join(name));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
        for (path, what) in [
            (folder.path(), "is a directory"),
            (&pipe, "is a pipe"),
            (&socket, "is a socket"),
            (Path::new("/dev/zero"), "is a device"),
            (&link, "is a device"),
        ] {
            let error = bytes(path, 1 << 20).expect_err(what);
            assert!(error.to_string().contains(what) && !error.is_missing(), "{error}");
        }
    }
}
