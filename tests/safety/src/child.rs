//! Starts a program, and waits for its end.

use std::fs;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where a program's stderr goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stderr {
    /// The program's stderr is read.
    Read,
    /// Nobody reads it: a write is refused.
    Closed,
    /// Nobody reads it, and its pipe is full: a write blocks.
    Full,
}

/// A program to be started.
pub struct Program {
    command: Command,
    stderr: Stderr,
    out: PathBuf,
}

/// One that runs.
pub struct Running {
    child: Child,
    since: Instant,
    out: PathBuf,
    /// The end of its stderr that nobody reads.
    _unread: Option<OwnedFd>,
}

/// One that has ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub took: Duration,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// The number that it printed after `NAME=`.
    pub fn number(&self, name: &str) -> Result<f64, String> {
        let of = |word: &str| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
        self.stdout.split_whitespace().find_map(of).ok_or_else(|| format!("no {name}: {self:?}"))
    }

    pub fn code(&self, code: i32) -> Result<(), String> {
        (self.status.code() == Some(code)).then_some(()).ok_or_else(|| format!("{self:?}"))
    }

    pub fn signal(&self, signal: i32) -> Result<(), String> {
        (self.status.signal() == Some(signal)).then_some(()).ok_or_else(|| format!("{self:?}"))
    }
}

impl Program {
    /// The program of this name, with andweorc on: half of `work` is taken away.
    pub fn on(name: &str) -> Program {
        let mut program = Program::off(name);
        program.command.env("ANDWEORC_ENABLED", "1");
        program
    }

    /// The program of this name, with andweorc off.
    pub fn off(name: &str) -> Program {
        let here = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(here);
        let out =
            std::env::temp_dir().join(format!("andweorc-safety-{}.jsonl", std::process::id()));
        fs::remove_file(&out).unwrap_or_default();
        command
            .args(["--program", name])
            .env_remove("ANDWEORC_ENABLED")
            .env("ANDWEORC_TARGETS", "work")
            .env("ANDWEORC_SPEEDUPS", "0.5")
            .env("ANDWEORC_DURATION", "60s")
            .env("ANDWEORC_OUT", &out)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        Program { command, stderr: Stderr::Read, out }
    }

    pub fn arg(mut self, arg: impl ToString) -> Program {
        self.command.arg(arg.to_string());
        self
    }

    pub fn var(mut self, name: &str, value: &str) -> Program {
        self.command.env(name, value);
        self
    }

    pub fn stderr(mut self, stderr: Stderr) -> Program {
        self.stderr = stderr;
        self
    }

    pub fn start(mut self) -> Running {
        let mut unread = None;
        match self.stderr {
            Stderr::Read => {
                self.command.stderr(Stdio::piped());
            }
            Stderr::Closed | Stderr::Full => {
                let mut ends = [0; 2];
                // SAFETY: `ends` is room for two descriptors, which the call opens and nobody else
                // owns.
                let [reader, writer] = unsafe {
                    assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
                    ends.map(|end| OwnedFd::from_raw_fd(end))
                };
                if self.stderr == Stderr::Full {
                    fill(&writer);
                    unread = Some(reader);
                }
                self.command.stderr(writer);
            }
        }
        let child = self.command.spawn().expect("this program can be started");
        // Its copy of the pipe's writing end goes with the command.
        drop(self.command);
        Running { child, since: Instant::now(), out: self.out, _unread: unread }
    }

    /// Runs it to its end, which is to come within `seconds`.
    pub fn run(self, seconds: u64) -> Result<Ended, String> {
        self.start().end(seconds)
    }
}

/// Fills a pipe, so that the next write blocks.
fn fill(pipe: &OwnedFd) {
    let fd = pipe.as_raw_fd();
    // SAFETY: takes plain numbers, and a buffer that lives through the call.
    unsafe {
        libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK);
        let page = [b'.'; 4096];
        while libc::write(fd, page.as_ptr().cast(), page.len()) > 0 {}
        libc::fcntl(fd, libc::F_SETFL, 0);
    }
}

impl Running {
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits until its profile has experiments, for at most 20 s.
    pub fn experiments(&mut self) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            if fs::read_to_string(&self.out).is_ok_and(|text| text.contains("\"experiment\"")) {
                return Ok(());
            }
            sleep(Duration::from_millis(20));
        }
        self.child.kill().ok();
        Err("its profile has no experiments after 20 s".into())
    }

    /// Waits until it has ended, for at most `seconds` from its start or the last signal.
    pub fn end(mut self, seconds: u64) -> Result<Ended, String> {
        // Both are read while it runs, since a full pipe would hold it up.
        let reads = |from: Option<Box<dyn Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Some(mut from) = from {
                    from.read_to_end(&mut bytes).ok();
                }
                String::from_utf8_lossy(&bytes).into_owned()
            })
        };
        let stdout = reads(self.child.stdout.take().map(|it| Box::new(it) as _));
        let stderr = reads(self.child.stderr.take().map(|it| Box::new(it) as _));
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it is a child") {
                break status;
            }
            if self.since.elapsed() > Duration::from_secs(seconds) {
                self.child.kill().ok();
                self.child.wait().ok();
                return Err(format!("alive after {seconds} s"));
            }
            sleep(Duration::from_millis(2));
        };
        let took = self.since.elapsed();
        let text = |read: std::thread::JoinHandle<String>| read.join().unwrap_or_default();
        Ok(Ended { status, took, stdout: text(stdout), stderr: text(stderr) })
    }

    /// Sends a signal.
    pub fn signal(&mut self, signal: i32) {
        // SAFETY: takes plain numbers.
        unsafe { libc::kill(self.pid(), signal) };
        self.since = Instant::now();
    }
}
