//! `cargo andweorc doctor`: is this machine fit to measure on, and this project to be measured, and
//! what to do where it isn't.

mod events;
mod machine;
mod project;

use crate::console::{self, style};
use andweorc_profile::plain;
use std::error::Error;
use std::process::ExitCode;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// All is as it should be.
    Good,
    /// Something is lost, or results are less sure.
    Doubt,
    /// Profiling can't work so.
    Bad,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    level: Level,
    /// Thing that was looked at.
    what: &'static str,
    /// State that was seen.
    seen: String,
    /// Advice on what to do about it; nothing when good.
    advice: String,
}

impl Check {
    fn good(what: &'static str, seen: impl Into<String>) -> Check {
        Check { level: Level::Good, what, seen: seen.into(), advice: String::new() }
    }

    fn doubt(what: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { level: Level::Doubt, what, seen: seen.into(), advice: advice.into() }
    }

    fn bad(what: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { level: Level::Bad, what, seen: seen.into(), advice: advice.into() }
    }
}

/// Prints all checks. The exit code is 1 when one of them is bad.
pub(crate) fn doctor() -> Result<ExitCode, Box<dyn Error>> {
    let mut checks = machine::checks();
    checks.extend(project::checks());
    console::print(&words(&checks))?;
    let bad = checks.iter().any(|check| check.level == Level::Bad);
    Ok(ExitCode::from(u8::from(bad)))
}

fn words(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.what.len()).max().unwrap_or(0);
    let mut out = String::new();
    for Check { level, what, seen, advice } in checks {
        let (seen, advice) = (plain::sentence(seen), plain::sentence(advice));
        let (word, style) = match level {
            Level::Good => ("ok", style::GOOD),
            Level::Doubt => ("note", style::DOUBT),
            Level::Bad => ("problem", style::BAD),
        };
        out += &format!("{style}{word:<7}{style:#}  {what:<width$}  {seen}\n");
        if !advice.is_empty() {
            out += &format!("{:9}{:width$}  -> {advice}\n", "", "");
        }
    }
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    out += &match (count(Level::Bad), count(Level::Doubt)) {
        (0, 0) => "\nAll is well.\n".to_owned(),
        (0, notes) => format!("\nFit to profile; {notes} to note.\n"),
        (problems, notes) => format!("\n{problems} to mend before profiling, {notes} to note.\n"),
    };
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doctor_problem_comes_with_its_remedy() {
        let checks = [
            Check::good("cores", "8"),
            Check::doubt("debug info", "none", "add it"),
            Check::bad("tokio", "1.20", "update it"),
        ];
        let text = anstream::adapter::strip_str(&words(&checks)).to_string();
        let expected = "\
ok       cores       8
note     debug info  none
                     -> add it
problem  tokio       1.20
                     -> update it

1 to mend before profiling, 1 to note.
";
        assert_eq!(text, expected);
        assert!(words(&checks[..1]).ends_with("All is well.\n"));
    }
}
