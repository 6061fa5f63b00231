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
//! service OTHER` the service of another build of this bench in turns with that of this one.
//!
//! Two parts are not measured with the others: `-- scale` is how the first ones grow with workers,
//! tasks and call sites ([`scale`]), `-- views` what each view costs while a run observes
//! ([`views`]). `-- views OTHER` has call chains in another build too, and `-- views --quick` only
//! shows that all works.
//!
//! `--json FILE` writes the figures of the closing line and the rows of the tables to a file too,
//! for docs/results/record.

mod allocations;
mod during;
mod hot;
mod part;
mod requests;
mod rounds;
mod scale;
mod service;
mod views;
#[allow(dead_code, reason = "the examples use the rest of it")]
#[path = "../../examples/common/work.rs"]
mod work;

use andweorc_core::experiment::Experimenter;
use hot::Polls;
use part::{Part, Row};
use rounds::Difference;
use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    // Cargo adds `--bench`.
    let mut args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let json = json_file(&mut args)?;
    let (title, parts) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => ("COST ", vec![hot()?, service()?, during()?]),
        ["hot"] => ("", vec![hot()?]),
        ["allocations"] => return allocations::measure(),
        ["service"] => ("", vec![service()?]),
        ["service", other] => return service::against(other.as_ref()),
        ["during"] => ("", vec![during()?]),
        ["scale"] => ("SCALE ", vec![scale()?]),
        ["views", ref rest @ ..] => ("VIEWS ", views::measure(&views::Options::read(rest))?),
        [views::STACKS, rounds] => return views::print_stacks(rounds.parse()?),
        [service::SERVE, mode] => return service::serve(mode.parse()?),
        [during::PROGRAM, name] => return during::program(name),
        _ => {
            return Err(
                "say hot, service or during, or nothing for all three; or scale, or views".into()
            );
        }
    };
    let lines: Vec<&str> = parts.iter().map(|part| part.line.as_str()).collect();
    println!("{title}{}", lines.join(" "));
    if let Some(file) = json {
        fs::write(&file, serde_json::to_string_pretty(&part::json(&parts))? + "\n")
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

/// Prints what profiling adds to polls, wakes, spans and points, in ns.
fn hot() -> Result<Part> {
    println!(
        "Added to a poll, a wake, a span, a progress point: CPU time, median of rounds that take turns"
    );
    let mut rows = Vec::new();
    let mut tell = |mode: &str, of: &str, difference: Difference| {
        println!("  {mode:<11}   {of:<22}{difference}");
        rows.push(difference.row(format!("{of}, {mode}")));
    };
    let off = Polls::measure();
    tell_polls("not enabled", &off, &mut tell);
    tell("not enabled", "progress point", hot::progress_point());
    tell("not enabled", "span", hot::span_life());
    allocations::tell("not enabled", &mut tell);
    let _on = Experimenter::new().ok_or("andweorc is on already")?;
    let on = Polls::measure();
    let (progress, span) = (hot::progress_point(), hot::span_life());
    tell_polls("enabled", &on, &mut tell);
    tell("enabled", "progress point", progress);
    tell("enabled", "span, entered once", span);
    tell("enabled", "span, entered again", hot::span_visit());
    tell("enabled", "span, no registry", hot::span_life_alone());
    allocations::tell("enabled", &mut tell);
    let line = format!(
        "off_poll_ns={:.1} on_poll_ns={:.1} wake_ns={:.1} span_close_ns={:.1} progress_ns={:.1}",
        off.poll.median, on.poll.median, on.wake.median, span.median, progress.median,
    );
    Ok(Part { name: "hot", line, rows })
}

fn scale() -> Result<Part> {
    let _on = Experimenter::new().ok_or("andweorc is on already")?;
    Ok(scale::measure())
}

fn tell_polls(mode: &str, polls: &Polls, tell: &mut impl FnMut(&str, &str, Difference)) {
    tell(mode, "poll", polls.poll);
    tell(mode, "wake", polls.wake);
    tell(mode, "own wake + poll", polls.own);
    tell(mode, "wake outside + poll", polls.outside);
}

fn service() -> Result<Part> {
    let (rows, [off, on, over_registry, tail, ended]) = service::measure()?;
    println!(
        "SERVICE on_over_registry={over_registry:.4} p99_ratio={tail:.4} ended_ratio={ended:.4}"
    );
    Ok(Part { name: "service", line: format!("off_ratio={off:.4} on_ratio={on:.4}"), rows })
}

fn during() -> Result<Part> {
    let rows = during::measure()?;
    let overheads = || rows.iter().map(|row: &Row| row.figure);
    let mean = overheads().sum::<f64>() / rows.len() as f64;
    let worst = overheads().fold(f64::NEG_INFINITY, f64::max);
    let line = format!("experiment_overhead_mean_pct={mean:.1} worst_pct={worst:.1}");
    Ok(Part { name: "during", line, rows })
}
