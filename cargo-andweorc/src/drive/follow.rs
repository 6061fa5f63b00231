//! The profile while it grows.

use andweorc_profile::{Record, Run};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// So much is read at once, bytes: the longest line that the reader of profiles takes.
const AT_ONCE: usize = 64 << 20;

/// Follows the profile of one run, record by record. What can't be read is passed over: the report,
/// made from the whole file, says what is wrong with it.
#[derive(Debug)]
pub(crate) struct Follower {
    path: PathBuf,
    /// State of the file that was there before the run, which is not followed.
    before: Option<State>,
    offset: u64,
    /// The begin of a line whose end is not written yet.
    rest: Vec<u8>,
    run: Option<Run>,
}

/// State of a file, which tells a profile that the program wrote from one that an earlier run left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    length: u64,
    inode: u64,
    modified: Option<SystemTime>,
}

impl State {
    fn of(path: &Path) -> Option<State> {
        let file = fs::metadata(path).ok()?;
        Some(State { length: file.len(), inode: file.ino(), modified: file.modified().ok() })
    }
}

impl Follower {
    /// Follows the profile that will be written to `path`, in the place of what is there now.
    pub(crate) fn new(path: &Path) -> Follower {
        let before = State::of(path);
        Follower { path: path.to_owned(), before, offset: 0, rest: Vec::new(), run: None }
    }

    /// Whether the run has written anything.
    pub(crate) fn is_written(&self) -> bool {
        let now = State::of(&self.path);
        now != self.before && now.is_some_and(|now| now.length > 0)
    }

    /// Returns what is known of the run; `None` before its header.
    pub(crate) fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Whether the run has ended, as far as its profile goes.
    pub(crate) fn has_ended(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.end.is_some())
    }

    /// Reads what was written since the last call. True when there were records.
    pub(crate) fn read_on(&mut self) -> bool {
        let Some(now) = State::of(&self.path).filter(|now| Some(*now) != self.before) else {
            return false;
        };
        if now.length < self.offset {
            // A new one in its place.
            (self.offset, self.rest) = (0, Vec::new());
        }
        if now.length == self.offset {
            return false;
        }
        let mut new = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.offset))?;
            file.take(AT_ONCE as u64).read_to_end(&mut new)
        });
        self.offset += read.unwrap_or(0) as u64;
        self.rest.append(&mut new);
        let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') else {
            if self.rest.len() > AT_ONCE {
                // No record is so long.
                self.rest.clear();
            }
            return false;
        };
        let rest = self.rest.split_off(end + 1);
        let lines = std::mem::replace(&mut self.rest, rest);
        let records = lines.split(|&byte| byte == b'\n');
        for record in records.filter_map(|line| serde_json::from_slice(line).ok()) {
            match (record, &mut self.run) {
                (Record::Header(header), run) => *run = Some(Run::new(header)),
                (record, Some(run)) => run.push(record),
                (_, None) => {}
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const HEADER: &str = r#"{"record":"header","schema":1,"program":"shop","build_id":null,"host":"here","cores":2,"andweorc":"0.1.0","tokio":null,"duration_ns":30,"speedups":[0.5],"targets":[],"points":[],"start_unix_ms":0}"#;
    const NOTE: &str = r#"{"record":"note","at_ns":1,"text":"a"}"#;
    const END: &str = r#"{"record":"end","reason":"time","real_ns":2,"experiments":0,"spoiled":0,"lost_samples":0,"lost_records":0}"#;

    #[test]
    fn records_are_seen_as_their_lines_become_whole_and_an_older_profile_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.jsonl");
        fs::write(&path, format!("{HEADER}\n{NOTE}\n{NOTE}\n{END}\n")).unwrap();
        let mut follower = Follower::new(&path);
        assert!(!follower.read_on() && !follower.is_written() && follower.run().is_none());

        let mut file = File::create(&path).unwrap();
        let (first, second) = NOTE.split_at(9);
        write!(file, "{HEADER}\n{first}").unwrap();
        assert!(follower.read_on() && follower.is_written());
        assert!(follower.run().unwrap().notes.is_empty());
        assert!(!follower.read_on(), "there is nothing new");
        write!(file, "{second}\n{END}").unwrap();
        assert!(follower.read_on());
        assert_eq!(follower.run().unwrap().notes.len(), 1);
        assert!(!follower.has_ended(), "its line is not whole");
        writeln!(file).unwrap();
        assert!(follower.read_on() && follower.has_ended());
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.jsonl");
        let mut follower = Follower::new(&path);
        let mut file = File::create(&path).unwrap();
        writeln!(file, "{HEADER}").unwrap();
        assert!(follower.read_on());
        // Zeros, which take no place on the disk.
        file.set_len(5 * AT_ONCE as u64).unwrap();
        for _ in 0..6 {
            follower.read_on();
            assert!(follower.rest.len() <= AT_ONCE && follower.rest.capacity() <= 3 * AT_ONCE);
        }
        file.seek(SeekFrom::End(0)).unwrap();
        writeln!(file, "\n{NOTE}").unwrap();
        assert!(follower.read_on());
        assert_eq!(follower.run().unwrap().notes.len(), 1);
    }
}
