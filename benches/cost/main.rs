//! Cost of andweorc: `cargo bench --bench cost`. The figures and what they mean are in
//! docs/book/src/results/cost.md.
//!
//! - a poll, a wake, a span, a progress point: in this process, not enabled, then enabled between
//!   experiments ([`hot`]);
//! - an allocation and its free, as part of the first ([`allocations`]);
//! - an axum service under load: without andweorc, with it and not enabled, enabled ([`service`]);
//! - during experiments, net of the delays that are meant ([`during`]).
//!
//! The last two run this executable again, as service and as load, or as the program under
//! experiment. `-- hot`, `-- allocations`, `-- service` and `-- during` measure one part alone; `--
//! service OTHER` the service of another build of this bench in turns with that of this one; `--
//! scale` how the first ones grow with workers, tasks and call sites ([`scale`]), which is not part
//! of the others. `--json FILE` writes the figures of the closing line to a file too.

mod allocations;
mod during;
mod hot;
mod rounds;
mod scale;
mod service;
#[allow(dead_code, reason = "the examples use the rest of it")]
#[path = "../../examples/common/work.rs"]
mod work;

use andweorc_core::experiment::Experimenter;
use hot::Polls;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    // Cargo adds `--bench`.
    let mut args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let json = json_file(&mut args)?;
    let line = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => format!("COST {}", [hot()?, service()?, during()?].join(" ")),
        ["hot"] => hot()?,
        ["allocations"] => return allocations::measure(),
        ["service"] => service()?,
        ["service", other] => return service::against(other.as_ref()),
        ["during"] => during()?,
        ["scale"] => scale()?,
        [service::SERVE, mode] => return service::serve(mode.parse()?),
        [during::PROGRAM, name] => return during::program(name),
        _ => return Err("say hot, service or during, or nothing for all three; or scale".into()),
    };
    println!("{line}");
    if let Some(file) = json {
        fs::write(&file, serde_json::to_string_pretty(&figures(&line))? + "\n")
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    }
    Ok(())
}

/// Takes `--json FILE` out of the arguments.
fn json_file(args: &mut Vec<String>) -> Result<Option<PathBuf>> {
    let Some(at) = args.iter().position(|arg| arg == "--json") else { return Ok(None) };
    if at + 1 == args.len() {
        return Err("`--json` needs the name of a file".into());
    }
    let file = args.drain(at..at + 2).next_back();
    Ok(file.map(PathBuf::from))
}

/// The figures of a closing line, by their names.
fn figures(line: &str) -> BTreeMap<&str, f64> {
    let named = line.split_whitespace().filter_map(|word| word.split_once('='));
    named.filter_map(|(name, figure)| Some((name, figure.parse().ok()?))).collect()
}

/// Part by part: printed, and as its share of the closing line.
fn hot() -> Result<String> {
    println!(
        "Added to a poll, a wake, a span, a progress point: CPU time, median of rounds that take turns"
    );
    let off = Polls::measure();
    print_polls("not enabled", &off);
    println!("  not enabled   progress point        {}", hot::progress_point());
    println!("  not enabled   span                  {}", hot::span_life());
    allocations::print("not enabled");
    let _on = Experimenter::new().ok_or("andweorc is on already")?;
    let on = Polls::measure();
    let (progress, span) = (hot::progress_point(), hot::span_life());
    print_polls("enabled    ", &on);
    println!("  enabled       progress point        {progress}");
    println!("  enabled       span, entered once    {span}");
    println!("  enabled       span, entered again   {}", hot::span_visit());
    println!("  enabled       span, no registry     {}", hot::span_life_alone());
    allocations::print("enabled    ");
    Ok(format!(
        "off_poll_ns={:.1} on_poll_ns={:.1} wake_ns={:.1} span_close_ns={:.1} progress_ns={:.1}",
        off.poll.median, on.poll.median, on.wake.median, span.median, progress.median,
    ))
}

fn scale() -> Result<String> {
    let _on = Experimenter::new().ok_or("andweorc is on already")?;
    Ok(scale::measure())
}

fn print_polls(mode: &str, polls: &Polls) {
    println!("  {mode}   poll                  {}", polls.poll);
    println!("  {mode}   wake                  {}", polls.wake);
    println!("  {mode}   own wake + poll       {}", polls.own);
    println!("  {mode}   wake outside + poll   {}", polls.outside);
}

fn service() -> Result<String> {
    let [off, on, over_registry, tail, ended] = service::measure()?;
    println!(
        "SERVICE on_over_registry={over_registry:.4} p99_ratio={tail:.4} ended_ratio={ended:.4}"
    );
    Ok(format!("off_ratio={off:.4} on_ratio={on:.4}"))
}

fn during() -> Result<String> {
    let overheads = during::measure()?;
    let mean = overheads.iter().sum::<f64>() / overheads.len() as f64;
    let worst = overheads.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Ok(format!("experiment_overhead_mean_pct={mean:.1} worst_pct={worst:.1}"))
}
