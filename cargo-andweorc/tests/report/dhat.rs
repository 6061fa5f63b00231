//! `cargo andweorc export --format dhat`, read by valgrind's own viewer where it and node are
//! there.

use crate::browser::{Browser, Look};
use crate::common::{command, profile, stderr, stdout};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Folders in which Debian and Fedora have the viewer.
const VIEWERS: [&str; 3] = ["/usr/libexec/valgrind", "/usr/lib/valgrind", "/usr/lib64/valgrind"];

/// Has the viewer build its tree of the file that is named, and prints what it shows of it.
const VIEW: &str = r#"
const fs = require("fs"), vm = require("vm");
globalThis.document = {};
const run = (code) => vm.runInThisContext(code);
run(fs.readFileSync(process.argv[1] + "/dh_view.js", "utf8"));
run("gData = JSON.parse(" + JSON.stringify(fs.readFileSync(process.argv[2], "utf8")) + ")");
run("gSelect = { childNodes: gSelectData.map(() => ({})), selectedIndex: 1 }");
run("buildTree()");
const kids = "(gRoot._kids ?? []).map((kid) => [gData.ftbl[kid._frames[0]], kid._totalBytes, kid._totalBlocks])";
console.log(run("JSON.stringify([gRoot._totalBytes, gRoot._totalBlocks, " + kids + "])"));
"#;

/// The profile of a program with andweorc's allocator.
fn allocating() -> String {
    let of = |target: Option<u32>, bytes: u64, count: u64| {
        json!({"target": target, "bytes": bytes, "count": count, "freed_bytes": 0,
            "freed_count": 0, "churned_bytes": bytes / 2, "churned_count": 0,
            "live_bytes": 4096, "live_count": 1, "peak_bytes": 8192})
    };
    let record = |seq: Option<u32>, targets: &[Value]| {
        let record = json!({"record": "allocations", "seq": seq, "real_ns": 500_000_000,
            "targets": targets});
        record.to_string() + "\n"
    };
    let before = record(None, &[of(Some(1), 1_000_000, 10), of(None, 7, 1)]);
    profile() + &before + &record(Some(0), &[of(Some(1), 500, 5), of(Some(2), 2_000_000_000, 9)])
}

fn export(content: &str, into: &Path) -> Output {
    let file = into.join("run.jsonl");
    fs::write(&file, content).unwrap();
    command().args(["export", "--format", "dhat"]).arg(&file).output().unwrap()
}

#[test]
fn dhat_file_has_the_totals_of_each_target() {
    let folder = tempfile::tempdir().unwrap();
    let output = export(&allocating(), folder.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let value: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&value["dhatFileVersion"], &value["bklt"]), (&json!(2), &json!(false)));
    assert_eq!((&value["cmd"], &value["te"]), (&json!("shop"), &json!(1_000_000)));
    assert_eq!(
        value["ftbl"],
        json!(["[root]", "task:audit (src/shop.rs:40)", "stock (src/shop.rs:12)", "outside"])
    );
    let totals = json!([
        {"tb": 2_000_000_000, "tbk": 9, "fs": [1]},
        {"tb": 1_000_500, "tbk": 15, "fs": [2]},
        {"tb": 7, "tbk": 1, "fs": [3]},
    ]);
    assert_eq!(value["pps"], totals);
}

#[test]
fn viewer_of_valgrind_reads_the_file() {
    let viewer = VIEWERS.iter().find(|folder| Path::new(folder).join("dh_view.js").exists());
    let has_node = Command::new("node").arg("--version").output().is_ok();
    let Some(viewer) = viewer.filter(|_| has_node) else {
        println!("skipped: no viewer (Debian: apt-get install valgrind), or no node");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.dhat.json");
    fs::write(&file, stdout(&export(&allocating(), folder.path()))).unwrap();
    let output = Command::new("node").args(["-e", VIEW, viewer]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let seen: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let kids = json!([
        ["task:audit (src/shop.rs:40)", 2_000_000_000, 9],
        ["stock (src/shop.rs:12)", 1_000_500, 15],
        ["outside", 7, 1],
    ]);
    assert_eq!(seen, json!([2_001_000_507, 25, kids]));
}

#[test]
fn profile_without_allocations_says_what_to_add() {
    let folder = tempfile::tempdir().unwrap();
    let output = export(&profile(), folder.path());
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    assert!(stderr(&output).contains("make `andweorc::Alloc` the allocator"), "{output:?}");
}

#[test]
fn page_and_json_have_a_row_for_each_target() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    fs::write(&file, allocating()).unwrap();
    let report = |format: &str| {
        let output = command().args(["report", "--format", format]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let value: Value = serde_json::from_str(&report("json")).unwrap();
    let audit = &value["allocations"][0];
    assert_eq!((&audit["name"], &audit["bytes_per_s"]), (&json!("audit"), &json!(2e9)));
    assert_eq!((&audit["churn"], &audit["peak_bytes"]), (&json!(0.5), &json!(8192)));
    assert_eq!(value["allocations"][2]["kind"], Value::Null);
    assert!(report("text").contains("ALLOCATIONS per checkout"), "{}", report("text"));
    if let Some(mut browser) = Browser::start() {
        let page = folder.path().join("report.html");
        fs::write(&page, report("html")).unwrap();
        browser.open(&page, "", Look::Desktop);
        let dom = browser.dom();
        assert!(dom.contains("What it allocated"), "{dom}");
        assert!(dom.contains("<td>1.86 GiB</td><td>9.0</td><td>4.00 KiB</td>"), "{dom}");
        assert_eq!(browser.requests_and_errors().1, Vec::<Value>::new());
    }
}
