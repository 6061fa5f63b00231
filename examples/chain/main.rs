//! A shop of three services, each a process: a gateway on axum, which asks the inventory (axum, by
//! HTTP) and the payments (tonic, by gRPC). `cargo run --release --example chain --features
//! axum,remote` starts all three and puts load on the gateway; see `--help`.
//!
//! Each is as its authors would write it, but for the lines of andweorc. Those by which delays
//! travel between them are marked (4): a layer around each client, and one around the service of
//! tonic. `andweorc::axum::serve` has it already.

mod change;
mod costs;
mod figures;
mod gateway;
#[path = "../common/interval.rs"]
mod interval;
mod inventory;
#[path = "../checkout/load.rs"]
mod load;
#[path = "../common/meter.rs"]
mod meter;
mod options;
mod parts;
mod payments;
mod places;
mod predict;
mod processes;
mod table;
mod truth;
#[path = "../common/work.rs"]
mod work;

use andweorc::runtime::BuilderExt;
use options::{HELP, Options, Task};
use processes::Processes;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use tokio::net::TcpListener;
use truth::Setup;

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
    let options = Options::read()?;
    match &options.task {
        Task::Help => println!("{HELP}"),
        Task::All => all(&options)?,
        Task::Truth(cases) => {
            let pace = costs::pace()?.rounds_per_ms();
            let Options { connections, listen, .. } = options;
            let duration = options.duration.unwrap_or(Duration::from_secs(60));
            let places = options.places;
            truth::compare(&Setup { duration, connections, places, listen, pace }, cases)?;
        }
        Task::Serve(name) => serve(name)?,
        Task::Load(gateway) => drop(load::run(*gateway, options.connections)?),
    }
    Ok(())
}

/// Starts all three services, and puts load on the gateway.
fn all(options: &Options) -> Result<()> {
    let processes = Processes::start(&options.places)?;
    let (gateway, connections) = (processes.gateway, options.connections);
    let duration = options.duration.unwrap_or(Duration::from_secs(10));
    println!("Gateway on {gateway}, under load for {} s", duration.as_secs());
    let load = thread::spawn(move || load::run(gateway, connections));
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
