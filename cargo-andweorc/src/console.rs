//! Printing on the console: what, how much of it, and in which colours.
//!
//! Results go to stdout, everything else to stderr. Texts carry their colours always; `anstream`
//! takes them out where they are not wanted: `--color`, else `NO_COLOR`, `CLICOLOR_FORCE`, and
//! whether it is a terminal that is written to.

use andweorc_profile::plain;
use anstream::AutoStream;
use clap::{Args, ValueEnum};
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

const OUTPUT: &str = "Output";

/// Options that every command has.
#[derive(Debug, Args)]
pub(crate) struct ConsoleOptions {
    /// When to use colours; NO_COLOR is heeded by `auto`
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, global = true, help_heading = OUTPUT)]
    pub(crate) color: Color,
    /// Print results and errors only
    #[arg(short, long, global = true, help_heading = OUTPUT, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say what is done, and with which commands
    #[arg(short, long, global = true, help_heading = OUTPUT)]
    pub(crate) verbose: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// How much is said apart from results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Console {
    /// Results and errors only.
    pub(crate) quiet: bool,
    /// Details, too: what is done, and with which commands.
    pub(crate) verbose: bool,
}

impl Console {
    /// Makes a console as the options say; the choice of colours holds for the whole process.
    pub(crate) fn new(options: &ConsoleOptions) -> Console {
        match options.color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
        Console { quiet: options.quiet, verbose: options.verbose }
    }

    /// A hint, unless quiet.
    pub(crate) fn hint(self, text: impl Display) {
        if !self.quiet {
            anstream::eprintln!("{text}");
        }
    }

    /// Prints what is done, when verbose.
    pub(crate) fn detail(self, text: impl Display) {
        if self.verbose {
            anstream::eprintln!("{}{text}{}", style::DIM, style::END);
        }
    }
}

/// Writes a result to stdout. A reader that has enough, such as `head`, is no failure.
pub(crate) fn print(text: &str) -> Result<(), String> {
    write_all(AutoStream::auto(io::stdout().lock()), text.as_bytes())
}

/// Writes a result that is no text to stdout.
///
/// # Errors
///
/// When that fails, or stdout is a terminal.
pub(crate) fn print_binary(bytes: &[u8]) -> Result<(), String> {
    let out = io::stdout().lock();
    if out.is_terminal() {
        return Err("this format is binary, and a terminal can't show it: write it to a file \
                    (`-o FILE`), or hand it to a program (`|`)"
            .to_owned());
    }
    write_all(out, bytes)
}

fn write_all(mut out: impl Write, bytes: &[u8]) -> Result<(), String> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("the result can't be written to the standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// Says what went wrong. An error may quote anything: a file, a setting, what another program said.
pub(crate) fn failed(error: impl Display) -> ExitCode {
    let error = plain::lines(&error.to_string());
    anstream::eprintln!("{}error{}: {error}", style::BAD, style::END);
    ExitCode::from(crate::FAILED)
}

/// The colours.
pub(crate) mod style {
    use anstyle::{AnsiColor, Reset, Style};

    /// Bold.
    pub(crate) const BOLD: Style = Style::new().bold();
    /// Pale.
    pub(crate) const DIM: Style = Style::new().dimmed();
    /// Good news.
    pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
    /// Bad news.
    pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
    /// Doubt.
    pub(crate) const DOUBT: Style = AnsiColor::Yellow.on_default();
    /// Back to plain.
    pub(crate) const END: Reset = Reset;
}
