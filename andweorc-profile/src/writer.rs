//! Writing a profile as the run goes.

use crate::file::{self, Links};
use crate::plain;
use crate::{LONGEST_LINE, Record};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::{error, fmt, mem};

/// Appends records to a profile, each flushed: a killed program leaves a profile that is readable
/// up to its last whole line.
///
/// On a full disk a line that did not fit is taken back, so that a disk with room again leaves no
/// torn line in the middle. Records that others refer to (headers, targets, points) are kept and
/// written before the next one.
///
/// Two runs never write to one file: while one does, it holds a lock (flock(2)) on it, where the
/// file system has such.
#[derive(Debug)]
pub struct Writer {
    file: File,
    /// Bytes of whole lines in the file.
    length: u64,
    /// Lines that did not fit and that others refer to.
    unwritten: Vec<Vec<u8>>,
    lost: u64,
    first_error: Option<io::Error>,
}

/// The file that it writes to.
impl AsFd for Writer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Writer {
    /// Creates the file, and its folders; an existing file is replaced. A symbolic link is
    /// followed.
    ///
    /// # Errors
    ///
    /// When the folders or the file can't be made, when something else than a plain file is there,
    /// and when another run writes to the file.
    pub fn create(path: &Path) -> Result<Writer, WriteError> {
        Writer::create_at(path, Links::Followed)
    }

    /// Creates the file as [`create`](Writer::create) does, at a path that anybody can guess: a
    /// symbolic link in the place of the file is refused, whatever it leads to. Those of its
    /// folders are followed.
    ///
    /// # Errors
    ///
    /// As [`create`](Writer::create), and when a symbolic link is there.
    pub fn create_at_default(path: &Path) -> Result<Writer, WriteError> {
        Writer::create_at(path, Links::Refused)
    }

    fn create_at(path: &Path, links: Links) -> Result<Writer, WriteError> {
        let file = file::create(path, links)
            .map_err(|source| WriteError { path: path.to_owned(), source })?;
        Ok(Writer { file, length: 0, unwritten: Vec::new(), lost: 0, first_error: None })
    }

    /// Appends one record. A record that can't be written is counted; the run goes on.
    pub fn write(&mut self, record: &Record) {
        let line = match serde_json::to_vec(record) {
            Ok(line) if line.len() > LONGEST_LINE => {
                let error = format!("a record of {} bytes, which no reader takes", line.len());
                return self.lose(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            Ok(mut line) => {
                line.push(b'\n');
                line
            }
            Err(error) => return self.lose(error.into()),
        };
        for line in mem::take(&mut self.unwritten) {
            self.append(line, true);
        }
        let described = matches!(record, Record::Header(_) | Record::Target(_) | Record::Point(_));
        self.append(line, described);
    }

    /// Appends a line, which is kept when it can't be written and `keep` says so.
    fn append(&mut self, line: Vec<u8>, keep: bool) {
        let written = if self.unwritten.is_empty() {
            // One write a line, so that nothing but the last line can be torn; a file has no buffer
            // to flush.
            (&self.file).write_all(&line)
        } else {
            // No line may come before one that it refers to.
            Err(io::ErrorKind::StorageFull.into())
        };
        match written {
            Ok(()) => self.length += line.len() as u64,
            Err(error) => {
                self.take_back();
                if keep {
                    self.first_error.get_or_insert(error);
                    self.unwritten.push(line);
                } else {
                    self.lose(error);
                }
            }
        }
    }

    fn lose(&mut self, error: io::Error) {
        self.lost += 1;
        self.first_error.get_or_insert(error);
    }

    /// Cuts off what was written of the last line. Where that fails there is nothing else to try,
    /// and the loss is counted.
    fn take_back(&mut self) {
        let cut = self.file.set_len(self.length);
        drop(cut.and_then(|()| (&self.file).seek(SeekFrom::Start(self.length))));
    }

    /// Records that could not be written.
    pub fn lost_records(&self) -> u64 {
        self.lost + self.unwritten.len() as u64
    }

    /// Why the first of them could not.
    pub fn first_error(&self) -> Option<&io::Error> {
        self.first_error.as_ref()
    }
}

/// A profile that can't be created.
#[derive(Debug)]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the profile {} can't be written: {}; set ANDWEORC_OUT to a file in a folder that you may write to",
            plain::path(&self.path),
            self.source
        )
    }
}

impl error::Error for WriteError {}
