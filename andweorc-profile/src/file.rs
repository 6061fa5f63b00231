//! The file that a profile is written to, from its opening on.
//!
//! - Only a plain file will do: the reader needs the whole of it, lines that did not fit are cut
//!   off again, and a pipe that nobody reads would hold the run up. It is looked at before it is
//!   opened, since to open a device may be an order to it, and again after that. To open what was
//!   put in its place in between does not block.
//! - It is emptied by its descriptor, never by its name, and only once it is known to be a plain
//!   file that nobody else writes to.
//! - It is locked by flock(2), which has no effect on whoever does not ask. A child of fork shares
//!   the lock: a program that forks has to see to it that the child lets go of the file.

use std::fs::{self, File, FileType, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Whether a symbolic link at the last place of a path is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// The user named the path.
    Followed,
    /// Anybody can guess the path: a link that was put there would have its target emptied.
    Refused,
}

/// Creates the file, empty and locked.
pub(super) fn create(path: &Path, links: Links) -> io::Result<File> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let there = match links {
        Links::Followed => path.metadata(),
        Links::Refused => path.symlink_metadata(),
    };
    if let Ok(there) = there {
        plain(there.file_type())?;
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let no_links = if links == Links::Refused { libc::O_NOFOLLOW } else { 0 };
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags | no_links)
        .open(path)?;
    plain(file.metadata()?.file_type())?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another run writes to it"));
    }
    file.set_len(0)?;
    Ok(file)
}

/// Whether it is a plain file.
///
/// # Errors
///
/// When it is something else, with what it is.
fn plain(it: FileType) -> io::Result<()> {
    let what = if it.is_file() {
        return Ok(());
    } else if it.is_dir() {
        "a directory"
    } else if it.is_symlink() {
        "a symbolic link, which is not followed at the place that a profile has when none is said"
    } else if it.is_fifo() {
        "a named pipe (FIFO)"
    } else if it.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, and no plain file")))
}
