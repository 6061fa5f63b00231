//! Whatever is no profile is refused without reading all of it: devices, pipes, and lines that no
//! record has.

use crate::common::{command, profile, stderr, stdout};
use crate::made::{BEFORE, profile as made};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The memory that the command may have, kB: a third of the file that it is given.
const MEMORY: &str = "350000";

/// A file of this size has a line that is too long.
const LARGE: u64 = 1 << 30;

/// A command that waits for this long waits for good.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs the command with little memory.
fn run(at: &Path, arguments: &[&str]) -> Output {
    let bounded = ["-c", r#"ulimit -v "$0" && exec "$@""#, MEMORY];
    let command = command();
    let mut shell = Command::new("sh");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.args(bounded).arg(command.get_program()).args(arguments).current_dir(at);
    let mut child =
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("{arguments:?} does not end");
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// A folder with a good profile, and what is none.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("good.jsonl"), made(&BEFORE, 1)).unwrap();
    mkfifo(&at.join("pipe"), Mode::from_bits_truncate(0o600)).unwrap();
    symlink("/dev/zero", at.join("zero")).unwrap();
    fs::create_dir(at.join("folder.jsonl")).unwrap();
    let large = |name: &str, begin: &str| {
        let mut file =
            OpenOptions::new().create_new(true).append(true).open(at.join(name)).unwrap();
        file.write_all(begin.as_bytes()).unwrap();
        // The rest is zeros, which take no place on the disk.
        file.set_len(LARGE).unwrap();
    };
    let header = format!("{}\n", profile().lines().next().unwrap());
    large("zeros.jsonl", "");
    large("first.jsonl", header.trim_end_matches("}\n"));
    large("note.jsonl", &(header + r#"{"record":"note","at_ns":1,"text":""#));
    folder
}

#[test]
fn endless_file_is_refused_by_every_command() {
    let folder = folder();
    for (name, why) in [
        ("/dev/zero", "is no file but a device, a pipe or a socket"),
        ("zero", "is no file but a device, a pipe or a socket"),
        ("pipe", "is no file but a device, a pipe or a socket"),
        ("note.jsonl", "is damaged in line 2: it is longer than 64 MiB"),
    ] {
        for arguments in [
            &["report", name][..],
            &["report", "--format", "html", "good.jsonl", name],
            &["view", name],
            &["diff", name, "good.jsonl"],
            &["diff", "good.jsonl", name],
            &["ci", "good.jsonl", name],
            &["merge", "all.jsonl", "good.jsonl", name],
        ] {
            let output = run(folder.path(), arguments);
            let message = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
            assert!(message.contains(name) && message.contains(why), "{arguments:?}: {message}");
        }
    }
}

#[test]
fn of_what_is_no_profile_no_more_than_a_line_is_read() {
    let folder = folder();
    for name in ["zeros.jsonl", "first.jsonl"] {
        let output = run(folder.path(), &["report", name]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("is not a profile"), "{}", stderr(&output));
    }
}

#[test]
fn a_folder_of_what_is_none_is_listed() {
    let folder = folder();
    let output = run(folder.path(), &["list", "."]);
    assert!(output.status.success(), "{}", stderr(&output));
    let list = stdout(&output);
    assert!(list.contains("longer than 64 MiB") && list.contains("(is not a profile"), "{list}");
    assert!(!list.contains("pipe") && !list.contains("folder"), "{list}");
}

#[test]
fn baselines_and_the_newest_profile_are_read_with_the_same_care() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let baselines = at.join("target/andweorc/baselines");
    fs::create_dir_all(&baselines).unwrap();
    fs::write(at.join("good.jsonl"), made(&BEFORE, 1)).unwrap();
    symlink("/dev/zero", baselines.join("main.jsonl")).unwrap();
    mkfifo(&baselines.join("pipe.jsonl"), Mode::from_bits_truncate(0o600)).unwrap();
    for arguments in [
        &["diff", "--baseline", "main", "good.jsonl"][..],
        &["diff", "--baseline", "pipe", "good.jsonl"],
        &["ci", "--baseline", "pipe", "good.jsonl"],
        &["diff", "main", "good.jsonl"],
        &["report", "pipe"],
    ] {
        let output = run(at, arguments);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains("is no file but a device"), "{arguments:?}: {message}");
    }
}

#[test]
fn a_folder_in_the_place_of_a_profile_is_told() {
    let folder = folder();
    for arguments in [&["report", "folder.jsonl"][..], &["merge", "all.jsonl", "folder.jsonl"]] {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains("the folder has no profile"), "{}", stderr(&output));
    }
}

#[test]
fn an_honest_profile_may_be_large() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let small = profile();
    let (header, rest) = small.split_once('\n').unwrap();
    let mut file = File::create(at.join("large.jsonl")).unwrap();
    writeln!(file, "{header}").unwrap();
    // Lines without anything, which a reader passes over: the file is larger than the memory.
    let blank = vec![b'\n'; 1 << 20];
    for _ in 0..400 {
        file.write_all(&blank).unwrap();
    }
    file.write_all(rest.as_bytes()).unwrap();
    let output = run(at, &["report", "large.jsonl"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("  stock shop.rs:12"), "{}", stdout(&output));
}
