//! Holds the experiments, shows how far they are, and tells what came out. All that this example
//! asks of a profiling session is here.

use crate::common::work::Pace;
use crate::costs::PARTS;
use andweorc::analysis::{Metric, Verdict};
use andweorc::{Outcome, Session, Settings};
use indicatif::{ProgressBar, ProgressStyle};
use std::env::var_os;
use std::error::Error;
use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// How long the experiments last when neither the command line nor the environment says so.
const DURATION: Duration = Duration::from_secs(60);

/// The share of the CPU time from which a part is worth a word although it changes nothing.
const HUNGRY: f64 = 0.1;

/// An effect is little when its whole interval is within so many points of zero.
const LITTLE: f64 = 3.0;

/// Runs the experiments. Ends when the ranking is settled, when the time is up, or on Ctrl-C or
/// SIGTERM.
pub(crate) fn run(
    duration: Option<Duration>,
    runtime: &Runtime,
) -> Result<Outcome, Box<dyn Error>> {
    let mut settings = Settings::from_env()?;
    if let Some(duration) = duration {
        settings.duration = duration;
    } else if var_os("ANDWEORC_DURATION").is_none() {
        settings.duration = DURATION;
    }
    if var_os("ANDWEORC_POINTS").is_none() {
        // Receipts are not what the shop is there for.
        settings.points = vec!["checkout".into()];
    }
    let signals = signals(runtime)?;
    let session = Session::start(settings)?;
    let mut progress = Progress::new();
    while !session.is_finished() {
        let status = session.status();
        let what = status.experiment.unwrap_or_else(|| status.phase.to_string());
        progress.show(status.elapsed, status.budget, &what);
        if let Ok(signal) = signals.recv_timeout(Duration::from_millis(100)) {
            progress.end();
            return Ok(session.finish(signal));
        }
    }
    progress.end();
    Ok(session.wait())
}

/// Tells of Ctrl-C and SIGTERM, which no longer end the program by themselves.
fn signals(runtime: &Runtime) -> io::Result<Receiver<&'static str>> {
    let _context = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (tell, told) = channel();
    runtime.spawn(async move {
        loop {
            let name = tokio::select! {
                _ = interrupt.recv() => "signal SIGINT",
                _ = terminate.recv() => "signal SIGTERM",
            };
            if tell.send(name).is_err() {
                break;
            }
        }
    });
    Ok(told)
}

/// How far the run is: a bar on a terminal, and else a line now and then.
struct Progress {
    bar: ProgressBar,
    line_due: Instant,
}

impl Progress {
    const LINE_EVERY: Duration = Duration::from_secs(5);

    fn new() -> Progress {
        let style = ProgressStyle::with_template("{bar:30} {prefix} s left  {msg}");
        let bar = ProgressBar::new(1).with_style(style.expect("the template is well formed"));
        Progress { bar, line_due: Instant::now() }
    }

    fn show(&mut self, elapsed: Duration, budget: Duration, what: &str) {
        let left = budget.saturating_sub(elapsed).as_secs();
        if !self.bar.is_hidden() {
            self.bar.set_length(budget.as_millis() as u64);
            self.bar.set_position(elapsed.as_millis() as u64);
            self.bar.set_prefix(left.to_string());
            self.bar.set_message(what.to_owned());
        } else if Instant::now() >= self.line_due {
            eprintln!("{left} s left: {what}");
            self.line_due = Instant::now() + Progress::LINE_EVERY;
        }
    }

    fn end(self) {
        self.bar.finish_and_clear();
    }
}

/// Prints the ranking, where the profile is, and how to check its first line.
pub(crate) fn tell(outcome: &Outcome, pace: Pace) {
    println!("\n{}", outcome.report());
    for target in &outcome.analysis().targets {
        let effect = target.effects_on("checkout", Metric::Throughput).next_back();
        let (Some(effect), Some(share)) = (effect, target.share) else { continue };
        let (change, Some(low), Some(high)) = (effect.effect_pct, effect.ci_low, effect.ci_high)
        else {
            continue;
        };
        if share >= HUNGRY && low > -LITTLE && high < LITTLE {
            println!(
                "`{}` burns {:.0} % of the CPU, and making it {:.0} % faster would change throughput by less than \
                 {LITTLE:.0} %: {change:+.1} % [{low:+.1}, {high:+.1}].",
                target.name,
                share * 100.0,
                effect.speedup * 100.0
            );
        }
    }
    println!("Profile: {}", outcome.profile_path().display());
    let first = outcome.analysis().targets.first().filter(|target| {
        target.verdict == Verdict::Matters && PARTS.contains(&target.name.as_str())
    });
    match first {
        Some(part) => println!(
            "Check it: cargo run --release --example checkout -- --truth {}=25 --pace {}",
            part.name,
            pace.rounds_per_ms()
        ),
        None => println!("No part is known to matter: give it more time with --duration."),
    }
}
