//! A program that ends before its time is up is run again and again until the time is used up; its
//! profiles become one.

use crate::child;
use crate::drive::{DriveError, DriveOptions, Ended, Launch, drive};
use crate::live::View;
use andweorc_profile::report;
use andweorc_profile::{Profile, ReadError, ReadErrorKind, Run};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{error, fmt};

/// A run that is shorter holds no experiment: the program is watched first.
const LEAST: Duration = Duration::from_secs(2);

/// A program, and how long it may be profiled.
#[derive(Debug)]
pub(crate) struct Series<'a> {
    /// Name of the program.
    pub(crate) name: &'a str,
    /// Where the profile goes.
    pub(crate) out: &'a Path,
    /// Load and readiness.
    pub(crate) options: &'a DriveOptions,
    /// The time of all runs.
    pub(crate) budget: Duration,
}

/// Settings that a further run has other than the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Further {
    /// Its time, as long as the program lasts: experiments shall fit in.
    pub(crate) time: Duration,
    /// Its order of experiments: else each run would begin with the same few, and end before the
    /// others.
    pub(crate) order: usize,
}

impl Series<'_> {
    /// Runs what `command` makes for the first run, and for each further one.
    ///
    /// # Errors
    ///
    /// As [`drive`]; and when a profile can't be read or joined to those before it.
    pub(crate) fn run(
        &self,
        command: impl Fn(&Path, Option<Further>) -> Command,
        view: &mut View,
    ) -> Result<(Ended, Profile), SeriesError> {
        let mut ended = self.once(&mut command(self.out, None), self.out, &[], view)?;
        let mut runs = self.read(self.out, &ended)?;
        while let Some(time) = self.next(&runs, &ended, view) {
            let part = Part::beside(self.out);
            let further = Further { time, order: runs.len() };
            ended = self.once(&mut command(&part.0, Some(further)), &part.0, &runs, view)?;
            let new = self.read(&part.0, &ended)?;
            part.append_to(self.out)
                .map_err(|source| SeriesError::Join { file: self.out.to_owned(), source })?;
            runs.extend(new);
        }
        Ok((ended, Profile::from(runs)))
    }

    fn once(
        &self,
        command: &mut Command,
        out: &Path,
        earlier: &[Run],
        view: &mut View,
    ) -> Result<Ended, DriveError> {
        let launch =
            Launch { name: self.name, out, options: self.options, earlier, budget: self.budget };
        drive(command, &launch, view)
    }

    fn read(&self, out: &Path, ended: &Ended) -> Result<Vec<Run>, SeriesError> {
        match Profile::read(out) {
            Ok(profile) => Ok(profile.runs),
            Err(error) if is_absent(error.kind()) => {
                Err(SeriesError::Drive(DriveError::NoProfile {
                    name: self.name.to_owned(),
                    out: out.to_owned(),
                    instead: ended.instead(),
                }))
            }
            Err(error) => Err(SeriesError::Read(error)),
        }
    }

    /// How long the next run may be; `None` when there shall be none.
    fn next(&self, runs: &[Run], ended: &Ended, view: &View) -> Option<Duration> {
        if child::stop_asked() || ended.stopped || !ended.status.success() {
            return None;
        }
        let (first, last) = (runs.first()?, runs.last()?);
        if is_complete(first) || last.end.as_ref().is_none_or(|end| end.reason == "settled") {
            return None;
        }
        let spent: u64 = runs.iter().map(report::real_ns).sum();
        let left =
            self.budget.checked_sub(Duration::from_nanos(spent)).filter(|it| *it >= LEAST)?;
        let lasts = Duration::from_nanos(report::real_ns(first));
        let tested = runs.iter().flat_map(|run| &run.experiments).any(|it| it.target.is_some());
        if lasts < LEAST || (runs.len() > 1 && !tested) {
            view.say(format_args!(
                "{} ends by itself after {:.1} s, too soon for experiments: give it more work to do",
                self.name,
                lasts.as_secs_f64()
            ));
            return None;
        }
        if runs.len() == 1 {
            view.say(format_args!(
                "{} ends by itself after {:.1} s, and is run again until the time is used up",
                self.name,
                lasts.as_secs_f64()
            ));
        }
        Some(lasts.min(left))
    }
}

/// Whether the run came to its end before its program did.
fn is_complete(run: &Run) -> bool {
    run.end.as_ref().is_none_or(|end| ["settled", "time"].contains(&end.reason.as_str()))
}

fn is_absent(kind: &ReadErrorKind) -> bool {
    match kind {
        ReadErrorKind::Io(error) => error.kind() == io::ErrorKind::NotFound,
        ReadErrorKind::Empty => true,
        _ => false,
    }
}

/// The profile of one of several runs, until it is joined to the others or dropped.
#[derive(Debug)]
struct Part(PathBuf);

impl Part {
    fn beside(out: &Path) -> Part {
        let mut name = out.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = Part(out.with_file_name(name));
        part.remove();
        part
    }

    fn append_to(&self, out: &Path) -> io::Result<()> {
        let part = fs::read(&self.0)?;
        // A torn last line would run into the next header.
        let whole = part.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        OpenOptions::new().append(true).open(out)?.write_all(&part[..whole])
    }

    fn remove(&self) {
        // Most often there is none left.
        fs::remove_file(&self.0).unwrap_or_default();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Runs without a profile.
#[derive(Debug)]
pub(crate) enum SeriesError {
    /// A run came to nothing.
    Drive(DriveError),
    /// A profile can't be read.
    Read(ReadError),
    /// A profile can't be added to those before it.
    Join {
        /// The file of all.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl From<DriveError> for SeriesError {
    fn from(error: DriveError) -> SeriesError {
        SeriesError::Drive(error)
    }
}

impl fmt::Display for SeriesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SeriesError::Drive(error) => error.fmt(f),
            SeriesError::Read(error) => error.fmt(f),
            SeriesError::Join { file, source } => {
                write!(
                    f,
                    "the profile of a further run can't be added to {}: {source}",
                    file.display()
                )
            }
        }
    }
}

impl error::Error for SeriesError {}
