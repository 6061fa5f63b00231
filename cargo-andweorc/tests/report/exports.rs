//! `cargo andweorc export` for speedscope, pprof and OTLP. `.ci/exports` has them read by programs
//! of others.

use crate::common::{command, profile, stderr, stdout};
use nix::pty::openpty;
use serde_json::{Value, json};
use std::fs;
use std::process::Output;

/// A profile with wall time, CPU time and allocations.
const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/exports.jsonl");

fn export(format: &str, profile: &str) -> Output {
    command().args(["export", "--format", format, profile]).output().unwrap()
}

/// The sum of the numbers in an array.
fn sum(numbers: &Value) -> u64 {
    numbers.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).sum()
}

#[test]
fn speedscope_has_a_profile_for_each_quantity_with_the_time_of_folded_stacks() {
    let folded = [["--of", "wall"], ["--of", "cpu"], ["--of", "allocations"]].map(|of| {
        let arguments = ["export", "--format", "folded", PROFILE];
        stdout(&command().args(arguments).args(of).output().unwrap())
    });
    let value: Value = serde_json::from_str(&stdout(&export("speedscope", PROFILE))).unwrap();
    let profiles = value["profiles"].as_array().unwrap();
    let kinds: Vec<_> = profiles.iter().map(|it| (&it["name"], &it["unit"])).collect();
    let expected = [
        (&json!("Wall time"), &json!("nanoseconds")),
        (&json!("CPU time"), &json!("nanoseconds")),
        (&json!("Allocations"), &json!("none")),
        (&json!("Bytes allocated"), &json!("bytes")),
    ];
    assert_eq!(kinds, expected);
    let frames = value["shared"]["frames"].as_array().unwrap();
    // Of allocations they have the bytes.
    let same = [&profiles[0], &profiles[1], &profiles[3]];
    for (profile, folded) in same.into_iter().zip(folded) {
        let mut lines = String::new();
        let [stacks, weights] = ["samples", "weights"].map(|it| profile[it].as_array().unwrap());
        for (stack, weight) in stacks.iter().zip(weights) {
            let name = |frame: &Value| {
                frames[frame.as_u64().unwrap() as usize]["name"].as_str().unwrap().replace(';', ":")
            };
            let names: Vec<String> = stack.as_array().unwrap().iter().map(name).collect();
            lines += &format!("{} {weight}\n", names.join(";"));
        }
        assert_eq!(lines, folded);
        assert_eq!(profile["endValue"], sum(&profile["weights"]));
    }
    assert_eq!((sum(&profiles[2]["weights"]), sum(&profiles[3]["weights"])), (27, 2_001_000_571));
    let stock = frames.iter().find(|frame| frame["name"] == "stock").unwrap();
    assert_eq!((&stock["file"], &stock["line"]), (&json!("src/shop.rs"), &json!(12)));
}

#[test]
fn binary_formats_are_written_to_a_file_or_pipe_but_not_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    for (format, begin) in [("pprof", &[0x1f, 0x8b][..]), ("otlp", &[0x0a])] {
        let piped = export(format, PROFILE);
        assert!(piped.status.success(), "{}", stderr(&piped));
        assert!(piped.stdout.starts_with(begin), "{:?}", &piped.stdout[..2]);
        let file = folder.path().join(format);
        let written = command()
            .args(["export", "--format", format, PROFILE, "-o"])
            .arg(&file)
            .output()
            .unwrap();
        assert_eq!((written.status.code(), stdout(&written)), (Some(0), String::new()));
        assert_eq!(fs::read(&file).unwrap(), piped.stdout, "{format}");

        let terminal = openpty(None, None).unwrap();
        let refused = command()
            .args(["export", "--format", format, PROFILE])
            .stdout(terminal.slave)
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("write it to a file (`-o FILE`)"), "{refused:?}");
    }
}

#[test]
fn binary_export_is_never_written_over_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    fs::copy(PROFILE, &file).unwrap();
    let output = command()
        .args(["export", "--format", "pprof", "-o"])
        .args([&file, &file])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is the profile itself"), "{}", stderr(&output));
    assert_eq!(fs::read(&file).unwrap(), fs::read(PROFILE).unwrap());
}

#[test]
fn profile_without_stacks_says_so_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    fs::write(&file, profile()).unwrap();
    for format in ["speedscope", "pprof", "otlp"] {
        let output = export(format, file.to_str().unwrap());
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
        let said = stderr(&output);
        assert!(said.contains("neither wall time nor allocations were recorded"), "{said}");
    }
}
