//! Writing a profile as the run goes.

use crate::profile::Record;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{error, fmt};

/// Appends records to a profile, each flushed: a killed program leaves a profile that is readable up to its last whole line.
#[derive(Debug)]
pub struct Writer {
    file: File,
    lost: u64,
    first_error: Option<io::Error>,
}

impl Writer {
    /// Creates the file, and its folders; an existing file is replaced.
    ///
    /// # Errors
    ///
    /// When the folders or the file can't be made.
    pub fn create(path: &Path) -> Result<Writer, WriteError> {
        let error = |source| WriteError { path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(error)?;
        }
        Ok(Writer { file: File::create(path).map_err(error)?, lost: 0, first_error: None })
    }

    /// Appends one record. A record that can't be written is counted; the run goes on.
    pub fn write(&mut self, record: &Record) {
        let written = serde_json::to_vec(record).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            // One write a line, so that nothing but the last line can be torn; a file has no buffer to flush.
            self.file.write_all(&line)
        });
        if let Err(error) = written {
            self.lost += 1;
            self.first_error.get_or_insert(error);
        }
    }

    /// Records that could not be written.
    pub fn lost_records(&self) -> u64 {
        self.lost
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
            self.path.display(),
            self.source
        )
    }
}

impl error::Error for WriteError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.source)
    }
}
