//! `cargo andweorc run`, on small projects whose programs write a ready-made profile.

mod common;

use common::{command, profile, stderr, stdout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tests_support::take_interrupts;

/// Writes the profile, and then does what its arguments say.
const PROGRAM: &str = r#"
use std::{env, fs, process, thread, time::Duration};
fn main() {
    let setting = |name: &str| env::var(name).unwrap_or_default();
    let args: Vec<String> = env::args().skip(1).collect();
    println!("features={}{} options={}", u8::from(cfg!(feature = "a")), u8::from(cfg!(feature = "b")),
        setting("CARGO_ANDWEORC_OPTIONS"));
    println!("slowdown={}", setting("ANDWEORC_MAX_SLOWDOWN"));
    println!("enabled={} duration={} targets={} points={} speedups={} args={args:?} kept={}",
        setting("ANDWEORC_ENABLED"), setting("ANDWEORC_DURATION"), setting("ANDWEORC_TARGETS"),
        setting("ANDWEORC_POINTS"), setting("ANDWEORC_SPEEDUPS"), cfg!(kept));
    if !args.contains(&"silent".to_owned()) {
        let out = std::path::PathBuf::from(env::var("ANDWEORC_OUT").unwrap());
        fs::create_dir_all(out.parent().unwrap()).unwrap();
        let mut lines: Vec<&str> = include_str!("profile.jsonl").lines().collect();
        if args.contains(&"wait".to_owned()) {
            lines.pop();
        }
        fs::write(out, lines.join("\n") + "\n").unwrap();
    }
    if args.contains(&"fail".to_owned()) {
        process::exit(7);
    }
    if args.contains(&"wait".to_owned()) {
        fs::write("ready", "").unwrap();
        thread::sleep(Duration::from_secs(60));
    }
}
"#;

/// A project with these binaries.
fn project(binaries: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir_all(at.join("src/bin")).unwrap();
    fs::write(
        at.join("Cargo.toml"),
        "[package]\nname = \"shop\"\nedition = \"2024\"\n[lints.rust]\nunexpected_cfgs = \"allow\"\n[features]\ndefault = [\"a\"]\na = []\nb = []\n\
         [profile.quick]\ninherits = \"dev\"\n[workspace]\n",
    )
    .unwrap();
    for name in binaries {
        fs::write(at.join(format!("src/bin/{name}.rs")), PROGRAM).unwrap();
    }
    fs::write(at.join("src/bin/profile.jsonl"), profile()).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    in_folder(folder).args(arguments).output().unwrap()
}

fn in_folder(folder: &Path) -> std::process::Command {
    let mut command = command();
    command
        .current_dir(folder)
        .arg("run")
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER");
    command
}

#[test]
fn builds_runs_and_reports() {
    let project = project(&["shop"]);
    let output =
        run(project.path(), &["--duration", "5s", "--points", "checkout", "--", "a", "--b"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let out = stdout(&output);
    assert!(out.contains("enabled=1 duration=5s targets= points=checkout speedups= "), "{out}");
    assert!(out.contains(r#"args=["a", "--b"]"#), "{out}");
    assert!(out.contains("  stock shop.rs:12"), "{out}");
    let file = project.path().join("target/andweorc/shop.jsonl");
    assert!(file.exists());
    let named = format!("cargo andweorc report --format json {}", file.display());
    assert!(stderr(&output).contains(&named), "{}", stderr(&output));
}

#[test]
fn options_win_over_the_environment_and_the_rest_stays() {
    let project = project(&["shop"]);
    let output = in_folder(project.path())
        .args(["--dev", "--out", "mine.jsonl", "--speedups", "0.1,1"])
        .envs([("ANDWEORC_SPEEDUPS", "0.9"), ("ANDWEORC_TARGETS", "stock")])
        .env("ANDWEORC_OUT", "other.jsonl")
        .output()
        .unwrap();
    let out = stdout(&output);
    assert!(out.contains("targets=stock points= speedups=0.1,1 "), "{out}{}", stderr(&output));
    assert!(project.path().join("mine.jsonl").exists());
    assert!(!project.path().join("other.jsonl").exists());
}

#[test]
fn the_projects_own_flags_stay_and_frame_pointers_are_added() {
    let project = project(&["shop"]);
    let at = project.path();
    fs::create_dir(at.join(".cargo")).unwrap();
    fs::write(at.join(".cargo/config.toml"), "[build]\nrustflags = [\"--cfg\", \"kept\"]\n")
        .unwrap();
    let wrapper = at.join("wrapper.sh");
    fs::write(&wrapper, "#!/bin/sh\necho \"$@\" >>\"$LOG\"\nexec \"$@\"\n").unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let output =
        in_folder(at).env("RUSTC_WRAPPER", &wrapper).env("LOG", at.join("log")).output().unwrap();
    assert!(stdout(&output).contains("kept=true"), "{}{}", stdout(&output), stderr(&output));
    let log = fs::read_to_string(at.join("log")).unwrap();
    let compiled = log.lines().find(|line| line.contains("shop.rs")).expect(&log);
    for flag in [
        "-Cforce-frame-pointers=yes",
        "--cfg tokio_unstable",
        "debuginfo=line-tables-only",
        "--cfg kept",
    ] {
        assert!(compiled.contains(flag), "{flag} in {compiled}");
    }
}

#[test]
fn stable_tokio_is_left_as_it_is_and_the_two_builds_do_not_meet() {
    let project = project(&["shop"]);
    let wrapper = project.path().join("wrapper.sh");
    fs::write(&wrapper, "#!/bin/sh\necho \"$@\" >>\"$LOG\"\nexec \"$@\"\n").unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let compiled = |name: &str, arguments: &[&str]| {
        let log = project.path().join(name);
        let output = in_folder(project.path())
            .args(arguments)
            .env("RUSTC_WRAPPER", &wrapper)
            .env("LOG", &log)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let log = fs::read_to_string(log).unwrap_or_default();
        log.lines().find(|line| line.contains("shop.rs")).map(str::to_owned)
    };
    let stable = compiled("stable", &["--stable"]).expect("it was built");
    assert!(stable.contains("-Cforce-frame-pointers=yes"), "{stable}");
    assert!(!stable.contains("tokio_unstable"), "{stable}");
    let unstable = compiled("unstable", &[]).expect("it was built anew");
    assert!(unstable.contains("--cfg tokio_unstable"), "{unstable}");
    assert_eq!(compiled("again", &["--stable"]), None, "it was there already");
}

#[test]
fn the_exit_code_is_that_of_the_program() {
    let project = project(&["shop"]);
    let output = run(project.path(), &["--", "fail"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(stdout(&output).contains("stock shop.rs:12"), "{}", stderr(&output));
}

#[test]
fn ctrl_c_is_left_to_the_program_and_sigterm_is_handed_on() {
    take_interrupts();
    let project = project(&["shop"]);
    let mut child = in_folder(project.path())
        .args(["--", "wait"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(child.id().cast_signed());
    let ready = project.path().join("ready");
    while !ready.exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before the program was ready");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(pid, Signal::SIGINT).unwrap();
    kill(pid, Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + Signal::SIGTERM as i32), "{}", stderr(&output));
    assert!(stdout(&output).contains("stock shop.rs:12"), "{}", stderr(&output));
}

#[test]
fn a_program_without_a_profile_is_told_why_even_beside_an_older_one() {
    let project = project(&["shop"]);
    for before in [false, true] {
        let output = run(project.path(), &["--", "silent"]);
        assert_eq!(output.status.code(), Some(2), "an older one: {before}");
        assert!(stderr(&output).contains("lacks `#[andweorc::main]`"), "{}", stderr(&output));
        assert!(stderr(&output).contains("plain threads that uses the classic API"));
        assert!(!stdout(&output).contains("stock shop.rs:12"), "{}", stdout(&output));
        run(project.path(), &[]);
    }
}

#[test]
fn one_of_several_binaries_must_be_chosen() {
    let project = project(&["shop", "tool"]);
    let output = run(project.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--bin NAME`: shop, tool"), "{}", stderr(&output));
    let output = run(project.path(), &["--bin", "shpo"]);
    assert!(
        stderr(&output).contains("no binary `shpo`; there is shop, tool"),
        "{}",
        stderr(&output)
    );
    let output = run(project.path(), &["--bin", "tool"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(project.path().join("target/andweorc/tool.jsonl").exists());
}

#[test]
fn a_failed_build_shows_what_the_compiler_says() {
    let project = project(&["shop"]);
    fs::write(project.path().join("src/bin/shop.rs"), "fn main() { nonsense() }").unwrap();
    let output = run(project.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("nonsense") && message.contains("the build failed"), "{message}");
}

#[test]
fn outside_a_project_there_is_nothing_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("no cargo project") && message.contains("Cargo.toml"), "{message}");
}

#[test]
fn malformed_settings_are_refused_before_the_build() {
    let project = project(&["shop"]);
    for option in [
        ["--duration", "20"],
        ["--speedups", "25"],
        ["--scope", "a b"],
        ["--max-slowdown", "50%"],
        ["--target", "stock"],
    ] {
        let output = run(project.path(), &option);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("such as"), "{}", stderr(&output));
        assert!(!project.path().join("target").exists());
    }
}

#[test]
fn malformed_settings_in_the_environment_are_refused_before_the_build() {
    let project = project(&["shop"]);
    let run = |vars: &[(&str, &str)]| {
        let mut command = in_folder(project.path());
        command.args(["--speedups", "0.5"]).envs(vars.iter().copied()).output().unwrap()
    };
    for (name, value, told) in [
        ("ANDWEORC_DURATION", "soon", "ANDWEORC_DURATION is `soon`, which is not a time"),
        ("ANDWEORC_POINT", "checkout", "ANDWEORC_POINT (did you mean ANDWEORC_POINTS?)"),
    ] {
        let output = run(&[(name, value)]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
        assert!(!project.path().join("target").exists());
    }
    let replaced = [("ANDWEORC_SPEEDUPS", "25"), ("ANDWEORC_ENABLED", "maybe")];
    let output = run(&replaced);
    assert!(output.status.success(), "options go first: {}", stderr(&output));
}

#[test]
fn options_of_cargo_are_handed_to_it() {
    let project = project(&["shop"]);
    let at = project.path();
    let said = |arguments: &[&str]| {
        let output = run(at, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        stdout(&output)
    };
    assert!(said(&["--dev", "--offline"]).contains("features=10 options=\n"));
    assert!(said(&["--dev", "--all-features"]).contains("features=11 "));
    assert!(said(&["--dev", "--no-default-features", "-F", "b"]).contains("features=01 "));
    let out = said(&["--profile", "quick", "--max-slowdown", "1.5", "--targets", "stock"]);
    assert!(out.contains("slowdown=1.5\n"), "{out}");
    assert!(out.contains("options=ANDWEORC_TARGETS ANDWEORC_MAX_SLOWDOWN\n"), "{out}");
    assert!(at.join("target/andweorc/build/quick/shop").exists());
    assert!(said(&["--dev", "--locked", "--target-dir", "other"]).contains("stock shop.rs:12"));
    assert!(at.join("other/andweorc/shop.jsonl").exists());
    fs::remove_file(at.join("Cargo.lock")).unwrap();
    let output = run(at, &["--dev", "--locked"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("--locked"), "{}", stderr(&output));
}

#[test]
fn a_program_for_a_triple_is_found_where_cargo_puts_it() {
    let project = project(&["shop"]);
    let rustc = std::process::Command::new("rustc").arg("-vV").output().unwrap();
    let about = stdout(&rustc);
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = run(project.path(), &["--dev", "--target", host]);
    assert!(stdout(&output).contains("stock shop.rs:12"), "{}", stderr(&output));
    assert!(project.path().join(format!("target/andweorc/build/{host}/debug/shop")).exists());
}

#[test]
fn a_project_elsewhere_is_named_by_its_manifest() {
    let project = project(&["shop"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let manifest = project.path().join("Cargo.toml");
    let output = run(elsewhere.path(), &["--dev", "--manifest-path", manifest.to_str().unwrap()]);
    assert!(stdout(&output).contains("stock shop.rs:12"), "{}", stderr(&output));
    assert!(project.path().join("target/andweorc/shop.jsonl").exists());
    let output = run(elsewhere.path(), &["--manifest-path", "nowhere/Cargo.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a `Cargo.toml` that is there"), "{}", stderr(&output));
}

#[test]
fn output_path_that_is_a_folder_is_rejected_before_the_build() {
    let project = project(&["shop"]);
    let at = project.path();
    fs::create_dir(at.join("folder")).unwrap();
    let output = run(at, &["--out", "folder"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("folder can't be written: it is a folder"));
    assert!(!at.join("target").exists());
}
