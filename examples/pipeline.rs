//! The smallest program that shows the idea: two tasks and a queue between them. Stage `a` works
//! 600 us on each item, stage `b` 400 us, and each has a core. Stage `b` burns 40 % of all CPU
//! time, and making it faster changes nothing. See `--help`.

mod common;

use common::meter::Meter;
use common::options::Options;
use common::truth;
use common::work::{Cost, hash};
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;

const HELP: &str = "\
Two stages and a queue: `a` works 600 us on each item, `b` 400 us, on two workers.

Profile it:       ANDWEORC_ENABLED=1 cargo run --release --example pipeline
Check what it says, with stage a's work really cut by 25 %:
                  cargo run --release --example pipeline -- --truth a=25

  --truth PART=PERCENT   measures what happens when part a or b gets that much faster
  --duration SECONDS     how long to run (default: ANDWEORC_DURATION, or 30s)
  --pace ROUNDS          hash rounds per millisecond, as printed by another run (default: measured)";

#[andweorc::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::read(&["a", "b"], HELP)?;
    let settings = andweorc::Settings::from_env()?;
    let duration = options.duration.unwrap_or(settings.duration);
    let pace = options.pace();
    let a = Arc::new(Cost::work(600, pace));
    let b = Arc::new(Cost::work(400, pace));
    let meter = Arc::new(Meter::new());

    let (send, mut receive) = mpsc::channel(16);
    andweorc::task::Builder::new().name("a").spawn({
        let a = a.clone();
        async move {
            loop {
                let start = Instant::now();
                hash(a.now());
                if send.send(start).await.is_err() {
                    return;
                }
            }
        }
    });
    andweorc::task::Builder::new().name("b").spawn({
        let (b, meter) = (b.clone(), meter.clone());
        async move {
            while let Some(start) = receive.recv().await {
                hash(b.now());
                andweorc::progress!("item");
                meter.done(start);
            }
        }
    });

    match options.truth {
        None => {
            println!(
                "pipeline: two stages for {} s (--pace {})",
                duration.as_secs(),
                pace.rounds_per_ms()
            );
            tokio::time::sleep(duration).await;
        }
        Some(_) if andweorc::Settings::enabled_by_env()? => {
            return Err("the truth is measured without experiments: unset ANDWEORC_ENABLED".into());
        }
        Some((part, by)) => {
            println!(
                "measuring for {} s, in turns (--pace {})",
                duration.as_secs(),
                pace.rounds_per_ms()
            );
            let cost = if part == "a" { a } else { b };
            let truth =
                tokio::task::spawn_blocking(move || truth::measure(&cost, by, &meter, duration));
            println!("with {part} really {:.0} % faster: item {}", by * 100.0, truth.await?);
        }
    }
    Ok(())
}
