//! The clients of the HTTP services: a closed loop of connections that are kept, in the process
//! that is the world outside.

use crate::outside::Vary;
use nix::sys::prctl::set_timerslack;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

/// Load on a service: its address, how many clients ask it, and how eagerly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) service: SocketAddr,
    pub(crate) clients: usize,
    /// How long a client waits between an answer and its next question, [more or less](Vary).
    pub(crate) think: Duration,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.service, self.clients, self.think.as_micros())
    }
}

impl FromStr for Load {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Load> {
        let bad = || io::Error::other(format!("`{text}` says no load: SERVICE CLIENTS THINK_US"));
        let mut words = text.split_ascii_whitespace();
        let mut word = || words.next().ok_or_else(bad);
        Ok(Load {
            service: word()?.parse().map_err(|_| bad())?,
            clients: word()?.parse().map_err(|_| bad())?,
            think: Duration::from_micros(word()?.parse().map_err(|_| bad())?),
        })
    }
}

/// Starts the clients. Each goes on until the service is gone.
pub(crate) fn start(load: Load) {
    for _ in 0..load.clients {
        thread::spawn(move || client(load));
    }
}

fn client(load: Load) -> io::Result<()> {
    set_timerslack(1)?;
    let mut stream = TcpStream::connect(load.service)?;
    stream.set_nodelay(true)?;
    let (mut answers, mut vary) = (BufReader::new(stream.try_clone()?), Vary::new());
    loop {
        stream.write_all(b"GET /item/7 HTTP/1.1\r\nhost: bench\r\n\r\n")?;
        skip_answer(&mut answers)?;
        thread::sleep(vary.next(load.think));
    }
}

/// Reads one answer to its end: head, and as much body as it announces.
fn skip_answer(answers: &mut impl BufRead) -> io::Result<()> {
    let (mut line, mut body, mut status) = (String::new(), 0, None);
    loop {
        line.clear();
        if answers.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let head = line.trim_end();
        if head.is_empty() {
            break;
        }
        if status.is_none() {
            status = Some(head.contains(" 200 "));
        } else if let Some((name, value)) = head.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            body = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    if status != Some(true) {
        return Err(io::Error::other("the service refused"));
    }
    io::copy(&mut answers.take(body), &mut io::sink())?;
    Ok(())
}
