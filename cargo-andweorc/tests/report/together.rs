//! One report of several services that were profiled together.

use crate::browser::{Browser, Look};
use crate::common::{command, stderr, stdout};
use crate::services::{profile, write};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

fn report(options: &[&str], files: &[impl AsRef<OsStr>]) -> Output {
    command().arg("report").args(options).args(files).output().unwrap()
}

fn refusal(options: &[&str], files: &[impl AsRef<OsStr>]) -> String {
    let output = report(options, files);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    stderr(&output)
}

#[test]
fn services_are_one_report_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let [gateway, inventory, payments] = write(folder.path(), "r1", 20.0, 3);
    let output = report(&[], &[&payments, &gateway, &inventory]);
    let text = stdout(&output);
    for wanted in [
        "andweorc: gateway-server on here",
        "If inventory/lookup took half as long",
        "SERVICES     best for request",
        "  gateway    render +4",
        "  payments   charge ",
        "Left out in inventory: `payments`: steal 7 % (1).",
        "A REQUEST OF request        2.00 ms",
        "  inventory x1.00            600 us       30 %  work 500 us",
    ] {
        assert!(text.contains(wanted), "{wanted}\nis not in\n{text}");
    }
    let json: Value = serde_json::from_str(&stdout(&report(
        &["--format", "json"],
        &[&inventory, &gateway, &payments],
    )))
    .unwrap();
    assert_eq!((&json["runs"], &json["joint"]["entry"]), (&1.into(), &"gateway".into()));
    assert_eq!(json["targets"][0]["name"], "inventory/lookup");
    assert_eq!(json["joint"]["services"][1]["targets"], serde_json::json!([0]));
    let of_payments = stdout(&report(&["--entry", "payments"], &[&gateway, &payments]));
    assert!(of_payments.contains("andweorc: payments-server"), "{of_payments}");
}

#[test]
fn several_runs_of_the_services_are_runs_of_the_report() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "r1", 20.0, 3);
    write(folder.path(), "r2", 20.0, 4);
    let json = stdout(&report(&["--format", "json"], &[folder.path()]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["runs"], &json["joint"]["services"][2]["runs"]), (&2.into(), &2.into()));
    // The profile of one service alone is as it was.
    let alone = stdout(&report(&["--format", "json"], &[folder.path().join("r1.gateway.jsonl")]));
    let alone: Value = serde_json::from_str(&alone).unwrap();
    assert_eq!((&alone["joint"], &alone["targets"][0]["kind"]), (&Value::Null, &"remote".into()));
}

#[test]
fn mixes_that_are_no_report_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [gateway, inventory, payments] = write(folder.path(), "r1", 20.0, 3);
    let other = folder.path().join("other.jsonl");
    fs::write(&other, profile(1, "r2", 20.0, 5)).unwrap();
    let message = refusal(&[], &[&gateway, &other]);
    assert!(message.contains("`inventory` was profiled in another run (r2)"), "{message}");
    let message = refusal(&[], &[&inventory, &payments]);
    assert!(message.contains("the one of `gateway`, by whose points"), "{message}");
    let changed = fs::read_to_string(&payments).unwrap();
    fs::write(&other, changed.replace(r#""entry":"gateway""#, r#""entry":"payments""#)).unwrap();
    let message = refusal(&[], &[&gateway, &other]);
    assert!(message.contains("different entries, `gateway`, `payments`"), "{message}");
    let message = refusal(&["--entry", "shop"], &[&gateway, &inventory]);
    assert!(message.contains("no profile of a service `shop`"), "{message}");
}

/// The page of the services in a file of this folder.
fn page(folder: &Path) -> PathBuf {
    let file = folder.join("report.html");
    let files = write(folder, "r1", 20.0, 3);
    let options = ["--format", "html", "-o", file.to_str().unwrap()];
    let output = report(&options, &files[..2]);
    assert!(output.status.success(), "{}", stderr(&output));
    file
}

#[test]
fn the_page_has_a_picture_of_services_that_works_from_a_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    browser.open(&page, "", Look::Dark);
    assert!(browser.requests_and_errors().1.is_empty());
    let count = |what: &str| format!("document.querySelectorAll('{what}').length");
    assert_eq!(browser.eval(&count("svg.services .service")), 3);
    assert_eq!(browser.eval(&count("svg.services .gain polygon")), 2);
    let said = "document.querySelector('svg.services').getAttribute('aria-label')";
    let said = browser.eval(said);
    let said = said.as_str().unwrap();
    assert!(
        said.contains("inventory: if lookup were 50 % faster, request of gateway would change")
    );
    assert_eq!(browser.eval(&count("svg.services a")), 3, "all were tested");
    let card = "document.activeElement.id";
    browser.eval("document.querySelectorAll('svg.services a')[1].focus()");
    browser.press("Enter");
    assert_eq!(browser.eval(card), "target-0");
    let text = browser.eval("document.getElementById('services-section').textContent");
    let text = text.as_str().unwrap().to_owned();
    assert!(text.contains("A request of request, 2.00 ms"), "{text}");
    assert!(text.contains("its profile is not here: name it too"), "{text}");
    // The gains are those of what is chosen.
    browser.eval("document.querySelector('input[name=metric][value=p99]').click()");
    let after = browser.eval("document.querySelector('svg.services .gain text').textContent");
    assert!(after.as_str().unwrap().starts_with('\u{2212}'), "{after}");
}
