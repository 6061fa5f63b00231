//! The command line of the examples.

use crate::common::work::Pace;
use lexopt::prelude::*;
use std::time::Duration;

/// Options that the command line asks for.
#[derive(Debug)]
pub(crate) struct Options {
    /// The part to make really faster, and the fraction by which.
    pub(crate) truth: Option<(&'static str, f64)>,
    pub(crate) duration: Option<Duration>,
    /// Pace as measured by an earlier run; measured now if not given.
    pub(crate) pace: Option<Pace>,
}

impl Options {
    /// Reads the command line, for a program of the parts `parts`. With `--help` it prints `help`
    /// and ends the program.
    pub(crate) fn read(parts: &[&'static str], help: &str) -> Result<Options, lexopt::Error> {
        let mut options = Options { truth: None, duration: None, pace: None };
        let mut args = lexopt::Parser::from_env();
        while let Some(arg) = args.next()? {
            match arg {
                Long("truth") => {
                    options.truth = Some(args.value()?.parse_with(|text| truth(text, parts))?);
                }
                Long("duration") => options.duration = Some(args.value()?.parse_with(duration)?),
                Long("pace") => options.pace = Some(Pace::new(args.value()?.parse()?)),
                Short('h') | Long("help") => {
                    println!("{help}");
                    std::process::exit(0);
                }
                _ => return Err(arg.unexpected()),
            }
        }
        Ok(options)
    }

    pub(crate) fn pace(&self) -> Pace {
        self.pace.unwrap_or_else(Pace::measure)
    }
}

fn truth(text: &str, parts: &[&'static str]) -> Result<(&'static str, f64), String> {
    let (part, percent) = text.split_once('=').ok_or("say PART=PERCENT, as in stock=25")?;
    let part = parts
        .iter()
        .find(|known| **known == part)
        .ok_or_else(|| format!("there is no part `{part}`; the parts are {}", parts.join(", ")))?;
    match percent.parse() {
        Ok(percent) if (1..=100).contains(&percent) => Ok((part, f64::from(percent) / 100.0)),
        _ => Err(format!("`{percent}` is no whole percentage from 1 to 100")),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text);
    match seconds.parse() {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("`{text}` is no time in seconds, as 45s")),
    }
}
