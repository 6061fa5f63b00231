//! A profile as a report: in words, for machines, for a page, a table or another viewer.

mod brief;
mod coz;
mod csv;
pub(crate) mod html;
mod markdown;

use crate::cli::{Format, ReportOptions, TopOptions};
use crate::web::Editor;
use crate::{console, profiles, project};
use andweorc_profile::joint::United;
use andweorc_profile::report::{self, Looks};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Looks of a report that is as long as the options say, with colours or without.
pub(crate) fn looks(styled: bool, top: TopOptions) -> Looks {
    let mut looks = Looks::default();
    (looks.styled, looks.top) = (styled, top.top);
    looks
}

/// Prints or writes the report that the options ask for.
pub(crate) fn report(options: &ReportOptions) -> Result<ExitCode, Box<dyn Error>> {
    if options.brief && !matches!(options.format, Format::Json) {
        return Err("--brief is a short JSON report: say --format json too".into());
    }
    project::are_writable(&options.output)?;
    let paths = profiles::or_newest(&options.profiles)?;
    let united = profiles::read_united(&paths, options.entry.entry.as_deref())?;
    let runs = &united.runs;
    let text = match options.format {
        Format::Text => words(&united, looks(options.output.is_none(), options.top)),
        Format::Json if options.brief => brief::brief(runs, options.top.top),
        Format::Json => report::json(runs, &united.analyse()) + "\n",
        Format::Markdown => markdown::markdown(runs, options.top.top),
        Format::Csv => csv::csv(runs),
        Format::Coz => coz::coz(runs),
        Format::Html => html::html(&united, &paths, &options.page.editor),
    };
    put(options.output.as_deref(), &text, &paths)?;
    Ok(ExitCode::SUCCESS)
}

/// The report for people.
pub(crate) fn words(united: &United, looks: Looks) -> String {
    report::text(&united.runs, &united.analyse(), looks)
}

/// Writes to the file that is named, else, or where that is `-`, to stdout.
///
/// # Errors
///
/// When that fails, or the file is one of these profiles.
pub(crate) fn put(output: Option<&Path>, text: &str, profiles: &[PathBuf]) -> Result<(), String> {
    match output.filter(|output| *output != Path::new("-")) {
        None => console::print(text),
        Some(output) => write(output, text, profiles),
    }
}

/// Writes bytes that are no text as [`put`] writes text.
///
/// # Errors
///
/// When that fails, the file is one of these profiles, or the standard output is a terminal.
pub(crate) fn put_binary(
    output: Option<&Path>,
    bytes: &[u8],
    profiles: &[PathBuf],
) -> Result<(), String> {
    match output.filter(|output| *output != Path::new("-")) {
        None => console::print_binary(bytes),
        Some(output) => write_bytes(output, bytes, profiles),
    }
}

/// Writes the page of profiles that are read already, with links to the editor that there is by
/// default.
///
/// # Errors
///
/// When it can't be written.
pub(crate) fn write_page(united: &United, from: &[PathBuf], page: &Path) -> Result<(), String> {
    write(page, &html::html(united, from, &Editor::default()), from)
}

/// Writes text to a file, without colours.
fn write(output: &Path, text: &str, profiles: &[PathBuf]) -> Result<(), String> {
    let plain = anstream::adapter::strip_str(text).to_string();
    write_bytes(output, plain.as_bytes(), profiles)
}

/// Writes to a file, but never over a profile that what is written was made from.
fn write_bytes(output: &Path, bytes: &[u8], profiles: &[PathBuf]) -> Result<(), String> {
    let same = |one: &Path| match (fs::canonicalize(one), fs::canonicalize(output)) {
        (Ok(one), Ok(output)) => one == output,
        _ => false,
    };
    if profiles.iter().any(|profile| same(profile)) {
        return Err(format!(
            "{} is the profile itself: choose another file for the report",
            output.display()
        ));
    }
    fs::write(output, bytes).map_err(|error| {
        format!("{}: the report can't be written there: {error}", output.display())
    })
}

/// `src/shop.rs:12`, unless the name says it.
pub(crate) fn place(name: &str, file: Option<&str>, line: Option<u32>) -> Option<String> {
    let place = match (file?, line) {
        (file, Some(line)) => format!("{file}:{line}"),
        (file, None) => file.to_owned(),
    };
    (!name.ends_with(&place)).then_some(place)
}
