//! A gateway that sends each request to a backend in two writes, a header and a body, and waits for
//! its echo: the report of tiberius' pull request 46 and many more.
//!
//! Nagle's algorithm holds the body back until the header is acknowledged, and the backend, which
//! has nothing to say before it has the body, delays its acknowledgement for 40 ms. With
//! `NODELAY=1` the gateway sets `TCP_NODELAY`, and the body goes out at once.
//!
//! Beside that each request asks another backend, which takes 5 ms, and is rendered. The backends
//! are a process of their own, so that their sockets are the world outside.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tracing::{info_span, instrument};
use tracing_subscriber::prelude::*;

#[path = "../rate.rs"]
mod rate;

const CLIENTS: usize = 8;
const HEADER: usize = 8;
const BODY: usize = 24;
const AUTH: Duration = Duration::from_millis(5);
const RENDER_US: u64 = 200;

fn main() -> io::Result<()> {
    if std::env::var_os("NAGLE_BACKEND").is_some() { backend() } else { gateway() }
}

#[andweorc::main(flavor = "multi_thread", worker_threads = 2)]
async fn gateway() -> io::Result<()> {
    tracing_subscriber::registry().with(andweorc::layer()).init();
    let mut backend = Command::new(std::env::current_exe()?)
        .env("NAGLE_BACKEND", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut ports = String::new();
    BufReader::new(backend.stdout.take().expect("piped")).read_line(&mut ports)?;
    let mut ports = ports.split_whitespace().map(|port| {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().expect("the backend says its ports")))
    });
    let (auth, store) = (ports.next().expect("two ports"), ports.next().expect("two ports"));
    rate::measure();
    let clients: Vec<_> = (0..CLIENTS).map(|_| andweorc::spawn(client(auth, store))).collect();
    for client in clients {
        client.await??;
    }
    Ok(())
}

async fn client(auth_at: SocketAddr, store_at: SocketAddr) -> io::Result<()> {
    let mut auth_at = TcpStream::connect(auth_at).await?;
    let mut store_at = TcpStream::connect(store_at).await?;
    store_at.set_nodelay(std::env::var_os("NODELAY").is_some())?;
    loop {
        request(&mut auth_at, &mut store_at).await?;
        rate::done();
    }
}

#[instrument(skip_all)]
async fn request(auth_at: &mut TcpStream, store_at: &mut TcpStream) -> io::Result<()> {
    auth(auth_at).await?;
    store(store_at).await?;
    info_span!("render").in_scope(|| std::hint::black_box(rate::work(RENDER_US)));
    Ok(())
}

/// One write, and an answer that takes its time.
#[instrument(skip_all)]
async fn auth(backend: &mut TcpStream) -> io::Result<()> {
    backend.write_all(&[1; HEADER]).await?;
    backend.read_exact(&mut [0; HEADER]).await?;
    Ok(())
}

/// Two writes, and an echo.
#[instrument(skip_all)]
async fn store(backend: &mut TcpStream) -> io::Result<()> {
    backend.write_all(&[2; HEADER]).await?;
    backend.write_all(&[3; BODY]).await?;
    backend.read_exact(&mut [0; HEADER + BODY]).await?;
    Ok(())
}

/// Both backends: they tell their ports, and end with the gateway.
fn backend() -> io::Result<()> {
    let auth = serve::<HEADER>(AUTH)?;
    let store = serve::<{ HEADER + BODY }>(Duration::ZERO)?;
    println!("{auth} {store}");
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

/// Echoes messages of `N` bytes, each after `delay`. Returns the port.
fn serve<const N: usize>(delay: Duration) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || -> io::Result<()> {
                let mut connection = connection;
                let mut message = [0; N];
                loop {
                    connection.read_exact(&mut message)?;
                    if !delay.is_zero() {
                        std::thread::sleep(delay);
                    }
                    connection.write_all(&message)?;
                }
            });
        }
    });
    Ok(port)
}
