//! `cargo andweorc report --format coz`, read as coz's own viewer reads it.

use crate::browser::{Browser, Look};
use crate::common::{command, stderr, stdout};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/shop.jsonl");

/// Sum that the viewer makes for one (selected, point, speedup).
#[derive(Debug)]
enum Sum {
    Throughput { delta: i64, duration: i64 },
    Latency { arrivals: i64, difference: f64, duration: i64 },
}

impl Sum {
    /// Time per unit, or latency by Little's law.
    fn value(&self) -> f64 {
        match *self {
            Sum::Throughput { delta, duration } => duration as f64 / delta as f64,
            Sum::Latency { arrivals, difference, duration } => {
                difference / (arrivals as f64 / duration as f64)
            }
        }
    }
}

/// The viewer's data: selected, point, speedup as it is written.
#[derive(Debug, Default)]
struct Viewer {
    data: BTreeMap<(String, String), BTreeMap<String, Sum>>,
}

impl Viewer {
    /// Reads a profile as the viewer does, but panics where the viewer would warn, or compute with
    /// what it can't read.
    fn load(text: &str) -> Viewer {
        let mut viewer = Viewer::default();
        let mut experiment: Option<(String, f64, i64)> = None;
        for line in text.split('\n').filter(|line| !line.is_empty()) {
            assert!(!line.starts_with('{'), "it would be read as JSON: {line}");
            let cells: Vec<&str> = line.split('\t').collect();
            let keys: HashMap<&str, &str> =
                cells[1..].iter().map(|cell| cell.split_once('=').expect(line)).collect();
            let whole = |key: &str| -> i64 { keys[key].parse().expect(line) };
            match cells[0] {
                "startup" | "runtime" => assert!(whole("time") > 0, "{line}"),
                "samples" => assert!(keys.contains_key("location") && whole("count") > 0, "{line}"),
                "experiment" => {
                    let speedup: f64 = keys["speedup"].parse().expect(line);
                    assert!(
                        (0.0..=1.0).contains(&speedup) && whole("selected-samples") >= 0,
                        "{line}"
                    );
                    experiment = Some((keys["selected"].to_owned(), speedup, whole("duration")));
                }
                "throughput-point" => {
                    let sum = viewer.sum(
                        &experiment,
                        keys["name"],
                        Sum::Throughput { delta: 0, duration: 0 },
                    );
                    let (Sum::Throughput { delta, duration }, Some((_, _, length))) =
                        (sum, &experiment)
                    else {
                        panic!("a point of two types, or without an experiment: {line}")
                    };
                    *delta += whole("delta");
                    *duration += length;
                }
                "latency-point" => {
                    assert_eq!(whole("arrivals"), whole("departures"), "{line}");
                    let none = Sum::Latency { arrivals: 0, difference: 0.0, duration: 0 };
                    let sum = viewer.sum(&experiment, keys["name"], none);
                    let (Sum::Latency { arrivals, difference, duration }, Some((_, _, length))) =
                        (sum, &experiment)
                    else {
                        panic!("a point of two types, or without an experiment: {line}")
                    };
                    let total = (*duration + length) as f64;
                    *difference = *difference * (*duration as f64 / total)
                        + whole("difference") as f64 * *length as f64 / total;
                    *arrivals += whole("arrivals");
                    *duration += length;
                }
                _ => panic!("the viewer would call this invalid: {line}"),
            }
        }
        viewer
    }

    fn sum(&mut self, experiment: &Option<(String, f64, i64)>, point: &str, none: Sum) -> &mut Sum {
        let (selected, speedup, _) = experiment.as_ref().expect("an experiment before its points");
        let curve = self.data.entry((selected.clone(), point.to_owned())).or_default();
        curve.entry(speedup.to_string()).or_insert(none)
    }

    /// Returns the curve that the viewer draws, by speedup: the change in % against the experiments
    /// with speedup 0, a fall in time per unit being a rise, and a fall in latency a fall.
    fn curve(&self, selected: &str, point: &str) -> Vec<(f64, f64)> {
        let data = &self.data[&(selected.to_owned(), point.to_owned())];
        let baseline = data["0"].value();
        let sign = if matches!(data["0"], Sum::Latency { .. }) { -1.0 } else { 1.0 };
        let change = |sum: &Sum| sign * (baseline - sum.value()) / baseline * 100.0;
        data.iter().map(|(speedup, sum)| (speedup.parse().unwrap(), change(sum))).collect()
    }
}

fn near(curve: &[(f64, f64)], expected: &[(f64, f64)]) {
    assert_eq!(curve.len(), expected.len(), "{curve:?}");
    for (a, b) in curve.iter().zip(expected) {
        assert!(a.0 == b.0 && (a.1 - b.1).abs() < 0.5, "{curve:?} is not {expected:?}");
    }
}

#[test]
fn the_viewer_sees_the_same_curves() {
    let output = command().args(["report", "--format", "coz", PROFILE]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let viewer = Viewer::load(&stdout(&output));
    // Time per unit: 1 - 1 / (1 + 0.4 s).
    let faster = [(0.0, 0.0), (0.25, 9.1), (0.5, 16.7), (0.75, 23.1)];
    near(&viewer.curve("src/shop.rs:12 span stock", "checkout"), &faster);
    // By Little's law latencies fall as much; there is about one unit in flight, so that whole
    // numbers would not do.
    let lower = faster.map(|(speedup, change)| (speedup, -change));
    near(&viewer.curve("src/shop.rs:12 span stock", "checkout (latency)"), &lower);
    let flat = [(0.0, 0.0), (0.25, 0.0), (0.5, 0.0), (0.75, 0.0)];
    near(&viewer.curve("src/shop.rs:40 task audit", "checkout"), &flat);
    // Tabs in a name would end its cell.
    let tabbed = "src/shop.rs:60 span `=1+1`, \"q\"\\tname";
    assert_eq!(viewer.curve(tabbed, "checkout").len(), 4);
}

#[test]
fn experiments_in_which_a_point_did_nothing_count() {
    let output = command().args(["report", "--format", "coz", PROFILE]).output().unwrap();
    let text = stdout(&output);
    assert!(text.contains("throughput-point\tname=mail <b>&amp;\tdelta=0\n"), "{text}");
    let discarded = text.lines().filter(|line| {
        line.contains("selected=src/shop.rs:40 task audit") && line.contains("speedup=0.5\t")
    });
    assert_eq!(discarded.count(), 3, "the discarded experiment is left out");
}

/// Where Debian's package `coz-profiler` has it.
const VIEWER: &str = "/usr/share/coz-profiler/viewer/index.htm";

#[test]
fn coz_own_viewer_draws_the_same_curves() {
    if !Path::new(VIEWER).exists() {
        println!("skipped: coz's viewer is not here; install Debian's package `coz-profiler`");
        return;
    }
    let Some(mut browser) = Browser::start() else { return };
    let output = command().args(["report", "--format", "coz", PROFILE]).output().unwrap();
    let text = stdout(&output);
    browser.open(Path::new(VIEWER), "", Look::Desktop);
    // What its button does with a file.
    browser.eval("d3.select('#minpoints_field').node().value = 0; var warnings = []");
    browser.eval(&format!(
        "current_profile = new Profile({}, d3.select('#plot-area'), d3.select('#legend'), get_min_points, (title, text) => warnings.push(title + text)); update()",
        Value::from(text.as_str())
    ));
    assert_eq!(browser.eval("warnings.join()"), "");
    let drawn = browser.eval("current_profile.getSpeedupData(0)");
    let drawn = drawn.as_array().unwrap();
    let ours = Viewer::load(&text);
    let targets: std::collections::BTreeSet<_> =
        ours.data.keys().map(|(target, _)| target).collect();
    assert_eq!(drawn.len(), targets.len());
    for target in drawn {
        for point in target["progress_points"].as_array().unwrap() {
            let (target, name) =
                (target["name"].as_str().unwrap(), point["name"].as_str().unwrap());
            let curve: Vec<(f64, f64)> = point["measurements"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| {
                    (
                        one["speedup"].as_f64().unwrap(),
                        one["progress_speedup"].as_f64().unwrap() * 100.0,
                    )
                })
                .collect();
            if !curve.is_empty() {
                near(&curve, &ours.curve(target, name));
            }
        }
    }
    let titles = browser.eval(
        "[...document.querySelectorAll('.plot-title')].map((one) => one.textContent).join('\\n')",
    );
    let titles = titles.as_str().unwrap();
    assert!(titles.lines().any(|one| one.ends_with("shop.rs:12 span stock")), "{titles}");
    assert_eq!(browser.eval("document.querySelectorAll('.plot svg').length"), targets.len());
}
