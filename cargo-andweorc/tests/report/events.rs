//! Events of the processor: the page's table, and JSON.

use crate::browser::{Browser, Look};
use crate::common::{command, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A profile without events.
const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/shop.jsonl");

/// Events of a target, and of what is outside of all.
const EVENTS: &str = r#"{"record":"events","real_ns":1000000000,"cpu_ns":900000000,"events":[{"name":"cycles","count":3000000000,"overflows":400,"lost":100,"enabled_ns":900,"running_ns":900},{"name":"instructions","count":1500000000,"overflows":500,"enabled_ns":900,"running_ns":900},{"name":"</script>","count":0,"overflows":0,"enabled_ns":900,"running_ns":900}],"targets":[{"target":TARGET,"overflows":[360,490,0],"counts":[2160000000,1470000000,0]},{"target":null,"overflows":[40,10,0],"counts":[240000000,30000000,0]}]}"#;

/// A profile with events of its first target. Returns that target's name too.
fn profile(folder: &Path) -> (PathBuf, String) {
    let shop = fs::read_to_string(SHOP).unwrap();
    let is_target = |record: &Value| record["record"] == "target";
    let target = shop.lines().map(|line| serde_json::from_str(line).unwrap()).find(is_target);
    let target = target.unwrap();
    let events = EVENTS.replace("TARGET", &target["id"].to_string());
    let end = shop.find(r#"{"record":"end""#).unwrap();
    let file = folder.join("events.jsonl");
    fs::write(&file, format!("{}{events}\n{}", &shop[..end], &shop[end..])).unwrap();
    (file, target["name"].as_str().unwrap().to_owned())
}

#[test]
fn events_are_in_json_and_null_where_none_were_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (with, name) = profile(folder.path());
    let events = |profile: &Path| {
        let output = command().args(["report", "--format", "json"]).arg(profile).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str::<Value>(&stdout(&output)).unwrap()["events"].clone()
    };
    assert_eq!(events(Path::new(SHOP)), Value::Null);
    let events = events(&with);
    assert_eq!((&events["seconds"], &events["events"][0]["lost"]), (&1.0.into(), &100.into()));
    let target = &events["targets"][0];
    assert_eq!((&target["name"], &target["events"][0]["share"]), (&name.into(), &0.9.into()));
    let ipc = target["ipc"].as_f64().unwrap();
    assert!((ipc - 1.47 / 2.7).abs() < 1e-9, "{ipc}");
    assert_eq!(events["targets"][1]["name"], "outside");
}

#[test]
fn events_are_a_table_of_the_page_on_a_desk_and_a_phone() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (profile, name) = profile(folder.path());
    let page = folder.path().join("report.html");
    let arguments = ["report", "--format", "html", "-o"];
    let output = command().args(arguments).arg(&page).arg(profile).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for look in [Look::Desktop, Look::Phone, Look::Dark] {
        browser.open(&page, "", look);
        let section = "document.querySelector('[aria-labelledby=events]')";
        let words = browser.eval(&format!("{section}.innerText"));
        let words = words.as_str().unwrap();
        for said in [&*name, "IPC", "0.54", "90 %", "3.00 G cycles", "too few", "</script>"] {
            assert!(words.contains(said), "{said}: {words}");
        }
        assert!(words.contains("20 % of the overflows of cycles were not seen"), "{words}");
        let is_wide = "document.documentElement.scrollWidth > innerWidth";
        assert_eq!(browser.eval(is_wide), false);
    }
}
