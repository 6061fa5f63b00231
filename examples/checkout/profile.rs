//! Holds the experiments, shows how far they are, and tells what came out. All that this example asks of a profiling session is here.

use crate::common::work::Pace;
use crate::costs::PARTS;
use andweorc::{Outcome, Session, Settings, TargetKind};
use indicatif::{ProgressBar, ProgressStyle};
use std::env::var_os;
use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the experiments last when neither the command line nor the environment says so.
const DURATION: Duration = Duration::from_secs(45);

/// The share of the shop's CPU time from which a part is worth a word although it changes nothing, in percent.
const HUNGRY: f64 = 5.0;

/// An effect is next to nothing when its whole interval is within so many percent of zero.
const LITTLE: f64 = 3.0;

/// Runs the experiments. Ends when the ranking is settled or the time is up.
pub(crate) fn run(duration: Option<Duration>) -> Result<Outcome, Box<dyn Error>> {
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
    let session = Session::start(settings)?;
    let mut progress = Progress::new();
    while !session.is_finished() {
        let status = session.status();
        let what = status.experiment.unwrap_or_else(|| status.phase.to_string());
        progress.show(status.elapsed, status.budget, &what);
        sleep(Duration::from_millis(100));
    }
    progress.end();
    Ok(session.wait())
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

/// Prints the ranking, what changes nothing, where the profile is, and how to check.
pub(crate) fn tell(outcome: &Outcome, pace: Pace) {
    println!("\n{}", outcome.report());
    for idle in
        outcome.findings().iter().filter(|finding| is_part(finding) && changes_nothing(finding))
    {
        println!(
            "`{}` burns {:.0} % of the CPU time, and making it faster would change next to nothing: {:+.1} % [{:+.1}, {:+.1}].",
            idle.name, idle.share, idle.effect, idle.low, idle.high
        );
    }
    println!("Profile: {}", outcome.profile_path().display());
    match parts.first() {
        Some(Part { name, speedup, .. }) => println!(
            "Check it: cargo run --release --example checkout -- --truth {name}={:.0} --pace {}",
            speedup * 100.0,
            pace.rounds_per_ms()
        ),
        None => {
            println!("No part was tested long enough to check: give it more time with --duration.")
        }
    }
}

/// What was found about a part whose cost `--truth` can reduce.
struct Part {
    name: String,
    /// Its share of the CPU time, in percent; 0 for a wait.
    share: f64,
    speedup: f64,
    /// What that does to the throughput of checkouts, in percent, with its 95 % interval.
    effect: f64,
    low: f64,
    high: f64,
}

impl Part {
    fn burns_for_nothing(&self) -> bool {
        self.share >= HUNGRY && self.low > -LITTLE && self.high < LITTLE
    }
}

/// The parts, in the order of the ranking: the waits of `journal` and `payment`, and the work of the others.
fn parts(outcome: &Outcome) -> Vec<Part> {
    let mut parts = Vec::new();
    for found in outcome.analysis() {
        let wait = matches!(found.name.as_str(), "journal" | "payment");
        let kind = if wait { TargetKind::Wait } else { TargetKind::Span };
        if found.kind == kind && PARTS.contains(&found.name.as_str()) {
            parts.push(Part {
                name: found.name.clone(),
                share: if wait { 0.0 } else { found.share },
                speedup: found.speedup,
                effect: found.effect,
                low: found.low,
                high: found.high,
            });
        }
    }
    parts
}
