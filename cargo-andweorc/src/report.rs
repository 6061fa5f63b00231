//! A profile in words or JSON.

use crate::cli::{Format, ReportOptions};
use andweorc_core::profile::{Profile, ReadError};
use andweorc_core::{estimate, report};
use std::io::{self, Write};
use std::process::ExitCode;

/// Prints the report that the options ask for.
pub(crate) fn report(options: &ReportOptions) -> Result<ExitCode, ReadError> {
    let profile = Profile::read(&options.profile)?;
    let text = match options.format {
        Format::Text => words(&profile),
        Format::Json => report::json(&estimate::analyse(&profile.runs)) + "\n",
    };
    Ok(print(&text))
}

/// The report for people.
pub(crate) fn words(profile: &Profile) -> String {
    report::text(&profile.runs, &estimate::analyse(&profile.runs))
}

/// Writes to stdout. A reader that has enough, such as `head`, is no failure.
pub(crate) fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: the report can't be written to the standard output: {error}");
            ExitCode::from(crate::FAILED)
        }
        _ => ExitCode::SUCCESS,
    }
}
