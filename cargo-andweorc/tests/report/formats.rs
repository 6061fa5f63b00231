//! The forms of `cargo andweorc report`, on a profile whose names are as bad as can be.

use crate::common::{command, profile, stderr, stdout};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/shop.jsonl");

fn report(arguments: &[&str]) -> Output {
    command().arg("report").args(arguments).output().unwrap()
}

fn formatted(format: &str) -> String {
    let output = report(&["--format", format, PROFILE]);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn markdown_is_a_table_in_which_names_are_only_names() {
    insta::assert_snapshot!(formatted("markdown"));
}

#[test]
fn csv_has_a_row_for_each_effect() {
    let csv = formatted("csv");
    insta::assert_snapshot!(csv);
    // Targets x speedups x metrics of `checkout`, and the throughput of the other point.
    assert_eq!(csv.lines().count(), 1 + (4 * 3 + 1) * 6);
}

#[test]
fn no_text_of_a_profile_gets_control_characters_through_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.jsonl");
    let mut bad = fs::read_to_string(PROFILE).unwrap();
    for key in ["program", "host", "name", "text", "reason", "spoiled"] {
        bad = bad.replace(&format!("\"{key}\":\""), &format!("\"{key}\":\"\\u001b[2J\\u0007"));
    }
    fs::write(&path, bad).unwrap();
    for format in ["text", "markdown", "csv", "html", "coz", "json"] {
        let output = report(&["--format", format, path.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
        for text in [stdout(&output), stderr(&output)] {
            let control = text.chars().find(|c| c.is_control() && !['\n', '\t'].contains(c));
            assert_eq!(control, None, "{format}: {text}");
        }
    }
}

#[test]
fn names_in_the_table_are_no_formulas_and_numbers_stay_numbers() {
    let shop = fs::read_to_string(PROFILE).unwrap();
    for (begin, shown) in [
        ("=", "'="),
        ("+", "'+"),
        ("-", "'-"),
        ("@", "'@"),
        ("\\t=", r"\t="),
        ("\\r=", r"\r="),
        ("\\n=", r"\n="),
        ("\u{ff1d}", "'\u{ff1d}"),
        ("-12.5", "'-12.5"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("formulas.jsonl");
        let mut bad = shop.clone();
        for key in ["name", "file"] {
            bad = bad.replace(&format!("\"{key}\":\""), &format!("\"{key}\":\"{begin}"));
        }
        fs::write(&path, bad).unwrap();
        let output = report(&["--format", "csv", path.to_str().unwrap()]);
        let csv = stdout(&output);
        let mut table = csv::Reader::from_reader(csv.as_bytes());
        let mut below_zero = 0;
        for row in table.records() {
            let row = row.unwrap();
            for text in [2, 3, 8].map(|i| &row[i]).into_iter().filter(|text| !text.is_empty()) {
                assert!(text.starts_with(shown), "{begin:?}: {text}");
            }
            for number in [0, 4, 10, 11, 12, 13, 14, 15] {
                let number = &row[number];
                assert!(number.is_empty() || number.parse::<f64>().is_ok(), "{number}");
                below_zero += usize::from(number.starts_with('-'));
            }
        }
        assert!(below_zero > 10);
    }
}

#[test]
fn json_adds_the_verdict_and_both_shares() {
    let report: serde_json::Value = serde_json::from_str(&formatted("json")).unwrap();
    assert_eq!((&report["schema"], &report["report_version"]), (&1.into(), &4.into()));
    let of = |name: &str| {
        let targets = report["targets"].as_array().unwrap();
        let target = targets.iter().find(|target| target["name"] == name).unwrap();
        (target["verdict"].as_str().unwrap(), target["share"].clone(), target["wall_share"].clone())
    };
    assert_eq!(of("stock"), ("matters", 0.2.into(), 0.1.into()));
    assert_eq!(of("audit"), ("nothing", 0.7.into(), 0.35.into()));
    assert_eq!(of("</script><script>alert(1)</script>").0, "hurts");
    assert_eq!(of("shop::price").0, "inconclusive");
}

#[test]
fn forms_for_people_say_why_the_share_of_a_loop_that_spins_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spins.jsonl");
    let mut lines = Vec::new();
    for line in profile().replace(r#""kind":"task""#, r#""kind":"function""#).lines() {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        if record["record"] == "experiment" {
            let busy_ns = if record["target"] == 2 { 1_400_000_000 } else { 700_000_000 };
            let time = serde_json::json!({ "target": 2, "busy_ns": busy_ns, "count": 1 });
            record["sampled"] = serde_json::json!([time]);
        }
        lines.push(record.to_string());
    }
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let formatted = |format| stdout(&report(&["--format", format, path.to_str().unwrap()]));
    for format in ["text", "markdown", "html"] {
        let words = formatted(format).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("so its share of CPU says nothing"), "{format}: {words}");
        assert!(words.contains("audit spins, or works without a pause"), "{format}: {words}");
    }
    assert!(!formatted("text").contains("70 %") && !formatted("markdown").contains("70 %"));
    let json: serde_json::Value = serde_json::from_str(&formatted("json")).unwrap();
    let fills = |name: &str| {
        let targets = json["targets"].as_array().unwrap();
        targets.iter().find(|target| target["name"] == name).unwrap()["fills_time"].clone()
    };
    assert_eq!((fills("audit"), fills("stock")), (true.into(), false.into()));
}

#[test]
fn each_key_of_the_json_is_explained() {
    fn keys(value: &serde_json::Value, all: &mut BTreeSet<String>) {
        match value {
            serde_json::Value::Object(map) => {
                all.extend(map.keys().cloned());
                map.values().for_each(|value| keys(value, all));
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, all)),
            _ => {}
        }
    }
    let mut all = BTreeSet::new();
    keys(&serde_json::from_str(&formatted("json")).unwrap(), &mut all);
    let explained = include_str!("../../../docs/book/src/reference/report-json.md");
    for key in all {
        let named = [format!("`{key}`"), format!("].{key}`"), format!("\"{key}\"")];
        assert!(named.iter().any(|name| explained.contains(name)), "{key}");
    }
}

#[test]
fn the_report_goes_where_it_should_and_never_over_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (profile, out) = (file("run.jsonl"), file("report.csv"));
    fs::copy(PROFILE, &profile).unwrap();
    let output = report(&["--format", "csv", "-o", &out, &profile]);
    assert!(output.status.success() && output.stdout.is_empty(), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&out).unwrap(), formatted("csv"));
    let output = report(&["--format", "csv", "-o", "-", &profile]);
    assert_eq!(stdout(&output), formatted("csv"));
    assert!(!Path::new("-").exists(), "`-` is the standard output");

    let over = file("./run.jsonl");
    let output = report(&["-o", &over, &profile]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is the profile itself"), "{}", stderr(&output));
    assert_eq!(fs::read(&profile).unwrap(), fs::read(PROFILE).unwrap());

    let output = report(&["-o", &file("absent/report"), &profile]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("absent/report can't be written: No such file or directory"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn several_profiles_are_one_report() {
    let output = report(&[PROFILE, PROFILE]);
    assert!(stdout(&output).contains("2 runs"), "{}", stdout(&output));
}

#[test]
fn without_a_profile_the_newest_of_the_project_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    let in_folder = |folder: &Path| {
        command().arg("report").current_dir(folder).env_remove("CARGO_TARGET_DIR").output().unwrap()
    };
    let output = in_folder(folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no cargo project is here"), "{}", stderr(&output));

    let manifest = "[package]\nname = \"shop\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/main.rs"), "fn main() {}\n").unwrap();
    let output = in_folder(folder.path());
    assert!(stderr(&output).contains("make one with `cargo andweorc run`"), "{}", stderr(&output));

    fs::create_dir_all(folder.path().join("target/andweorc")).unwrap();
    fs::copy(PROFILE, folder.path().join("target/andweorc/shop.jsonl")).unwrap();
    let output = in_folder(folder.path());
    assert!(stdout(&output).contains("andweorc: shop on here"), "{}", stderr(&output));
}

#[test]
fn folded_stacks_have_a_line_for_each_stack_and_state() {
    let wall = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/wall.jsonl");
    let export = |profiles: &[&str]| {
        command().args(["export", "--format", "folded"]).args(profiles).output().unwrap()
    };
    let folded = stdout(&export(&[wall]));
    insta::assert_snapshot!(folded);
    for line in folded.lines() {
        let (stack, ns) = line.rsplit_once(' ').unwrap();
        assert!(ns.parse::<u64>().unwrap() > 0 && stack.ends_with(']'), "{line}");
    }
    // Two runs are one graph.
    let twice = stdout(&export(&[wall, wall]));
    let sum = |text: &str| -> u64 {
        text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    };
    assert_eq!((twice.lines().count(), sum(&twice)), (folded.lines().count(), 2 * sum(&folded)));
    let older = export(&[PROFILE]);
    assert_eq!((older.status.code(), stdout(&older)), (Some(2), String::new()));
    assert!(stderr(&older).contains("no wall time was recorded"), "{}", stderr(&older));
}

#[test]
fn json_says_where_the_time_of_single_requests_went() {
    let wall = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/wall.jsonl");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("examples.jsonl");
    let examples = include_str!("../fixtures/examples.jsonl");
    fs::write(&file, fs::read_to_string(wall).unwrap() + examples).unwrap();
    let report = |profiles: &[&Path]| {
        let output = command().args(["report", "--format", "json"]).args(profiles).output();
        serde_json::from_slice::<serde_json::Value>(&output.unwrap().stdout).unwrap()
    };
    let requests = report(&[&file])["requests"].clone();
    let kinds: Vec<_> = requests.as_array().unwrap().iter().map(|kind| &kind["name"]).collect();
    assert_eq!(kinds, ["GET /cart", "checkout"]);
    let checkout = &requests[1];
    assert_eq!((&checkout["line"], &checkout["count"]), (&10.into(), &40.into()));
    let p99 = &checkout["examples"][1];
    assert_eq!(p99["of"], "p99");
    assert_eq!((&p99["about_ns"], &p99["length_ns"]), (&4_380_000.into(), &4_380_000.into()));
    let first = serde_json::json!({
        "span": "stock", "state": "task", "by": "stock keeper", "ns": 1_643_000
    });
    assert_eq!(p99["parts"][0], first);
    // Of two runs that have the same kind, one tells of it.
    let twice = report(&[&file, &file]);
    assert_eq!(twice["requests"], requests);
    assert_eq!(report(&[Path::new(PROFILE)])["requests"], serde_json::json!([]));
}

#[test]
fn firefox_document_has_tracks_for_threads_kinds_of_tasks_and_experiments() {
    let wall = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/wall.jsonl");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("timeline.jsonl");
    let timeline = include_str!("../fixtures/timeline.jsonl");
    fs::write(&file, fs::read_to_string(wall).unwrap() + timeline).unwrap();
    let export = |profile: &str| {
        command().args(["export", "--format", "firefox", profile]).output().unwrap()
    };
    let output = export(file.to_str().unwrap());
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let threads = document["threads"].as_array().unwrap();
    let names: Vec<_> = threads.iter().map(|thread| thread["name"].as_str().unwrap()).collect();
    let tasks = ["task:audit", "task:stock keeper"];
    assert_eq!(names, ["experiments", tasks[0], tasks[1], "thread", "tokio-runtime-worker"]);
    let bands = |thread: usize| {
        let (markers, strings) = (&threads[thread]["markers"], &threads[thread]["stringArray"]);
        let text = |index: &serde_json::Value| {
            strings[index.as_u64().unwrap() as usize].as_str().unwrap().to_owned()
        };
        let band = |at: usize| {
            let name = text(&markers["name"][at]) + " " + &text(&markers["data"][at]["details"]);
            let times = ["startTime", "endTime"].map(|key| markers[key][at].as_f64().unwrap());
            (name, times)
        };
        (0..markers["length"].as_u64().unwrap() as usize).map(band).collect::<Vec<_>>()
    };
    let (experiments, worker) = (bands(0), bands(4));
    assert_eq!(experiments.len(), 102);
    let lost = "not in the timeline: 3 earlier polls and spans, and 0 threads that were less busy";
    assert_eq!(experiments[101], (lost.to_owned(), [0.0, 0.0]));
    assert_eq!(experiments[1], ("stock 25 % faster".to_owned(), [1080.0, 2180.0]));
    assert!(experiments.iter().any(|(name, _)| name.contains("left out: steal 7 %")));
    let expected = [
        ("stock keeper task", [1.0, 4.0]),
        ("checkout span", [1.5, 3.5]),
        ("stock span", [2.0, 3.0]),
        ("stock keeper task", [9.0, 9.5]),
    ];
    assert_eq!(worker, expected.map(|(name, times)| (name.to_owned(), times)));
    let on_worker =
        expected.map(|(name, times)| (format!("{name} on tokio-runtime-worker"), times));
    assert_eq!(bands(1), [("audit task on thread".to_owned(), [1.0, 8.0])]);
    assert_eq!(bands(2), on_worker);
    // Nothing is on the thread from 4 to 9 ms.
    let stacks = threads[4]["samples"]["stack"].as_array().unwrap();
    let busy: Vec<_> = stacks.iter().map(|stack| !stack.is_null()).collect();
    assert_eq!(busy, [true, true, true, false, false, false, false, false, true]);
    let older = export(PROFILE);
    assert_eq!((older.status.code(), stdout(&older)), (Some(2), String::new()));
    assert!(stderr(&older).contains("no timeline was recorded"), "{}", stderr(&older));
}
