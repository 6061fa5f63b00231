//! Output of the program and of the load: handed through, and looked into for the line that shows
//! that the program is ready.
//!
//! A stream is piped only where that is needed: when lines are looked for, or when it would run
//! into the live view on the terminal.

use crate::live::Printer;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long to wait for the rest of the output of a process that has ended; a process of its own
/// may hold the pipe open.
const REST: Duration = Duration::from_millis(500);

/// Where output goes.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    printer: Printer,
    line: Option<Arc<Line>>,
}

/// The line that is looked for.
#[derive(Debug)]
struct Line {
    text: String,
    seen: AtomicBool,
}

/// Which stream of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    /// The standard output.
    Out,
    /// The standard error.
    Err,
}

/// The threads that hand a process's output through.
#[derive(Debug)]
pub(crate) struct Forwarded(Vec<JoinHandle<()>>);

impl Output {
    /// Output through `printer`, looked into for `line`.
    pub(crate) fn new(printer: Printer, line: Option<&str>) -> Output {
        let line = line.map(|text| Arc::new(Line { text: text.to_owned(), seen: false.into() }));
        Output { printer, line }
    }

    /// Whether the line was seen.
    pub(crate) fn line_seen(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.seen.load(SeqCst))
    }

    /// Pipes what needs to be piped of the program.
    pub(crate) fn prepare(&self, command: &mut Command) {
        let through = |terminal: bool| self.line.is_some() || (terminal && self.printer.is_live());
        if through(io::stdout().is_terminal()) {
            command.stdout(Stdio::piped());
        }
        if through(io::stderr().is_terminal()) {
            command.stderr(Stdio::piped());
        }
    }

    /// Sends all that a load prints to stderr: stdout is for results.
    pub(crate) fn prepare_load(&self, command: &mut Command) -> io::Result<()> {
        if self.printer.is_live() {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        } else {
            command.stdout(io::stderr());
        }
        Ok(())
    }

    /// Hands on what comes out of the piped streams of the program.
    pub(crate) fn forward(&self, child: &mut Child) -> Forwarded {
        let out = child.stdout.take().map(|pipe| self.copy(pipe, Stream::Out));
        let err = child.stderr.take().map(|pipe| self.copy(pipe, Stream::Err));
        Forwarded(out.into_iter().chain(err).collect())
    }

    fn copy(&self, pipe: impl Read + Send + 'static, to: Stream) -> JoinHandle<()> {
        let output = self.clone();
        thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while matches!(pipe.read_until(b'\n', &mut line), Ok(n) if n > 0) {
                if let Some(wanted) = &output.line
                    && String::from_utf8_lossy(&line).contains(&wanted.text)
                {
                    wanted.seen.store(true, SeqCst);
                }
                output.printer.write(to, &line);
                line.clear();
            }
        })
    }
}

impl Forwarded {
    /// Waits for the rest.
    pub(crate) fn finish(self) {
        let until = Instant::now() + REST;
        while self.0.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
