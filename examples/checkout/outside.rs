//! The world outside, as a process of its own, so that nothing the profiler does to the shop delays
//! it: the bank, the journal, and the customers. The shop starts it with [`Outside::start`]; it
//! ends when the shop says so, goes away, or after [`LONGEST`].
//!
//! It stands for other machines, so it does not [wait](go_first) for a processor until the shop
//! leaves it one.

use crate::load;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio, exit};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The argument that makes this program the world outside.
pub(crate) const ARGUMENT: &str = "--outside-world";

/// The bank takes between half and one and a half times as long as it is asked for. Were it always
/// the same, the shop's eight customers would fall into step with it, and a part that is a little
/// faster bring more or less than its share.
const BANK_SPREAD: f64 = 0.5;

/// How many customers there are.
const CUSTOMERS: usize = 8;

/// The shortest time slice that Linux grants.
const SLICE: Duration = Duration::from_micros(100);

/// The world ends after this time, whatever else happens.
const LONGEST: Duration = Duration::from_secs(3600);

/// A line to the bank or the journal: one question at a time.
#[derive(Debug)]
pub(crate) struct Line(tokio::net::TcpStream);

impl Line {
    pub(crate) async fn open(to: SocketAddr) -> io::Result<Line> {
        let stream = tokio::net::TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Line(stream))
    }

    /// Asks something whose answer takes `us` microseconds, of the bank on average.
    pub(crate) async fn ask(&mut self, us: u32) -> io::Result<()> {
        self.0.write_all(&us.to_le_bytes()).await?;
        self.0.read_u8().await?;
        Ok(())
    }
}

/// The shop's side of the other process.
#[derive(Debug)]
pub(crate) struct Outside {
    process: Child,
    tell: ChildStdin,
    told: BufReader<ChildStdout>,
    pub(crate) bank: SocketAddr,
    pub(crate) journal: SocketAddr,
}

impl Outside {
    pub(crate) fn start() -> Result<Outside, Box<dyn Error>> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(ARGUMENT)
            .env_remove("ANDWEORC_ENABLED")
            // Ctrl-C is for the shop, which then ends this one too.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let tell = process.stdin.take().expect("its standard input is a pipe");
        let mut told =
            BufReader::new(process.stdout.take().expect("its standard output is a pipe"));
        let mut address = || {
            let mut line = String::new();
            told.read_line(&mut line)?;
            line.trim().parse().map_err(|_| io::Error::other("the world outside did not come up"))
        };
        let (bank, journal) = (address()?, address()?);
        Ok(Outside { process, tell, told, bank, journal })
    }

    /// Lets the customers in.
    pub(crate) fn send_customers(&mut self, shop: SocketAddr) -> io::Result<()> {
        writeln!(self.tell, "{shop}")
    }

    /// Ends it, and returns what the customers say.
    pub(crate) fn end(mut self) -> io::Result<String> {
        writeln!(self.tell, "closed")?;
        let mut summary = String::new();
        self.told.read_to_string(&mut summary)?;
        self.process.wait()?;
        Ok(summary.trim().to_owned())
    }
}

/// Does all that the other process, the world outside, does.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    go_first();
    thread::spawn(|| {
        thread::sleep(LONGEST);
        exit(1);
    });
    for spread in [BANK_SPREAD, 0.0] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        println!("{}", listener.local_addr()?);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || answer(stream, spread));
            }
        });
    }
    let mut lines = io::stdin().lines();
    let Some(shop) = lines.next() else { return Ok(()) };
    let shop: SocketAddr = shop?.parse()?;
    let customers = thread::spawn(move || load::run(shop, CUSTOMERS));
    match lines.next() {
        Some(_) => load::stop(),
        // The shop is gone.
        None => exit(0),
    }
    let summary =
        customers.join().expect("the customers do not panic").map_err(|error| error.to_string())?;
    println!("{summary}");
    Ok(())
}

/// Lets this process have a processor as soon as it wants one, where that is allowed: else what it
/// waits behind the shop is part of each answer, and the shop is on the processors for longer in
/// experiments (`stock` reads 5 points too low).
fn go_first() {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads `priority`, and sets what belongs to the calling thread (0). The
    // threads that it starts inherit it.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) } == 0 {
        return;
    }
    // Anybody may ask for short time slices. Since Linux 6.12 who has them goes ahead of who has
    // longer ones. SAFETY: all zeros are a valid value: an ordinary thread, no flags, nice 0.
    let mut wanted: libc::sched_attr = unsafe { std::mem::zeroed() };
    wanted.size = size_of::<libc::sched_attr>() as u32;
    wanted.sched_runtime = SLICE.as_nanos() as u64;
    // SAFETY: the kernel reads `size` bytes of `wanted`, and sets what belongs to the calling
    // thread (0).
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
}

/// Answers each question after the time it asks for, less or more by as much as this share of it.
fn answer(mut stream: TcpStream, spread: f64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut us = [0; 4];
    loop {
        stream.read_exact(&mut us)?;
        let time = Duration::from_micros(u32::from_le_bytes(us).into());
        thread::sleep(time.mul_f64(1.0 - spread + 2.0 * spread * fastrand::f64()));
        stream.write_all(&[1])?;
    }
}
