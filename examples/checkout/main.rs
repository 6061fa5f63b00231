//! A shop as an HTTP service, profiled under load. `cargo run --release --example checkout` does it
//! all; see `--help`.
//!
//! It is built so that the part that burns the most CPU time is not the part that matters: see
//! [`costs`].

#[path = "../common/mod.rs"]
mod common;
mod costs;
mod load;
mod outside;
mod profile;
mod service;

use andweorc::runtime::BuilderExt;
use common::meter::Meter;
use common::options::Options;
use common::truth;
use costs::{Costs, PARTS};
use outside::Outside;
use service::Shop;
use std::error::Error;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;
use tokio::net::TcpListener;

const HELP: &str = "\
A small shop as an HTTP service on loopback, and what would make it faster.

Find out:         cargo run --release --example checkout
Check an answer:  cargo run --release --example checkout -- --truth stock=25

  --truth PART=PERCENT   measures, without any experiment, what happens when a part really costs that much less;
                         the parts are parse, fraud, stock, journal, payment, render
  --duration SECONDS     how long to measure (default 60s profiled, 45s for the truth)
  --pace ROUNDS          hash rounds per millisecond, as printed by another run (default: measured)

The settings of andweorc hold too, as ANDWEORC_OUT, ANDWEORC_TARGETS, ANDWEORC_SPEEDUPS.";

/// How long the shop runs before it is measured.
const WARM_UP: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("checkout: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some(outside::ARGUMENT) {
        return outside::run();
    }
    let options = Options::read(&PARTS, HELP)?;
    andweorc::subscriber().init();

    let pace = options.pace();
    let costs = Arc::new(Costs::new(pace));
    let meter = Arc::new(Meter::new());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_profiling()
        .enable_all()
        .build()?;
    let mut outside = Outside::start()?;
    let address = runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shop = Shop::open(costs.clone(), meter.clone(), outside.bank, outside.journal).await?;
        andweorc::spawn(Arc::new(shop).serve(listener));
        Ok::<_, std::io::Error>(address)
    })?;
    outside.send_customers(address)?;
    println!(
        "This is a shop: an HTTP service on {address}. Bank, journal and customers are another process."
    );

    match options.truth {
        Some((part, by)) => {
            let duration = options.duration.unwrap_or(Duration::from_secs(45));
            println!(
                "For {} s it runs as it is and with `{part}` really {:.0} % faster, in turns. No experiments.",
                duration.as_secs(),
                by * 100.0
            );
            sleep(WARM_UP);
            let truth = truth::measure(costs.of(part), by, &meter, duration);
            println!("with `{part}` really {:.0} % faster: checkout {truth}", by * 100.0);
            println!("The customers say: {}", outside.end()?);
        }
        None => {
            println!(
                "andweorc now speeds up one part after the other, virtually: it delays all others instead."
            );
            println!(
                "Which part makes checkouts faster? The one that burns the most CPU time is not the answer."
            );
            sleep(WARM_UP);
            let outcome = profile::run(options.duration, &runtime)?;
            let customers = outside.end()?;
            profile::tell(&outcome, pace);
            println!("The customers say, with all delays: {customers}");
        }
    }
    Ok(())
}
