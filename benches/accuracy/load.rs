//! The clients of the HTTP services, closed loops in the process that is the world outside: of
//! HTTP/1.1 with a connection each that is kept, of HTTP/2 with one connection for all.

use crate::outside::Vary;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nix::sys::prctl::set_timerslack;
use std::error::Error;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::str::FromStr;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};

/// Load on a service: its address, and who asks it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) service: SocketAddr,
    pub(crate) clients: Clients,
}

/// The clients of a service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clients {
    pub(crate) protocol: Protocol,
    /// How many requests are under way at most.
    pub(crate) number: usize,
    /// How long a client waits between an answer and its next question, [more or less](Vary).
    pub(crate) think: Duration,
}

/// Protocol that clients speak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Protocol {
    /// Each client has a connection of its own.
    Http1,
    /// All share one connection.
    Http2,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Clients { protocol, number, think } = self.clients;
        let version = match protocol {
            Protocol::Http1 => 1,
            Protocol::Http2 => 2,
        };
        write!(f, "{} {version} {number} {}", self.service, think.as_micros())
    }
}

impl FromStr for Load {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Load> {
        let bad =
            || io::Error::other(format!("`{text}` says no load: SERVICE VERSION CLIENTS THINK_US"));
        let mut words = text.split_ascii_whitespace();
        let mut word = || words.next().ok_or_else(bad);
        let service = word()?.parse().map_err(|_| bad())?;
        let protocol = match word()? {
            "1" => Protocol::Http1,
            "2" => Protocol::Http2,
            _ => return Err(bad()),
        };
        let number = word()?.parse().map_err(|_| bad())?;
        let think = Duration::from_micros(word()?.parse().map_err(|_| bad())?);
        Ok(Load { service, clients: Clients { protocol, number, think } })
    }
}

/// Starts the clients. Each goes on until the service is gone.
pub(crate) fn start(load: Load) {
    let Load { service, clients: Clients { protocol, number, think } } = load;
    match protocol {
        Protocol::Http1 => {
            for _ in 0..number {
                thread::spawn(move || client(service, think));
            }
        }
        Protocol::Http2 => {
            thread::spawn(move || {
                if let Err(error) = share_connection(service, number, think) {
                    eprintln!("the world outside has no HTTP/2 connection: {error}");
                }
            });
        }
    }
}

fn client(service: SocketAddr, think: Duration) -> io::Result<()> {
    set_timerslack(1)?;
    let mut stream = TcpStream::connect(service)?;
    stream.set_nodelay(true)?;
    let (mut answers, mut vary) = (BufReader::new(stream.try_clone()?), Vary::new());
    loop {
        stream.write_all(b"GET /item/7 HTTP/1.1\r\nhost: bench\r\n\r\n")?;
        skip_answer(&mut answers)?;
        thread::sleep(vary.next(think));
    }
}

/// Connects, starts the clients, and drives the connection for them until the service is gone.
fn share_connection(
    service: SocketAddr,
    number: usize,
    think: Duration,
) -> Result<(), Box<dyn Error>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(service).await?;
        stream.set_nodelay(true)?;
        let (requests, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        for _ in 0..number {
            let (requests, runtime) = (requests.clone(), Handle::current());
            // A thread each: timers of tokio are too coarse for pauses.
            thread::spawn(move || stream_client(requests, &runtime, think));
        }
        drop(requests);
        // The service ends as a process does, in the middle.
        connection.await.or(Ok(()))
    })
}

/// Asks on a stream of its own, again and again.
fn stream_client(
    mut requests: SendRequest<Empty<Bytes>>,
    runtime: &Handle,
    think: Duration,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    set_timerslack(1)?;
    let mut vary = Vary::new();
    loop {
        runtime.block_on(async {
            requests.ready().await?;
            let request = Request::get("http://bench/item/7").body(Empty::new())?;
            let answer = requests.send_request(request).await?;
            if !answer.status().is_success() {
                return Err("the service refused".into());
            }
            answer.into_body().collect().await?;
            Ok::<_, Box<dyn Error + Send + Sync>>(())
        })?;
        thread::sleep(vary.next(think));
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
