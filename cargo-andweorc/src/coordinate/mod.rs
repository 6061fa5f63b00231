//! Several programs profiled as one: the command is their coordinator.
//!
//! | module | job |
//! |---|---|
//! | `machine` | the coordinator as a state machine without I/O |
//! | `plan` | which target comes next |
//! | `serve` | its sockets |
//! | `services` | the programs of `--with` |

mod machine;
mod plan;
mod serve;
mod services;
#[cfg(test)]
mod tests;

use crate::console::Console;
use crate::drive::DriveError;
use andweorc_profile::settings::Settings;
use andweorc_profile::time::Nanos;
use machine::Wanted;
use serve::Server;
use services::Services;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::{env, fmt};

pub(crate) use services::With;

const COORDINATOR: &str = "ANDWEORC_COORDINATOR";
const TOKEN: &str = "ANDWEORC_TOKEN";
const SERVICE: &str = "ANDWEORC_SERVICE";

/// Variables by which a program takes part.
pub(crate) const JOINS: [&str; 3] = [COORDINATOR, TOKEN, SERVICE];

/// Options for other programs that take part.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Other services")]
pub(crate) struct TogetherOptions {
    /// Start this shell command too, and profile both as one: a target of either is tested in both
    /// at once; can be given several times
    #[arg(long, value_name = "NAME=CMD")]
    pub(crate) with: Vec<With>,
    /// Let programs that are started elsewhere take part, which connect to this address with
    /// ANDWEORC_COORDINATOR, ANDWEORC_TOKEN (this command's own, or the one that it prints) and
    /// ANDWEORC_SERVICE. Nothing is encrypted: any other address than one of this machine is for
    /// networks in which everybody is trusted [default with --with: a free port of 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Wait for these services, separated by commas, before the first experiment
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "listen")]
    pub(crate) expect: Vec<String>,
}

impl TogetherOptions {
    /// Whether other programs take part.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.with.is_empty() || self.listen.is_some()
    }
}

/// A run of several programs, until dropped.
#[derive(Debug)]
pub(crate) struct Together {
    /// Dropped first: the programs are told of the end before they are stopped.
    server: Option<Server>,
    services: Services,
    address: SocketAddr,
    token: String,
    main: String,
    profiles: Vec<PathBuf>,
}

impl Together {
    /// Starts the coordinator, and the programs of `--with`. `main` is the program that is built
    /// and profiled, whose profile goes to `out`: those of the others go beside it.
    ///
    /// # Errors
    ///
    /// When two programs have one name, nothing can listen at the address, or a program can't be
    /// started.
    pub(crate) fn start(
        options: &TogetherOptions,
        main: &str,
        out: &Path,
        settings: &Settings,
        console: Console,
    ) -> Result<Together, TogetherError> {
        let mut expected = vec![main.to_owned()];
        let others = options.with.iter().map(|with| &with.name).chain(&options.expect);
        for name in others {
            if expected.contains(name) {
                return Err(TogetherError::SameName(name.clone()));
            }
            expected.push(name.clone());
        }
        let (run, token) = (random().map_err(TogetherError::Token)?, token()?);
        let wanted = Wanted {
            run,
            entry: main.to_owned(),
            expected,
            speedups: settings.speedups.clone(),
            duration: Nanos::from(settings.duration),
            seed: settings.order,
        };
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listen = options.listen.unwrap_or(any_port);
        let say = move |news: &str| console.hint(format_args!("{news}"));
        let server = Server::start(listen, &token.0, wanted, say)
            .map_err(|source| TogetherError::Listen { address: listen, source })?;
        let mut together = Together {
            address: reachable(server.address()),
            server: Some(server),
            services: Services::default(),
            token: token.0,
            main: main.to_owned(),
            profiles: Vec::new(),
        };
        if options.listen.is_some() {
            together.say_how_to_join(token.1, console);
        }
        for with in &options.with {
            let profile = beside(out, &with.name);
            let own = [
                ("ANDWEORC_ENABLED", "1".to_owned()),
                ("ANDWEORC_OUT", profile.to_string_lossy().into_owned()),
                ("ANDWEORC_DURATION", humantime::format_duration(settings.duration).to_string()),
                ("ANDWEORC_MAX_SLOWDOWN", settings.max_slowdown.to_string()),
            ];
            let all = own.into_iter().chain(together.env(&with.name));
            together.services.start(with, all).map_err(|source| {
                TogetherError::Drive(DriveError::Start {
                    program: with.name.clone().into(),
                    source,
                })
            })?;
            together.profiles.push(profile);
        }
        Ok(together)
    }

    /// Variables by which the program that is built takes part.
    pub(crate) fn env_of_main(&self) -> Vec<(&'static str, String)> {
        self.env(&self.main).collect()
    }

    /// Ends the run for all, and returns the profiles of the programs of `--with` that wrote one.
    pub(crate) fn end(mut self) -> Vec<PathBuf> {
        self.server = None;
        let written = std::mem::take(&mut self.profiles);
        drop(self);
        written.into_iter().filter(|profile| profile.exists()).collect()
    }

    fn env(&self, service: &str) -> impl Iterator<Item = (&'static str, String)> + use<> {
        [
            (COORDINATOR, self.address.to_string()),
            (TOKEN, self.token.clone()),
            (SERVICE, service.to_owned()),
        ]
        .into_iter()
    }

    fn say_how_to_join(&self, is_made: bool, console: Console) {
        let token = if is_made { &*self.token } else { "(that of this command)" };
        console.hint(format_args!(
            "programs that are to take part: ANDWEORC_ENABLED=1 {COORDINATOR}={} {TOKEN}={token} {SERVICE}=NAME",
            self.address
        ));
        if !self.address.ip().is_loopback() {
            console.hint(format_args!(
                "{} is not an address of this machine alone, and nothing is encrypted: whoever reads the network can delay these programs",
                self.address
            ));
        }
    }
}

/// The address by which programs here reach one that listens on all.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Where the profile of another service goes: `shop.inventory.jsonl` beside `shop.jsonl`.
fn beside(out: &Path, service: &str) -> PathBuf {
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!("{stem}.{service}.jsonl"))
}

/// The token that the environment gives, or a new one, and whether it is new.
fn token() -> Result<(String, bool), TogetherError> {
    match env::var(TOKEN) {
        Ok(token) if !token.is_empty() => Ok((token, false)),
        _ => random().map(|token| (token, true)).map_err(TogetherError::Token),
    }
}

/// 128 bits that nobody can guess, in hex.
fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Why several programs can't be profiled as one.
#[derive(Debug)]
pub(crate) enum TogetherError {
    /// Two programs have this name.
    SameName(String),
    /// There is no randomness for a token.
    Token(io::Error),
    /// Nothing can listen at this address.
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A program can't be started.
    Drive(DriveError),
}

impl fmt::Display for TogetherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TogetherError::SameName(name) => {
                write!(f, "two programs are named `{name}`: give each a name of its own")
            }
            TogetherError::Token(source) => write!(f, "no token can be made: {source}"),
            TogetherError::Listen { address, source } => {
                write!(f, "the coordinator can't listen on {address}: {source}")
            }
            TogetherError::Drive(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TogetherError {}
