//! The help of each command, word for word.

use crate::common::{command, stdout};
use insta::assert_snapshot;

/// The help of a command.
fn help(name: &str) -> String {
    let output = command().args(["andweorc", name, "--help"]).output().unwrap();
    assert!(output.status.success());
    stdout(&output)
}

#[test]
fn help_of_the_commands() {
    for name in [
        "run",
        "report",
        "view",
        "export",
        "diff",
        "ci",
        "merge",
        "list",
        "doctor",
        "completions",
        "man",
    ] {
        let help = help(name);
        assert!(help.contains("Examples:\n  cargo andweorc "), "{help}");
        assert_snapshot!(format!("help_{name}"), help);
    }
}
