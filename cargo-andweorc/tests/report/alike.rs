//! Things that are easily taken for something else: probes for experiments on a target, points of
//! one name for each other, and what a program does under an open load for what it can.

use crate::browser::{Browser, Look};
use crate::common::{command, profile, stderr, stdout};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A profile with two probes under an open load, and a second point `checkout`, a latency, that
/// targets are then ranked by: `stock` brings it -10 % and -20 %.
fn open_load() -> (TempDir, PathBuf) {
    written(11_765)
}

/// A profile like that of `open_load`, under a load that waits for answers: targets are ranked by
/// the throughput of the first point.
fn closed_load() -> (TempDir, PathBuf) {
    written(10_000)
}

/// The probes find so many units in 1 s of virtual time, and a baseline 10,000.
fn written(probed: u32) -> (TempDir, PathBuf) {
    let mut lines: Vec<String> = profile().lines().map(str::to_owned).collect();
    // Its own probes would count beside those added below.
    lines.retain(|line| !line.contains(r#""target":9,"#) && !line.contains(r#""id":9,"#));
    for line in &mut lines {
        *line = line.replace(
            r#""targets":[{"target":1,"busy_ns":200"#,
            r#""targets":[{"target":8,"busy_ns":100000000,"count":50,"waits":{"outside_ns":90000000,"task_ns":0,"queue_ns":10000000}},{"target":1,"busy_ns":200"#,
        );
        // The second point: a tenth of the first one's units, each as long but with a faster
        // `stock`.
        let Some((before, after)) = line.split_once(r#""points":[{"point":1,"count":"#) else {
            continue;
        };
        let (count, rest) = after.split_once("}]").unwrap();
        let of_stock =
            |speedup: &str| before.contains(&format!(r#""target":1,"speedup":{speedup},"#));
        let took = if of_stock("0.25") {
            1_800_000
        } else if of_stock("0.5") {
            1_600_000
        } else {
            2_000_000
        };
        *line = format!(
            r#"{before}"points":[{{"point":1,"count":{count}}},{{"point":2,"count":100,"latency":[[{took},100]]}}]{rest}"#
        );
    }
    let end = lines.pop().unwrap();
    lines.insert(
        1,
        r#"{"record":"target","id":9,"kind":"probe","name":"everything","file":null,"line":null}"#
            .to_owned(),
    );
    lines.insert(
        2,
        r#"{"record":"target","id":8,"kind":"wait","name":"pay","file":"src/shop.rs","line":70}"#
            .to_owned(),
    );
    lines.insert(2, r#"{"record":"point","id":2,"kind":"latency","name":"checkout","file":"src/shop.rs","line":9,"rank":1}"#.to_owned());
    for seq in [17, 19] {
        lines.push(format!(r#"{{"record":"experiment","seq":{seq},"target":9,"speedup":0.15,"start_ns":{start},"real_ns":1176470588,"delay_ns":176470588,"points":[{{"point":1,"count":{probed}}}],"spoiled":null}}"#, start = seq * 2_000_000_000_u64));
        lines.push(format!(r#"{{"record":"experiment","seq":{next},"target":null,"speedup":0.0,"start_ns":{start},"real_ns":1000000000,"delay_ns":0,"points":[{{"point":1,"count":10000}}],"spoiled":null}}"#, next = seq + 1, start = (seq + 1) * 2_000_000_000_u64));
    }
    lines.push(end);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    (folder, file)
}

fn report(file: &PathBuf, format: &str) -> String {
    let output = command().args(["report", "--format", format]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn effects_say_which_point_of_a_name_they_are_on() {
    let (_folder, file) = closed_load();
    let report: serde_json::Value = serde_json::from_str(&report(&file, "json")).unwrap();
    let kinds: Vec<_> =
        report["points"].as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["progress", "latency"]);
    let stock = &report["targets"][0];
    for list in ["effects", "impacts"] {
        let throughput = |index: usize| {
            let mut all = stock[list].as_array().unwrap().iter();
            all.find(|one| one["point_index"] == index && one["metric"] == "throughput").unwrap()
        };
        let key = if list == "effects" { "effect_pct" } else { "slope" };
        assert!(throughput(0)[key].as_f64().unwrap() > 15.0, "{stock}");
        assert!(throughput(1)[key].as_f64().unwrap().abs() < 1.0, "{stock}");
        assert_eq!(throughput(0)["point"], throughput(1)["point"]);
    }
}

#[test]
fn words_are_about_the_point_ranked_by() {
    let (_folder, file) = closed_load();
    let text = report(&file, "text");
    assert_eq!(text.matches("stock shop.rs:12").count(), 1, "{text}");
    assert!(text.contains("rate at 50 % faster") && text.contains("+20."), "{text}");
}

#[test]
fn under_an_open_load_all_reports_rank_by_latency_and_say_so() {
    let (_folder, file) = open_load();
    let json: serde_json::Value = serde_json::from_str(&report(&file, "json")).unwrap();
    assert_eq!(json["ranked_by"], serde_json::json!({"point_index": 1, "metric": "mean"}));
    let stock = &json["targets"][0];
    assert_eq!((&stock["name"], &stock["verdict"]), (&"stock".into(), &"matters".into()));
    assert_eq!(json["targets"][1]["verdict"], "nothing");
    let text = report(&file, "text");
    assert_eq!(text.matches("stock shop.rs:12").count(), 1, "{text}");
    assert!(text.contains("took half as long: mean 1.60 ms, p50 1.60 ms, p99 1.60 ms"), "{text}");
    assert!(
        text.contains("mean at 50 % faster") && text.contains("-20.0 % [-20.0,-20.0]"),
        "{text}"
    );
    assert!(
        text.contains("WAITS, untested\n  pay shop.rs:70  2.00 ms each, 90 % timers"),
        "{text}"
    );
    let markdown = report(&file, "markdown");
    assert!(markdown.contains("What changes for `checkout`: mean latency"), "{markdown}");
    assert!(markdown.contains("| -20.0 % [-20.0, -20.0] | 1.60 ms |"), "{markdown}");
    for said in [text, markdown] {
        let said = said.replace('\n', " ").replace('\\', "");
        assert!(said.contains("throughput can't rise, so targets are ranked by mean"), "{said}");
    }
}

#[test]
fn probes_are_no_experiments_in_any_report() {
    let (folder, file) = open_load();
    let eight = "8 experiments and 11 baselines";
    assert!(report(&file, "text").contains(eight));
    assert!(report(&file, "markdown").contains(eight));
    for format in ["text", "markdown", "html"] {
        assert!(report(&file, format).contains("The load comes at its own pace"), "{format}");
    }
    assert!(!report(&file, "coz").contains("everything"));
    assert!(!report(&file, "csv").contains("everything"));
    let json: serde_json::Value = serde_json::from_str(&report(&file, "json")).unwrap();
    assert_eq!((&json["experiments"], &json["load"]), (&8.into(), &"open".into()));
    let diff = stdout(&command().arg("diff").args([&file, &file]).output().unwrap());
    assert!(diff.contains("span stock") && !diff.contains("everything"), "{diff}");
    let listed = stdout(&command().arg("list").arg(folder.path()).output().unwrap());
    assert!(listed.contains("audit, stock") && !listed.contains("everything"), "{listed}");
}

#[test]
fn a_browser_tells_both_apart() {
    let Some(mut browser) = Browser::start() else { return };
    let (folder, file) = closed_load();
    let page = folder.path().join("report.html");
    fs::write(&page, report(&file, "html")).unwrap();
    browser.open(&page, "", Look::Desktop);
    browser.eval("document.querySelector('#experiments summary').click()");
    browser.eval("new Promise(requestAnimationFrame)");
    let dom = browser.dom();
    assert!(dom.contains("8 experiments and 11 baselines in"), "{dom}");
    assert!(dom.contains(r#"<option value="0" selected="">checkout (progress)</option>"#), "{dom}");
    assert!(
        dom.contains(r#"<option value="1">checkout (latency, src/shop.rs:9)</option>"#),
        "{dom}"
    );
    assert_eq!(dom.matches(">probe</td><td>15 %</td>").count(), 2, "{dom}");
    assert!(dom.contains(r#"<p class="lead">If "#) && !dom.contains("class=\"warning\""), "{dom}");
    let strong = "document.querySelector('.row .effect b').textContent";
    assert!(browser.eval(strong).as_str().unwrap().starts_with("+20."));
    assert!(
        dom.contains(">pay<")
            && dom.contains("<td>2.00 ms</td><td>90 %</td><td>0 %</td><td>10 %</td><td>50</td>"),
        "{dom}"
    );
    // The other point, by its address.
    let fragment = "#point=checkout+%28latency%2C+src%2Fshop.rs%3A9%29";
    browser.open(&page, fragment, Look::Desktop);
    assert_eq!(browser.eval("location.hash"), fragment);
    assert_eq!(browser.eval(strong), "0.0 %");
}

#[test]
fn a_browser_shows_latency_first_under_an_open_load() {
    let Some(mut browser) = Browser::start() else { return };
    let (folder, file) = open_load();
    let page = folder.path().join("report.html");
    fs::write(&page, report(&file, "html")).unwrap();
    browser.open(&page, "", Look::Desktop);
    let dom = browser.dom();
    assert!(
        dom.contains(r#"<p class="warning" role="note">The load comes at its own pace"#),
        "{dom}"
    );
    assert!(dom.contains("faster, the mean latency of <code>checkout</code> would"), "{dom}");
    let strong = "document.querySelector('.row .effect b').textContent";
    let shown = browser.eval(strong);
    assert!(shown.as_str().unwrap().ends_with("20.0 %"), "{shown}");
    // What is not ranked by is there when it is asked for.
    let fragment = "#metric=throughput";
    browser.open(&page, fragment, Look::Desktop);
    assert_eq!(browser.eval("location.hash"), fragment);
    assert!(!browser.eval(strong).as_str().unwrap().ends_with("20.0 %"));
    let chips = "[...document.querySelectorAll('.rows .chip')].map((chip) => chip.textContent)";
    assert_eq!(browser.eval(chips), serde_json::json!(["not judged", "not judged"]));
    let lead = browser.eval("document.querySelector('.lead').textContent");
    assert!(
        lead.as_str().unwrap().starts_with("Nothing is said of what would raise the throughput")
    );
}
