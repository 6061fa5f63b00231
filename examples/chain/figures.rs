//! Figures of the gateway, which it tells at `GET /figures`.

use crate::Result;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Checkouts since somebody asked last.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) count: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
}

impl Figures {
    /// Asks the gateway.
    pub(crate) fn of(gateway: SocketAddr) -> Result<Figures> {
        let mut stream = TcpStream::connect(gateway)?;
        stream.write_all(b"GET /figures HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("the gateway tells no figures")?;
        Ok(serde_json::from_str(body)?)
    }
}
