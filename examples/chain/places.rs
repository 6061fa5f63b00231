//! Where the services are: all on loopback, unless the command line says otherwise.

use crate::Result;
use crate::parts::Service;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;

/// Places that the command line names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    at: Vec<(&'static Service, SocketAddr)>,
    via: Vec<(&'static Service, String)>,
}

impl Places {
    /// Notes `inventory=10.0.0.3:7000`, where a service is to listen.
    pub(crate) fn note_address(&mut self, text: &str) -> Result<()> {
        let (service, address) = split(text)?;
        let read = address.parse().map_err(|_| format!("`{address}` is no address and port"))?;
        self.at.push((service, read));
        Ok(())
    }

    /// Notes `inventory=ip netns exec stock`, the words that a service's own command follows.
    pub(crate) fn note_command(&mut self, text: &str) -> Result<()> {
        let (service, words) = split(text)?;
        self.via.push((service, words.to_owned()));
        Ok(())
    }

    /// The address that was named for a service.
    pub(crate) fn address(&self, service: &Service) -> Option<SocketAddr> {
        self.at.iter().find(|(known, _)| *known == service).map(|(_, address)| *address)
    }

    /// The address that was named for a service, or a free one of loopback.
    pub(crate) fn address_or_free(&self, service: &Service) -> Result<SocketAddr> {
        match self.address(service) {
            Some(address) => Ok(address),
            None => Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?),
        }
    }

    /// Words that a service's own command follows, for a shell.
    pub(crate) fn words(&self, service: &Service) -> &str {
        self.via.iter().find(|(known, _)| *known == service).map_or("", |(_, words)| words)
    }

    /// A command that starts `program` where the service belongs.
    pub(crate) fn command(&self, service: &Service, program: &std::path::Path) -> Command {
        let mut words = self.words(service).split_whitespace();
        match words.next() {
            None => Command::new(program),
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(program);
                command
            }
        }
    }
}

fn split(text: &str) -> Result<(&'static Service, &str)> {
    let (service, rest) =
        text.split_once('=').ok_or_else(|| format!("`{text}` names no service before a `=`"))?;
    Ok((Service::named(service)?, rest))
}
