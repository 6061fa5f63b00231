//! A shop of three services, each a process: a gateway on axum, which asks the inventory (axum, by
//! HTTP) and the payments (tonic, by gRPC). `cargo run --release --example chain --features
//! axum,remote` starts all three and puts load on the gateway; see `--help`.
//!
//! Each is as its authors would write it, but for the lines of andweorc. Those by which delays
//! travel between them are marked (4): a layer around each client, and one around the service of
//! tonic. `andweorc::axum::serve` has it already.

mod gateway;
mod inventory;
#[path = "../checkout/load.rs"]
mod load;
mod part;
mod payments;
mod processes;
#[path = "../common/work.rs"]
mod work;

use andweorc::runtime::BuilderExt;
use lexopt::prelude::*;
use processes::Processes;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use tokio::net::TcpListener;

const HELP: &str = "\
Three services on loopback, each a process: gateway -> inventory, payments.

Start them all, and put load on the gateway:
                  cargo run --release --example chain --features axum,remote
Start one:        .. -- gateway|inventory|payments

  --duration SECONDS   how long the load lasts (default 10)

  DIAL_QUOTE=0.75      the gateway's part `quote` really costs 75 % of what it does else, and so
                       on: DIAL_QUOTE and DIAL_RENDER of the gateway, DIAL_LOOKUP and DIAL_TAKE of
                       the inventory, DIAL_CHECK and DIAL_BANK of the payments
  CHAIN_PACE=ROUNDS    hash rounds per millisecond (default: measured)
  CHAIN_LISTEN=ADDRESS where a service listens (default: any port on loopback)
  CHAIN_INVENTORY, CHAIN_PAYMENTS
                       addresses that the gateway calls

With ANDWEORC_ENABLED=1 each service writes a profile, target/andweorc/chain-NAME.jsonl.";

/// Error of the example, with its cause in words.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chain: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let (mut service, mut duration) = (None, Duration::from_secs(10));
    let mut args = lexopt::Parser::from_env();
    while let Some(arg) = args.next()? {
        match arg {
            Long("duration") => duration = Duration::from_secs(args.value()?.parse()?),
            Short('h') | Long("help") => {
                println!("{HELP}");
                return Ok(());
            }
            Value(name) if service.is_none() => service = Some(name.string()?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    match service.as_deref() {
        None => all(duration),
        Some(name) => serve(name),
    }
}

/// Starts all three services, and puts load on the gateway for as long as `duration`.
fn all(duration: Duration) -> Result<()> {
    let processes = Processes::start()?;
    let gateway = processes.gateway;
    println!("Gateway on {gateway}, under load for {} s", duration.as_secs());
    let load = thread::spawn(move || load::run(gateway));
    thread::sleep(duration);
    load::stop();
    let summary = load.join().expect("the load does not panic")?;
    println!("{summary}");
    processes.end()
}

/// Is one of the services until it is killed. Prints its address first.
fn serve(name: &str) -> Result<()> {
    andweorc::subscriber().init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_profiling()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listen: SocketAddr = match std::env::var("CHAIN_LISTEN") {
            Ok(address) => address.parse()?,
            Err(_) => (Ipv4Addr::LOCALHOST, 0).into(),
        };
        let listener = TcpListener::bind(listen).await?;
        println!("{}", listener.local_addr()?);
        match name {
            "gateway" => gateway::serve(listener).await,
            "inventory" => inventory::serve(listener).await,
            "payments" => payments::serve(listener).await,
            other => Err(format!("there is no service `{other}`; --help names them").into()),
        }
    })
}
