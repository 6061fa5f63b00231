//! The world outside, as a process of its own, so that nothing the profiler does to a program delays it: services that answer after a
//! time, and the clients of the HTTP services. It ends when the program that started it does.

use crate::load;
use crate::machine;
use nix::sys::prctl::set_timerslack;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Child, ChildStdin, Command, Stdio, id};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The argument that makes this program the world outside; the socket's name follows.
pub(crate) const ARGUMENT: &str = "--outside-world";

/// Whether each answer takes as long as the one before.
static STEADY: AtomicBool = AtomicBool::new(false);

/// From now on each answer takes as long as the one before. Then programs that do nothing else of their own accord fall in step with each other, and what
/// a cheaper part brings hangs on the step.
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

    /// How long it takes next that takes `mean` on average. By the golden ratio, each few are spread evenly, so that their mean is known sooner than that of
    /// random ones.
    pub(crate) fn next(&mut self, mean: Duration) -> Duration {
        self.0 = (self.0 + (5_f64.sqrt() - 1.0) / 2.0).fract();
        if is_steady() { mean } else { mean.mul_f64(0.5 + self.0) }
    }
}

/// A line to the world outside: one question at a time.
#[derive(Debug)]
pub(crate) struct Line(tokio::net::UnixStream);

impl Line {
    /// Opens one, inside the runtime's context.
    pub(crate) fn open(name: &str) -> io::Result<Line> {
        let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        stream.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(stream).map(Line)
    }

    /// Asks something whose answer takes `us` microseconds, [more or less](Vary). It never comes when the world outside has ended, as it does just before
    /// this process; were it to end earlier, nothing more would get done, and the report would say so.
    pub(crate) async fn ask(&mut self, us: u32) {
        if self.0.write_all(&us.to_le_bytes()).await.is_err() || self.0.read_u8().await.is_err() {
            std::future::pending().await
        }
    }
}

/// The program's side of the other process.
#[derive(Debug)]
pub(crate) struct Outside {
    process: Child,
    tell: ChildStdin,
    name: String,
}

impl Outside {
    pub(crate) fn start() -> io::Result<Outside> {
        let name = format!("andweorc-accuracy-{}", id());
        let mut process = Command::new(std::env::current_exe()?)
            .args(is_steady().then_some("--steady"))
            .args([ARGUMENT, &name])
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
        Ok(Outside { process, tell, name })
    }

    /// The name of its socket.
    pub(crate) fn name(&self) -> &str {
        &self.name
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

/// What the other process does.
pub(crate) fn run(name: &str) -> io::Result<()> {
    if let Err(error) = machine::go_first() {
        eprintln!(
            "the world outside waits for processors like everybody ({error}): run this as root"
        );
    }
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(|| answer(stream));
        }
    });
    println!("ready");
    for line in io::stdin().lines() {
        load::start(line?.parse()?);
    }
    Ok(())
}

/// Answers each question after about the time it asks for, until the asker hangs up.
fn answer(mut stream: UnixStream) -> io::Result<()> {
    // As precise as the kernel can.
    set_timerslack(1)?;
    let (mut us, mut vary) = ([0; 4], Vary::new());
    loop {
        stream.read_exact(&mut us)?;
        thread::sleep(vary.next(Duration::from_micros(u32::from_le_bytes(us).into())));
        stream.write_all(&[1])?;
    }
}
