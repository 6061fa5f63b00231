//! The options of `run` that drive the program.

use clap::Args;
use std::time::Duration;

const HEADING: &str = "Load";

/// Options for what puts load on the program, and when.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct DriveOptions {
    /// A shell command that puts load on the program: it is started when the program is ready,
    /// again whenever it ends, and stopped with the profile
    #[arg(long, value_name = "CMD")]
    pub(crate) load: Option<String>,
    /// The program is ready when this TCP port of this machine accepts [default with --load: when
    /// the program listens on any]
    #[arg(long, value_name = "PORT", conflicts_with = "ready_line", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) ready_port: Option<u16>,
    /// The program is ready when a line of its output has this text
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) ready_line: Option<String>,
    /// How long to wait until the program is ready, and then until its profile begins
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) ready_timeout: Duration,
}

fn time(value: &str) -> Result<Duration, &'static str> {
    humantime::parse_duration(value.trim())
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or("not a time above zero with its unit, such as `20s` or `1m30s`")
}
