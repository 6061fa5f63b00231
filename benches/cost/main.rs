//! Cost of andweorc: `cargo bench --bench cost`. The figures and what they mean are in
//! docs/book/src/results/cost.md.
//!
//! - a poll, a wake, a span, a progress point: in this process, not enabled, then enabled between
//!   experiments ([`hot`]);
//! - an axum service under load: without andweorc, with it and not enabled, enabled ([`service`]);
//! - during experiments, net of the delays that are meant ([`during`]).
//!
//! The last two run this executable again, as service and as load, or as the program under
//! experiment. `-- hot`, `-- service` and `-- during` measure one part alone; `-- service OTHER`
//! the service of another build of this bench in turns with that of this one; `-- scale` how the
//! first ones grow with workers, tasks and call sites ([`scale`]), which is not part of the others.

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
use std::env;
use std::error::Error;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    // Cargo adds `--bench`.
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let line = [hot()?, service()?, during()?].join(" ");
            println!("COST {line}");
        }
        ["hot"] => println!("{}", hot()?),
        ["service"] => println!("{}", service()?),
        ["service", other] => service::against(other.as_ref())?,
        ["during"] => println!("{}", during()?),
        ["scale"] => println!("{}", scale()?),
        [service::SERVE, mode] => service::serve(mode.parse()?)?,
        [during::PROGRAM, name] => during::program(name)?,
        _ => return Err("say hot, service or during, or nothing for all three; or scale".into()),
    }
    Ok(())
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
    let _on = Experimenter::new().ok_or("andweorc is on already")?;
    let on = Polls::measure();
    let (progress, span) = (hot::progress_point(), hot::span_life());
    print_polls("enabled    ", &on);
    println!("  enabled       progress point        {progress}");
    println!("  enabled       span, entered once    {span}");
    println!("  enabled       span, entered again   {}", hot::span_visit());
    println!("  enabled       span, no registry     {}", hot::span_life_alone());
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
