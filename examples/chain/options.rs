//! The command line.

use crate::Result;
use crate::parts::Case;
use crate::places::Places;
use lexopt::prelude::*;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const HELP: &str = "\
Three services on loopback, each a process: gateway -> inventory, payments.

Start them all, and put load on the gateway:
                  cargo run --release --example chain --features axum,remote
Start one:        .. -- gateway|inventory|payments
Check what a profile of all three says:
                  .. -- --truth inventory.lookup=25

  --truth SERVICE.PART=PERCENT
                       profiles the services as one, then measures what happens when a part really
                       costs that much less, and prints both; can be given several times. The parts
                       are gateway.quote, gateway.render, inventory.lookup, inventory.take,
                       payments.check, payments.bank
  --duration SECONDS   how long the load lasts (default 10); with --truth how long all are
                       profiled, and how long each version is measured (default 60)
  --connections N      customers, each with a connection, who come back at once (default 2, which
                       leaves half of two processors idle)
  --at SERVICE=ADDRESS with --truth: where a service listens (default: a free port of loopback)
  --via SERVICE=WORDS  with --truth: words before the command of a service, as `ip netns exec NAME`
  --listen ADDRESS     with --truth: where the coordinator listens (default: loopback)

  DIAL_QUOTE=0.75      the gateway's part `quote` really costs 75 % of what it does else, and so
                       on: DIAL_QUOTE and DIAL_RENDER of the gateway, DIAL_LOOKUP and DIAL_TAKE of
                       the inventory, DIAL_CHECK and DIAL_BANK of the payments
  CHAIN_PACE=ROUNDS    hash rounds per millisecond (default: measured)
  CHAIN_LISTEN=ADDRESS where a service listens (default: any port on loopback)
  CHAIN_INVENTORY, CHAIN_PAYMENTS
                       addresses that the gateway calls

With ANDWEORC_ENABLED=1 each service writes a profile, target/andweorc/chain-NAME.jsonl.";

/// Things that the command line may ask for.
#[derive(Debug)]
pub(crate) enum Task {
    Help,
    /// All services, under load.
    All,
    Truth(Vec<Case>),
    /// One service.
    Serve(String),
    /// Customers of the gateway at this address.
    Load(SocketAddr),
}

/// Options of the command line.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) task: Task,
    pub(crate) duration: Option<Duration>,
    pub(crate) connections: usize,
    pub(crate) places: Places,
    pub(crate) listen: Option<SocketAddr>,
}

impl Options {
    pub(crate) fn read() -> Result<Options> {
        let mut options = Options {
            task: Task::All,
            duration: None,
            connections: 2,
            places: Places::default(),
            listen: None,
        };
        let mut args = lexopt::Parser::from_env();
        while let Some(arg) = args.next()? {
            match arg {
                Long("duration") => options.duration = Some(seconds(&args.value()?.string()?)?),
                Long("connections") => options.connections = args.value()?.parse()?,
                Long("truth") => options.add(Case::read(&args.value()?.string()?)?),
                Long("at") => options.places.note_address(&args.value()?.string()?)?,
                Long("via") => options.places.note_command(&args.value()?.string()?)?,
                Long("listen") => options.listen = Some(args.value()?.parse()?),
                Short('h') | Long("help") => options.task = Task::Help,
                Value(word) if word == "load" && matches!(options.task, Task::All) => {
                    options.task = Task::Load(args.value()?.parse()?);
                }
                Value(name) if matches!(options.task, Task::All) => {
                    options.task = Task::Serve(name.string()?);
                }
                _ => return Err(arg.unexpected().into()),
            }
        }
        if options.connections == 0 {
            return Err("--connections 0 is no load".into());
        }
        Ok(options)
    }

    fn add(&mut self, case: Case) {
        match &mut self.task {
            Task::Truth(cases) => cases.push(case),
            task => *task = Task::Truth(vec![case]),
        }
    }
}

fn seconds(text: &str) -> Result<Duration> {
    match text.strip_suffix('s').unwrap_or(text).parse() {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("`{text}` is no time in seconds, as 45s").into()),
    }
}
