//! Call chains of CPU time: the tab of the page, and folded stacks.

use crate::browser::{Browser, Look};
use crate::common::{command, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A profile with the wall time of stacks and without samples.
const WALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/wall.jsonl");

/// Samples of a kind of task, of a span in it, of that span elsewhere, and of a thread.
const STACKS: &str = r#"{"record":"stacks","real_ns":1000000000,"cpu_ns":900000000,"sample_ns":1000000,"source":"perf task-clock","frames":[{"name":"shop::audit","own":true},{"name":"shop::price","own":true},{"name":"serde_json::ser::to_vec"},{"name":"memcpy"},{"name":"shop::main","own":true},{"name":"[no frame pointers]"},{"name":"</script>;x","own":true}],"groups":[{"thread":"tokio-rt-worker","task":2,"stacks":[[null,0,100],[0,1,50],[1,2,40],[2,3,10]]},{"thread":"tokio-rt-worker","task":2,"span":1,"stacks":[[null,1,200],[0,3,100]]},{"thread":"tokio-rt-worker","task":24,"span":1,"stacks":[[null,1,100],[null,5,0],[1,6,100]]},{"thread":"main","stacks":[[null,4,20],[0,2,30]]},{"thread":"other","task":2,"stacks":[[null,0,50]]}],"samples":800,"ended_early":100,"unwound":200,"lost":3}"#;

/// A profile with samples.
fn profile(folder: &Path) -> PathBuf {
    let wall = fs::read_to_string(WALL).unwrap();
    let end = wall.find(r#"{"record":"end""#).unwrap();
    let file = folder.join("cpu.jsonl");
    fs::write(&file, format!("{}{STACKS}\n{}", &wall[..end], &wall[end..])).unwrap();
    file
}

fn page(folder: &Path, profile: &Path) -> PathBuf {
    let file = folder.join("report.html");
    let arguments = ["report", "--format", "html", "-o"];
    let output = command().args(arguments).arg(&file).arg(profile).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    file
}

/// The frame that has the focus, or that the page tells of.
const TOLD: &str = "document.querySelector('#flame-frame .name').textContent";

/// Names of all boxes, from the top.
const BOXES: &str =
    "[...document.querySelectorAll('.frame > text')].map((text) => text.textContent)";

#[test]
fn graph_of_cpu_time_is_walked_from_a_keyboard_and_is_of_a_part() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), &profile(folder.path()));
    browser.open(&page, "", Look::Desktop);
    browser.eval("document.getElementById('to-answer').focus()");
    // The tabs are walked in a circle.
    for (key, tab) in
        [("ArrowRight", "to-flame"), ("ArrowRight", "to-cpu"), ("ArrowRight", "to-answer")]
    {
        browser.press(key);
        assert_eq!(browser.eval("document.activeElement.id"), tab);
    }
    browser.eval("document.getElementById('to-cpu').click()");
    assert_eq!(browser.eval("document.getElementById('tab-answer').hidden"), true);
    assert_eq!(browser.eval(TOLD), "all");
    browser.eval("document.querySelector('.frame').focus()");
    for (key, told) in [
        ("ArrowDown", "audit"),
        ("ArrowDown", "stock"),
        ("ArrowRight", "shop::audit"),
        ("ArrowUp", "audit"),
        ("ArrowRight", "stock keeper"),
        ("ArrowRight", "main"),
        ("ArrowDown", "shop::main"),
        ("Enter", "shop::main"),
    ] {
        browser.press(key);
        assert_eq!(browser.eval(TOLD), told, "{key}");
    }
    assert_eq!(
        browser.eval("decodeURIComponent(location.hash)"),
        "#cpu=all&stack=thread+main+>+function+shop::main"
    );
    let words = browser.eval("document.getElementById('tab-cpu').textContent");
    let words = words.as_str().unwrap();
    for said in [
        "In all 50.0 ms: other crates 60 %, your code 40 %",
        "Itself 20.0 ms",
        "800 samples by perf task-clock",
        "Of 13 % of the samples the callers are not known",
        "Of 25 % of the samples the callers were found without frame pointers",
        "3 samples were lost",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    let parts =
        "[...document.querySelectorAll('#cpu-part option')].map((option) => option.textContent)";
    let parts = browser.eval(parts);
    let all = [
        "the whole program \u{b7} 800 ms",
        "audit \u{b7} 550 ms",
        "stock keeper \u{b7} 200 ms",
        "stock \u{b7} 500 ms",
        "tokio-rt-worker \u{b7} 700 ms",
        "main \u{b7} 50.0 ms",
        "other \u{b7} 50.0 ms",
    ];
    assert_eq!(parts.as_array().unwrap().len(), all.len(), "{parts}");
    for (part, expected) in parts.as_array().unwrap().iter().zip(all) {
        assert_eq!(part, expected);
    }
    // A span is one graph, whatever task it is in.
    browser.eval("(() => { const part = document.getElementById('cpu-part'); part.value = 3; part.dispatchEvent(new Event('change')) })()");
    let boxes = browser.eval(BOXES);
    let expected = ["stock", "shop::price", "memcpy", "[no frame pointers]", "</script>;x"];
    assert_eq!(boxes, Value::from(expected.to_vec()));
    assert_eq!(browser.eval("document.activeElement.id"), "cpu-part");
    assert_eq!(browser.eval("decodeURIComponent(location.hash)"), "#cpu=span+stock");
    browser.eval("document.getElementById('to-flame').click()");
    assert_eq!(
        browser.eval("document.getElementById('flame').getAttribute('aria-label')"),
        "Flame graph of wall time"
    );
    let (_, errors) = browser.requests_and_errors();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn address_of_cpu_time_is_shown_on_a_phone_and_in_the_dark() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), &profile(folder.path()));
    for look in [Look::Phone, Look::Dark] {
        browser.open(&page, "#cpu=task+audit&frames=price", look);
        assert_eq!(browser.eval("document.getElementById('tab-cpu').hidden"), false);
        assert_eq!(browser.eval("document.querySelectorAll('.frame.found').length"), 2);
        let found = browser.eval("document.getElementById('flame-found').textContent");
        assert_eq!(found, "2 stacks have it, with 73 % of the time");
        assert_eq!(browser.eval("document.body.scrollWidth <= innerWidth"), true);
        let rows = "document.querySelectorAll('#flame-table tbody tr').length";
        assert_eq!(browser.eval(rows), 8);
        let (requests, errors) = browser.requests_and_errors();
        assert!(errors.is_empty() && requests.len() == 1, "{errors:?} {requests:?}");
    }
}

#[test]
fn ranking_leads_to_the_cpu_time_of_spans_and_functions() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), &profile(folder.path()));
    let link = |name: &str| {
        format!("document.querySelector('.row [aria-label=\"{name} in the graph of CPU time\"]')")
    };
    for (name, address, told) in [
        ("stock", "#cpu=span+stock", "stock"),
        ("audit", "#cpu=task+audit", "audit"),
        ("shop::price", "#cpu=all&frames=shop::price", "all"),
    ] {
        browser.open(&page, "", Look::Desktop);
        let of = "decodeURIComponent";
        assert_eq!(browser.eval(&format!("{of}({}.getAttribute('href'))", link(name))), address);
        browser.eval(&format!("{}.click()", link(name)));
        assert_eq!(browser.eval(TOLD), told);
        assert_eq!(browser.eval("decodeURIComponent(location.hash)"), address);
        let found = browser.eval("document.querySelectorAll('.frame.found').length > 0");
        assert_eq!(found, name == "shop::price");
        browser.eval("new Promise((done) => { addEventListener('popstate', () => setTimeout(done)); history.back() })");
        assert_eq!(browser.eval("document.getElementById('tab-cpu').hidden"), true);
    }
}

#[test]
fn page_without_samples_says_how_to_take_them() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), Path::new(WALL));
    browser.open(&page, "", Look::Desktop);
    browser.eval("document.getElementById('to-cpu').click()");
    let words = browser.eval("document.getElementById('tab-cpu').textContent");
    assert!(words.as_str().unwrap().contains("cargo andweorc run --targets functions"), "{words}");
    assert_eq!(
        browser.eval("document.querySelectorAll('.row [aria-label$=\"CPU time\"]').length"),
        0
    );
    let (_, errors) = browser.requests_and_errors();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn folded_chains_have_a_line_for_each_with_time_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let export = |options: &[&str], profile: &Path| {
        command().arg("export").args(options).arg(profile).output().unwrap()
    };
    let folded = export(&["--format", "folded", "--of", "cpu"], &profile(folder.path()));
    insta::assert_snapshot!(stdout(&folded));
    let total: u64 = stdout(&folded)
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
        .sum();
    assert_eq!(total, 800_000_000);
    for (options, profile, refusal) in [
        (&["--format", "folded", "--of", "cpu"], Path::new(WALL), "no samples were taken"),
        (
            &["--format", "dhat", "--of", "cpu"],
            Path::new(WALL),
            "goes with `--format` folded, speedscope",
        ),
    ] {
        let refused = export(options, profile);
        assert_eq!((refused.status.code(), stdout(&refused)), (Some(2), String::new()));
        assert!(stderr(&refused).contains(refusal), "{}", stderr(&refused));
    }
}
