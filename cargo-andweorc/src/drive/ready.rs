//! When the program is ready for load.

use crate::drive::options::DriveOptions;
use nix::unistd::Pid;
use procfs::net::TcpState;
use procfs::process::{FDTarget, Process};
use std::collections::HashSet;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Sign that the program is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// Nothing needs to be waited for: no load is started.
    AtOnce,
    /// The program listens on a TCP port, whichever.
    Listens,
    /// This port accepts.
    Port(u16),
    /// A line of its output has this text.
    Line(String),
}

/// An answer from this machine takes no longer.
const ANSWER: Duration = Duration::from_millis(200);

impl Ready {
    /// Returns the sign that the options ask for.
    pub(crate) fn of(options: &DriveOptions) -> Ready {
        match (options.ready_port, &options.ready_line, &options.load) {
            (Some(port), ..) => Ready::Port(port),
            (_, Some(text), _) => Ready::Line(text.clone()),
            (None, None, Some(_)) => Ready::Listens,
            (None, None, None) => Ready::AtOnce,
        }
    }

    /// Whether it is ready. `seen` says whether the line was.
    pub(crate) fn is_ready(&self, program: Pid, seen: bool) -> bool {
        match self {
            Ready::AtOnce => true,
            Ready::Listens => listens(program).unwrap_or(false),
            Ready::Port(port) => accepts(*port),
            Ready::Line(_) => seen,
        }
    }
}

/// Says of the sign that was waited for that it did not come, as in "within 30 s ..."
impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ready::AtOnce => f.write_str("it did not start"),
            Ready::Listens => f.write_str(
                "it listened on no TCP port; say what shows that it is ready by `--ready-port PORT` or `--ready-line TEXT`",
            ),
            Ready::Port(port) => write!(f, "port {port} did not accept; is it the port of the program?"),
            Ready::Line(text) => write!(f, "no line of its output had `{text}`"),
        }
    }
}

/// Whether a TCP port of this machine accepts.
pub(crate) fn accepts(port: u16) -> bool {
    let local = [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), (Ipv6Addr::LOCALHOST, port).into()];
    local.iter().any(|address| TcpStream::connect_timeout(address, ANSWER).is_ok())
}

/// Whether a socket of this process listens. An error when the kernel does not show it.
fn listens(program: Pid) -> Result<bool, procfs::ProcError> {
    let process = Process::new(program.as_raw())?;
    let sockets: HashSet<u64> = process
        .fd()?
        .flatten()
        .filter_map(|fd| match fd.target {
            FDTarget::Socket(inode) => Some(inode),
            _ => None,
        })
        .collect();
    // Where there is no IPv6, there is no table of it.
    let all = process.tcp()?.into_iter().chain(process.tcp6().unwrap_or_default());
    Ok(all.into_iter().any(|one| one.state == TcpState::Listen && sockets.contains(&one.inode)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listening_socket_is_seen_and_a_connected_one_is_not_enough() {
        let own = Pid::this();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(own).unwrap() && accepts(port));
        assert!(Ready::Listens.is_ready(own, false) && Ready::Port(port).is_ready(own, false));
        // The first process has sockets of its own, if any, and none of ours.
        drop(listener);
        assert!(!accepts(port));
        assert!(!Ready::Line("up".into()).is_ready(own, false));
        assert!(Ready::Line("up".into()).is_ready(own, true));
    }
}
