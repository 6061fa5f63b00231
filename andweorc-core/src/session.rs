//! A profiling session: one run, from start to report.

pub(crate) mod link;
pub(crate) mod provisional;
pub(crate) mod sessions;

use crate::experiment::{
    ExperimentLoop, Experimenter, Finished, Rounds, Status, Stop, want_samples,
};
use crate::fork::{Unshared, forked};
use crate::own_thread;
use crate::program_clock;
use crate::sampler::Sampling;
use crate::settings::{ProgramClock, SettingError, Settings};
use crate::sync::Mutex;
use andweorc_profile::estimate::{Analysis, analyse};
use andweorc_profile::plain;
use andweorc_profile::report::{self, Looks};
use andweorc_profile::{Header, WriteError, Writer};
use andweorc_sampling::binary::Binary;
use link::Link;
use provisional::{GAVE_WAY, Guest, Stopper};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fmt, io, mem, slice, thread};

/// A profiling session, from [`start`](Session::start) to [`finish`](Session::finish). Experiments
/// run on a thread of their own meanwhile. Dropped, it is stopped and its profile ends in order. It
/// may go on for days: the memory that it needs does not grow with its length (its profile does).
/// When it has ended andweorc is off again, and costs about as little as before it began; with
/// `--cfg tokio_unstable` it goes on watching the tasks that nobody wrapped.
///
/// There is one in a process at a time.
#[derive(Debug)]
#[must_use = "a session ends when it is dropped"]
pub struct Session {
    path: PathBuf,
    stop: Arc<Stop>,
    reason: Arc<Mutex<Option<String>>>,
    status: Arc<Mutex<Status>>,
    thread: Option<JoinHandle<Finished>>,
    /// A provisional session has one. The last field, which is dropped when the profile is closed.
    guest: Option<Guest>,
}

impl Session {
    /// Starts to profile: creates the profile and begins to watch the program.
    ///
    /// `ANDWEORC_ENABLED` makes the layer, the subscriber or a runtime's builder start a session,
    /// which gives way to this one.
    ///
    /// # Errors
    ///
    /// When another session is under way, in a child of [fork](mod@crate::fork), when the profile
    /// can't be written, and when no thread can be started. The program goes on unprofiled.
    pub fn start(settings: Settings) -> Result<Session, StartError> {
        if forked() {
            return Err(StartError::Forked);
        }
        let experimenter = provisional::experimenter().ok_or(StartError::AlreadyRunning)?;
        Session::begin(settings, experimenter)
    }

    /// Starts to profile until the program starts a session of its own, to which this one gives
    /// way. The facade crate calls it.
    ///
    /// # Errors
    ///
    /// The same as those of [`start`](Session::start).
    #[doc(hidden)]
    pub fn start_provisional(settings: Settings) -> Result<Session, StartError> {
        provisional::start(settings)
    }

    fn begin(settings: Settings, experimenter: Experimenter) -> Result<Session, StartError> {
        if !cfg!(feature = "sampling") {
            settings.refuse_sampling(|target| want_samples(&[target.to_owned()]))?;
        }
        if settings.clock == ProgramClock::Real {
            program_clock::keep_real();
        }
        program_clock::start();
        let experimenter = experimenter.with_max_slowdown(settings.max_slowdown);
        if let Some(threshold) = settings.long_poll {
            experimenter.long_polls().watch(threshold);
        }
        let path = settings.out.clone().unwrap_or_else(|| default_path(&program()));
        let writer = match settings.out {
            Some(_) => Writer::create(&path),
            None => Writer::create_at_default(&path),
        };
        let writer = Unshared::new(writer.map_err(StartError::Profile)?);
        let stop = experimenter.stopper();
        let reason = Arc::new(Mutex::new(None));
        let status = Arc::new(Mutex::new(Status::new(settings.duration)));
        let header = header(&settings);
        let join = settings.join.clone();
        let mut experiments =
            ExperimentLoop::new(settings, experimenter, header, Some(writer), Arc::clone(&status));
        if let Some(join) = join {
            let stopper = Stopper { stop: Arc::clone(&stop), reason: Arc::clone(&reason) };
            experiments =
                experiments.with_link(Link::start(join, stopper).map_err(StartError::Thread)?);
        }
        let why = Arc::clone(&reason);
        let run = move || experiments.run(|| why.lock().take());
        let thread = own_thread::spawn("andweorc", run).map_err(StartError::Thread)?;
        Ok(Session { path, stop, reason, status, thread: Some(thread), guest: None })
    }

    fn stopper(&self) -> Stopper {
        Stopper { stop: Arc::clone(&self.stop), reason: Arc::clone(&self.reason) }
    }

    /// Returns what the session is doing.
    pub fn status(&self) -> Status {
        self.status.lock().clone()
    }

    /// Whether it has come to its end by itself: settled, or the time is up.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Where the profile is written.
    pub fn profile_path(&self) -> &Path {
        &self.path
    }

    /// Blocks until it comes to its end by itself, and returns what it found.
    pub fn wait(mut self) -> Outcome {
        self.join()
    }

    /// Stops it, for the reason that the profile will name, and returns what it found.
    pub fn finish(mut self, reason: &str) -> Outcome {
        self.ask_to_stop(reason);
        self.join()
    }

    fn ask_to_stop(&self, reason: &str) {
        if forked() {
            return;
        }
        self.stopper().stop(reason);
    }

    fn join(&mut self) -> Outcome {
        if forked() {
            // There is no such thread here, and the profile is the parent's.
            mem::forget(self.thread.take());
            return Outcome {
                path: self.path.clone(),
                analysis: analyse(&[]),
                report: format!("andweorc: {}\n", StartError::Forked),
            };
        }
        let joined = self.thread.take().map(JoinHandle::join);
        match joined {
            Some(Ok(finished)) => Outcome::new(self.path.clone(), &finished),
            // The writer was dropped by the panic: what it had written is there, and ends torn.
            Some(Err(_)) | None => Outcome {
                path: self.path.clone(),
                analysis: analyse(&[]),
                report: format!(
                    "andweorc: the profiler's thread panicked; {} holds what it had written\n",
                    plain::path(&self.path)
                ),
            },
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.ask_to_stop("dropped");
            self.join();
        }
    }
}

/// Findings of a session.
#[derive(Debug)]
pub struct Outcome {
    path: PathBuf,
    analysis: Analysis,
    report: String,
}

impl Outcome {
    fn new(path: PathBuf, finished: &Finished) -> Outcome {
        let Finished { run, writer, .. } = finished;
        let analysis = run.analysis();
        let gave_way = run.run().end.as_ref().is_some_and(|end| end.reason == GAVE_WAY);
        let mut report = if gave_way {
            "andweorc: the session that ANDWEORC_ENABLED asks for gave way to one that the program started itself\n".to_owned()
        } else {
            report::text(slice::from_ref(run.run()), &analysis, Looks::default())
        };
        if let Some(writer) = writer
            && let Some(error) = writer.first_error()
        {
            report.push_str(&format!(
                "{} records could not be written to {}: {error}\n",
                writer.lost_records(),
                plain::path(&path)
            ));
        }
        Outcome { path, analysis, report }
    }

    /// The ranking, in words.
    pub fn report(&self) -> &str {
        &self.report
    }

    /// The estimates. Effects are those on the eight most important points, and on the most
    /// important one that has latencies: a session may go on for days, and keeps no rows but in its
    /// profile, from which the others can be estimated ([`analyse`]).
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// Where the profile is.
    pub fn profile_path(&self) -> &Path {
        &self.path
    }
}

/// Why a session did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// Another session of this process is under way.
    AlreadyRunning,
    /// This process was forked from one in which andweorc was on.
    Forked,
    /// A setting is malformed or unknown.
    Setting(SettingError),
    /// The profile can't be written.
    Profile(WriteError),
    /// No thread could be started.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::AlreadyRunning => f.write_str(
                "another profiling session is under way in this process: two would delay for each other; finish that one first",
            ),
            StartError::Forked => f.write_str(
                "this process was forked from a profiled one and has none of its threads: start the session after the fork, or exec",
            ),
            StartError::Setting(error) => error.fmt(f),
            StartError::Profile(error) => error.fmt(f),
            StartError::Thread(error) => write!(f, "the profiler's thread could not be started: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<SettingError> for StartError {
    fn from(error: SettingError) -> StartError {
        StartError::Setting(error)
    }
}

/// Holds these rounds on what `sampling` finds, on the calling thread, and writes no profile: a
/// session for the [classic API](crate::runner).
pub(crate) fn hold_rounds(
    settings: Settings,
    experimenter: Experimenter,
    rounds: Rounds,
    sampling: Sampling,
) -> Finished {
    let status = Arc::new(Mutex::new(Status::new(settings.duration)));
    let header = header(&settings);
    ExperimentLoop::new(settings, experimenter, header, None, status)
        .with_rounds(rounds, sampling)
        .run(|| None)
}

/// The program's file name.
fn program() -> String {
    let path = env::current_exe().ok().or_else(|| env::args_os().next().map(PathBuf::from));
    path.as_deref().and_then(name_of).unwrap_or_else(|| "program".to_owned())
}

/// The name of an executable, without the hash that cargo gives a test or a bench, and another one
/// with each change of its dependencies.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_string_lossy();
    let is_hash = |it: &str| it.len() == 16 && it.bytes().all(|byte| byte.is_ascii_hexdigit());
    let in_deps = path.parent().is_some_and(|folder| folder.ends_with("deps"));
    let plain = name.rsplit_once('-').filter(|(_, hash)| in_deps && is_hash(hash));
    Some(plain.map_or(&*name, |(plain, _)| plain).to_owned())
}

/// Where the profile of `program` goes when nothing else is said.
fn default_path(program: &str) -> PathBuf {
    Path::new("target/andweorc").join(format!("{program}.jsonl"))
}

pub(crate) fn header(settings: &Settings) -> Header {
    let cut = |names: &[String]| names.iter().map(|it| plain::cut_name(it).into()).collect();
    let Binary { build_id, tokio, .. } = Binary::running();
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut header = Header::new(program());
    header.build_id = build_id;
    header.host = nix::unistd::gethostname()
        .map_or("unknown".to_owned(), |name| name.to_string_lossy().into_owned());
    header.cores = thread::available_parallelism().map_or(1, usize::from);
    header.andweorc = env!("CARGO_PKG_VERSION").to_owned();
    header.tokio = tokio;
    header.tokio_unstable = Some(cfg!(tokio_unstable));
    header.sampling = Some(cfg!(feature = "sampling"));
    header.duration_ns = u64::try_from(settings.duration.as_nanos()).unwrap_or(u64::MAX);
    header.speedups = settings.speedups.iter().map(|speedup| speedup.fraction()).collect();
    header.targets = cut(&settings.targets);
    header.points = cut(&settings.points);
    header.start_unix_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_test_or_bench_is_no_part_of_its_name() {
        let name = |path: &str| name_of(Path::new(path)).unwrap();
        assert_eq!(name("/t/release/deps/orders-493c71d1107878c6"), "orders");
        assert_eq!(name("/t/release/shop-493c71d1107878c6"), "shop-493c71d1107878c6");
        assert_eq!(name("/t/release/deps/order-book"), "order-book");
    }
}
