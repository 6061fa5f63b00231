//! The world outside that takes processor time of its own, the clients of HTTP services: a process,
//! so that nothing the profiler does to a program delays it. It ends when the program that started
//! it does. And how long everything takes that is outside.

use crate::load;
use crate::machine;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The argument that makes this program the world outside.
pub(crate) const ARGUMENT: &str = "--outside-world";

/// Whether each answer takes as long as the one before.
static STEADY: AtomicBool = AtomicBool::new(false);

/// From now on each answer takes as long as the one before. Then programs that do nothing else of
/// their own accord fall in step with each other, and what a cheaper part brings hangs on the step.
pub(crate) fn be_steady() {
    STEADY.store(true, Ordering::SeqCst);
}

/// Whether each answer takes as long as the one before.
pub(crate) fn is_steady() -> bool {
    STEADY.load(Ordering::SeqCst)
}

/// How long something takes each time, from half of its mean to one and a half.
#[derive(Debug)]
pub(crate) struct Vary(f64);

impl Vary {
    pub(crate) fn new() -> Vary {
        Vary(fastrand::f64())
    }

    /// How long it takes next that takes `mean` on average. By the golden ratio, each few are
    /// spread evenly, so that their mean is known sooner than that of random ones.
    pub(crate) fn next(&mut self, mean: Duration) -> Duration {
        self.0 = (self.0 + (5_f64.sqrt() - 1.0) / 2.0).fract();
        if is_steady() { mean } else { mean.mul_f64(0.5 + self.0) }
    }
}

/// The program's side of the other process.
#[derive(Debug)]
pub(crate) struct Outside {
    process: Child,
    tell: ChildStdin,
}

impl Outside {
    pub(crate) fn start() -> io::Result<Outside> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(is_steady().then_some("--steady"))
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let tell = process.stdin.take().expect("its standard input is a pipe");
        let told = process.stdout.take().expect("its standard output is a pipe");
        let mut ready = String::new();
        BufReader::new(told).read_line(&mut ready)?;
        if ready.trim() != "ready" {
            return Err(io::Error::other("the world outside did not come up"));
        }
        Ok(Outside { process, tell })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Lets it send its clients to an HTTP service.
    pub(crate) fn send_clients(&mut self, load: &load::Load) -> io::Result<()> {
        writeln!(self.tell, "{load}")
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone after this.
        self.process.kill().and_then(|()| self.process.wait()).ok();
    }
}

/// Runs the world outside, in a process of its own: starts each load that its stdin names.
pub(crate) fn run() -> io::Result<()> {
    if let Err(error) = machine::go_first() {
        eprintln!(
            "the world outside waits for processors like everybody ({error}): run this as root"
        );
    }
    println!("ready");
    for line in io::stdin().lines() {
        load::start(line?.parse()?);
    }
    Ok(())
}
