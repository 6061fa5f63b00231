//! Holds the experiments, shows how far they are, and tells what came out. All that this example asks of a profiling session is here.

use crate::common::work::Pace;
use crate::costs::PARTS;
use andweorc::{Finding, Outcome, Session, Settings, TargetKind};
use indicatif::{ProgressBar, ProgressStyle};
use std::env::var_os;
use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the experiments last when neither the command line nor the environment says so.
const DURATION: Duration = Duration::from_secs(45);

/// The share of the shop's CPU time from which a part is worth a word although it changes nothing, in percent.
const HUNGRY: f64 = 5.0;

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
    loop {
        let status = session.status();
        if status.settled || status.elapsed >= status.budget {
            break;
        }
        let what = status.experiment.unwrap_or_else(|| status.phase.to_string());
        progress.show(status.elapsed, status.budget, &what);
        sleep(Duration::from_millis(100));
    }
    progress.end();
    Ok(session.finish()?)
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
            "`{}` burns {:.0} % of the CPU time, and making it faster would change nothing: {:+.1} % [{:+.1}, {:+.1}].",
            idle.name, idle.share, idle.effect, idle.low, idle.high
        );
    }
    println!("The profile: {}", outcome.profile_path().display());
    match outcome.findings().iter().find(|finding| is_part(finding)) {
        Some(Finding { name, speedup, .. }) => println!(
            "Check it: cargo run --release --example checkout -- --truth {name}={:.0} --pace {}",
            speedup * 100.0,
            pace.rounds_per_ms()
        ),
        None => {
            println!("No part was tested long enough to check: give it more time with --duration.")
        }
    }
}

/// Whether it is about something whose cost `--truth` can reduce: the waits of `journal` and `payment`, and the work of the others.
fn is_part(finding: &Finding) -> bool {
    let kind = match finding.name.as_str() {
        "journal" | "payment" => TargetKind::Wait,
        _ => TargetKind::Span,
    };
    finding.kind == kind && PARTS.contains(&finding.name.as_str())
}

fn changes_nothing(finding: &Finding) -> bool {
    finding.kind == TargetKind::Span
        && finding.share >= HUNGRY
        && (finding.low..=finding.high).contains(&0.0)
}
