//! The help of each command, word for word.

use crate::common::{command, stdout};
use andweorc_profile::settings::Settings;
use insta::assert_snapshot;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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

/// Names of settings in a text, but for the one that `run` sets itself.
fn settings(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
    words.filter(|word| word.starts_with("ANDWEORC_") && *word != "ANDWEORC_ENABLED").collect()
}

/// A file of the repository, the tests being in none of the packages.
fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn every_setting_is_in_the_help_the_reference_and_the_docs() {
    // This error names all that there are, and the one that it was asked for.
    let asked = [("ANDWEORC_NONE".into(), "1".into())].into_iter();
    let error = Settings::from_vars(asked).unwrap_err().to_string();
    let known = error.split_once("the settings are ").unwrap().1;
    let known = settings(known);
    assert!(known.contains("ANDWEORC_OUT"), "{error}");

    let page = read("docs/book/src/reference/settings.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `ANDWEORC_")).collect();
    let docs = read("src/lib.rs");
    let docs: Vec<&str> =
        docs.lines().filter(|line| line.starts_with("//! | `ANDWEORC_")).collect();
    let help = help("run");
    assert_eq!(settings(&help), known, "in the help of `run`");
    assert_eq!(settings(&rows.join("\n")), known, "in the page of settings");
    assert_eq!(settings(&docs.join("\n")), known, "in the documentation of the crate");
    for row in rows {
        let options = row.split('`').filter(|word| word.starts_with("--"));
        for option in options {
            assert!(
                help.contains(&format!("{option} <")) || help.contains(&format!("{option}]")),
                "{row}"
            );
        }
    }
}
