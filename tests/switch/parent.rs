//! Runs the programs and waits for what they do, with deadlines that only a hanging program misses.

use super::child::PROGRAM;
use andweorc_profile::{Profile, Run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, io};
use tempfile::TempDir;
use tests_support::take_interrupts;

const DEADLINE: Duration = Duration::from_secs(60);

/// How often a program is run of which one run must do.
const TRIES: usize = 5;

/// A program to run in a directory of its own.
pub(crate) struct Program {
    directory: TempDir,
    name: &'static str,
    vars: Vec<(&'static str, String)>,
}

impl Program {
    pub(crate) fn new(name: &'static str) -> Program {
        Program { directory: tempfile::tempdir().unwrap(), name, vars: Vec::new() }
    }

    /// Profiled for 2 s.
    pub(crate) fn enabled(self) -> Program {
        let out = self.out().display().to_string();
        self.var("ANDWEORC_ENABLED", "1").var("ANDWEORC_DURATION", "2s").var("ANDWEORC_OUT", &out)
    }

    pub(crate) fn var(mut self, name: &'static str, value: &str) -> Program {
        self = self.without(name);
        self.vars.push((name, value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Program {
        self.vars.retain(|(set, _)| *set != name);
        self
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Where its profile goes.
    pub(crate) fn out(&self) -> PathBuf {
        self.directory().join("profile.jsonl")
    }

    /// Its profile, of one run.
    pub(crate) fn profile(&self) -> Run {
        let mut runs = Profile::read(&self.out()).unwrap_or_else(|error| panic!("{error}")).runs;
        assert_eq!(runs.len(), 1);
        runs.remove(0)
    }

    pub(crate) fn run(&self) -> Ended {
        self.start().wait()
    }

    pub(crate) fn start(&self) -> Process {
        take_interrupts();
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "child", "--ignored", "--nocapture", "--quiet"]);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("ANDWEORC_") {
                command.env_remove(name);
            }
        }
        command.envs(self.vars.iter().map(|(name, value)| (name, value))).env(PROGRAM, self.name);
        command.current_dir(self.directory()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = Output::of(child.stdout.take().unwrap());
        let stderr = Output::of(child.stderr.take().unwrap());
        Process { child, stdout, stderr }
    }

    /// Waits until an experiment is written.
    pub(crate) fn await_experiment(&self, process: &mut Process) {
        self.await_run(process, |run| !run.experiments.is_empty());
    }

    /// Waits until the run has ended.
    pub(crate) fn await_end(&self, process: &mut Process) {
        self.await_run(process, |run| run.end.is_some());
    }

    /// Waits until the run is like this.
    pub(crate) fn await_run(&self, process: &mut Process, is: impl Fn(&Run) -> bool) {
        process.until("the profile", || {
            Profile::read(&self.out()).is_ok_and(|profile| profile.runs.iter().any(&is))
        });
    }
}

/// Why a run ended.
pub(crate) fn reason(run: &Run) -> &str {
    &run.end.as_ref().unwrap_or_else(|| panic!("no end: {run:?}")).reason
}

/// For how many seconds the program did not run, if that is why an experiment is discarded.
pub(crate) fn stopped_for(discarded: &str) -> Option<f64> {
    discarded.strip_prefix("the program did not run for ")?.strip_suffix(" s")?.parse().ok()
}

/// Asserts that `f` says yes once: what else the machine does may spoil one try, but not each.
pub(crate) fn once(f: impl Fn() -> (bool, String)) {
    let mut told = Vec::new();
    let seen = (0..TRIES).any(|_| {
        let (seen, what) = f();
        told.push(what);
        seen
    });
    assert!(seen, "{told:#?}");
}

/// A running program; killed when dropped.
pub(crate) struct Process {
    child: Child,
    stdout: Output,
    stderr: Output,
}

impl Process {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    pub(crate) fn await_stderr(&mut self, text: &str) {
        let so_far = Arc::clone(&self.stderr.so_far);
        self.until(text, || String::from_utf8_lossy(&so_far.lock().unwrap()).contains(text));
    }

    fn until(&mut self, what: &str, is: impl Fn() -> bool) {
        let began = Instant::now();
        while !is() {
            let status = self.child.try_wait().unwrap();
            assert!(status.is_none(), "ended before {what}: {status:?}: {:?}", self.stderr);
            assert!(began.elapsed() < DEADLINE, "no {what} in {DEADLINE:?}: {:?}", self.stderr);
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Ended {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < DEADLINE, "still runs after {DEADLINE:?}: {:?}", self.stderr);
            thread::sleep(Duration::from_millis(10));
        };
        Ended { status, stdout: self.stdout.all(), stderr: self.stderr.all() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.child.kill().expect("a running child can be killed");
            self.child.wait().expect("a killed child ends");
        }
    }
}

/// Outcome of a program: its exit status and its output.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Asserts that all but stderr is the same.
    pub(crate) fn assert_same_as(&self, other: &Ended) {
        assert_eq!((self.status, &self.stdout), (other.status, &other.stdout), "{self:?}");
    }
}

/// An output of a program, read as it comes so that the program is never blocked.
#[derive(Debug)]
struct Output {
    so_far: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<io::Result<()>>>,
}

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Output {
        let so_far = Arc::<Mutex<Vec<u8>>>::default();
        let read = Arc::clone(&so_far);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                match pipe.read(&mut bytes)? {
                    0 => return Ok(()),
                    n => read.lock().unwrap().extend_from_slice(&bytes[..n]),
                }
            }
        });
        Output { so_far, reader: Some(reader) }
    }

    fn all(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap().unwrap();
        }
        String::from_utf8(self.so_far.lock().unwrap().clone()).unwrap()
    }
}
