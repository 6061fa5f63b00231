//! The part of HTTP/1.1 that the loads need: clients in threads that are none of the service's.

use crate::shop::CLIENTS;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

/// The body of each answer.
pub const BODY: &str = "done";

/// Sends requests without end, each client one at a time.
pub fn clients(server: SocketAddr) {
    for _ in 0..CLIENTS {
        thread::spawn(move || {
            let mut server = TcpStream::connect(server).expect("the server listens");
            server.set_nodelay(true).expect("it is a TCP socket");
            // Until the program ends, and the server before this thread.
            while ask(&mut server).is_ok() {}
        });
    }
}

/// One request and its answer.
fn ask(server: &mut TcpStream) -> io::Result<()> {
    server.write_all(b"GET /order HTTP/1.1\r\nhost: shop\r\n\r\n")?;
    let mut answer = Vec::new();
    while !answer.ends_with(format!("\r\n\r\n{BODY}").as_bytes()) {
        let mut part = [0; 1024];
        match server.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => answer.extend_from_slice(&part[..length]),
        }
    }
    Ok(())
}
