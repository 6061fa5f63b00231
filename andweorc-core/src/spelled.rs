//! How the user wrote a setting: as a variable, or as an option of `cargo andweorc run`.

use std::env;

/// Names the variables that options of the command stand behind. The command sets it.
const OPTIONS: &str = "CARGO_ANDWEORC_OPTIONS";

/// `ANDWEORC_TARGETS`, or `--targets` where that was used.
pub(crate) fn spelled(variable: &str) -> String {
    spelled_by(&env::var(OPTIONS).unwrap_or_default(), variable)
}

fn spelled_by(options: &str, variable: &str) -> String {
    let is_option = options.split_ascii_whitespace().any(|one| one == variable);
    match variable.strip_prefix("ANDWEORC_").filter(|_| is_option) {
        Some(name) => format!("--{}", name.to_lowercase().replace('_', "-")),
        None => variable.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_was_used_is_named_and_else_the_variable() {
        let options = "ANDWEORC_TARGETS ANDWEORC_MAX_SLOWDOWN";
        assert_eq!(spelled_by(options, "ANDWEORC_TARGETS"), "--targets");
        assert_eq!(spelled_by(options, "ANDWEORC_MAX_SLOWDOWN"), "--max-slowdown");
        assert_eq!(spelled_by(options, "ANDWEORC_POINTS"), "ANDWEORC_POINTS");
        assert_eq!(spelled_by("", "ANDWEORC_TARGETS"), "ANDWEORC_TARGETS");
    }
}
