//! A program that is built without the feature `sampling`:
//! `cargo test -p andweorc --no-default-features --test without_sampling`.

#![cfg(not(feature = "sampling"))]

use andweorc::{Event, Session, Settings, runner::Runner};
use std::time::Duration;

/// Settings of a short run into a folder of its own.
fn settings(folder: &tempfile::TempDir) -> Settings {
    let mut settings = Settings::default();
    settings.out = Some(folder.path().join("shop.jsonl"));
    settings.duration = Duration::from_millis(100);
    settings
}

#[test]
fn what_asks_for_samples_is_refused_and_all_else_runs() {
    let folder = tempfile::tempdir().unwrap();
    let asks: [fn(&mut Settings); 3] = [
        |settings| settings.targets = vec!["stock".into(), "function:shop::stock".into()],
        |settings| settings.event = Event::Cycles,
        |settings| settings.scope = "shop".parse().unwrap(),
    ];
    for (ask, setting) in asks.into_iter().zip(["TARGETS", "EVENT", "SCOPE"]) {
        let mut settings = settings(&folder);
        ask(&mut settings);
        let message = Session::start(settings).unwrap_err().to_string();
        assert!(message.starts_with(&format!("ANDWEORC_{setting}, `")), "{message}");
        assert!(message.contains("feature `sampling`"), "{message}");
        assert!(!folder.path().join("shop.jsonl").exists(), "refused before the profile is made");
    }
    let message = Runner::new().run("item").unwrap_err().to_string();
    assert!(message.contains("feature `sampling`"), "{message}");

    let outcome = Session::start(settings(&folder)).unwrap().wait();
    let profile = std::fs::read_to_string(outcome.profile_path()).unwrap();
    assert!(profile.contains(r#""sampling":false"#), "{profile}");
}

#[test]
fn scope_takes_names_of_crates_and_says_what_globs_and_regexes_need() {
    assert!("shop,!bank".parse::<andweorc::Scope>().is_ok());
    for entry in ["src/stock/**", "re:^shop::"] {
        let message = entry.parse::<andweorc::Scope>().unwrap_err().to_string();
        assert!(message.contains("feature `sampling`"), "{message}");
    }
}
