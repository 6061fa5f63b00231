//! `run --save-baseline` and `run --compare`, on a small git project whose program writes a
//! ready-made profile.

use crate::common::{command, stderr, stdout};
use crate::made::{AFTER, BEFORE, Service, profile};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Writes the profile of its version, another seed a run; `fail` makes it fail, `wait` wait, and
/// `serve` listen and wait.
const PROGRAM: &str = r#"
fn main() {
    let out = std::env::var("ANDWEORC_OUT").unwrap();
    let run = out.bytes().filter(u8::is_ascii_digit).last().unwrap_or(b'0') % 3;
    let all = [include_str!("0.jsonl"), include_str!("1.jsonl"), include_str!("2.jsonl")];
    let serves = std::env::args().any(|argument| argument == "serve");
    let _listener = serves.then(|| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    if serves {
        // The load is to be there before its end.
        std::thread::sleep(std::time::Duration::from_millis(1500));
    }
    std::fs::write(&out, all[usize::from(run)]).unwrap();
    println!("ran in {}", std::env::current_dir().unwrap().display());
    if std::env::args().any(|argument| argument == "fail") {
        std::process::exit(7);
    }
    if serves || std::env::args().any(|argument| argument == "wait") {
        std::fs::write("ready", "").unwrap();
        std::thread::sleep(std::time::Duration::from_secs(60));
    }
}
"#;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").current_dir(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", stderr(&output));
    stdout(&output)
}

fn write(at: &Path, service: &Service, seed: u64) {
    for i in 0..3 {
        fs::write(at.join(format!("src/{i}.jsonl")), profile(service, seed + i)).unwrap();
    }
}

/// A repository with the two versions as commits, the second checked out.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let shop = "[package]\nname = \"shop\"\nedition = \"2024\"\n[workspace]\n";
    commit(folder.path(), "", shop, PROGRAM);
    folder
}

/// Makes a repository of the two versions; `package` is the folder in it of the program's package.
fn commit(repository: &Path, package: &str, manifest: &str, program: &str) {
    let at = &repository.join(package);
    fs::create_dir_all(at.join("src")).unwrap();
    fs::write(at.join("src/main.rs"), program).unwrap();
    fs::write(repository.join(".gitignore"), "target\n/vendor\n").unwrap();
    fs::write(at.join("Cargo.toml"), manifest).unwrap();
    git(repository, &["init", "-q"]);
    git(repository, &["config", "user.name", "t"]);
    git(repository, &["config", "user.email", "t@localhost"]);
    for (service, seed) in [(&BEFORE, 1), (&AFTER, 101)] {
        write(at, service, seed);
        git(repository, &["add", "."]);
        git(repository, &["commit", "-q", "-m", "x"]);
    }
}

/// Makes a library, and has it depend on others beside it by their paths.
fn library(at: &Path, dependencies: &[&str]) {
    fs::create_dir_all(at.join("src")).unwrap();
    let name = at.file_name().unwrap().to_str().unwrap();
    let mut manifest =
        format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n[dependencies]\n");
    for name in dependencies {
        manifest += &format!("{name} = {{ path = \"../{name}\" }}\n");
    }
    fs::write(at.join("Cargo.toml"), manifest).unwrap();
    let calls: String = dependencies.iter().map(|name| format!("{name}::call();")).collect();
    fs::write(at.join("src/lib.rs"), format!("pub fn call() {{ {calls} }}\n")).unwrap();
}

/// The program that needs the library `stock`.
fn with_stock() -> String {
    format!("{PROGRAM}\nconst _: fn() = stock::call;\n")
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command_in(folder, arguments).output().unwrap()
}

fn command_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = command();
    for name in ["CARGO_TARGET_DIR", "RUSTFLAGS", "RUSTC_WRAPPER"] {
        command.env_remove(name);
    }
    command.current_dir(folder).arg("run").args(arguments);
    command
}

#[test]
fn two_revisions_run_in_turns_and_are_compared() {
    let project = project();
    let at = project.path();
    let output = run(at, &["--compare", "HEAD~1", "--dev"]);
    let (out, err) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{err}");
    let turns: Vec<&str> = err.lines().filter(|line| line.starts_with("run ")).collect();
    let expected = [
        "run 1 of 3 of HEAD~1",
        "run 1 of 3 of the checkout",
        "run 2 of 3 of HEAD~1",
        "run 2 of 3 of the checkout",
        "run 3 of 3 of HEAD~1",
        "run 3 of 3 of the checkout",
    ];
    assert_eq!(turns, expected);
    assert_eq!(out.matches("ran in ").count(), 6);
    assert!(out.contains("A: HEAD~1 (shop, 3 runs), B: the checkout (shop, 3 runs)"), "{out}");
    assert!(out.contains("regressed  checkout throughput"), "{out}");
    // The user's checkout and git's list are as they were; the profiles stay.
    assert_eq!(git(at, &["status", "--porcelain", "--untracked-files=all"]), "?? Cargo.lock\n");
    assert_eq!(git(at, &["worktree", "list"]).lines().count(), 1);
    let again = command()
        .current_dir(at)
        .args(["diff", "target/andweorc/compare/a", "target/andweorc/compare/b"])
        .output()
        .unwrap();
    assert!(stdout(&again).contains("regressed  checkout throughput"), "{}", stderr(&again));
}

#[test]
fn ci_builds_runs_in_turns_and_judges() {
    let project = project();
    let at = project.path();
    let ci = |arguments: &[&str]| {
        let mut command = command();
        for name in ["CARGO_TARGET_DIR", "RUSTFLAGS", "RUSTC_WRAPPER"] {
            command.env_remove(name);
        }
        command.current_dir(at).arg("ci").args(arguments).output().unwrap()
    };
    let output = ci(&["--compare", "HEAD~1", "--dev"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stderr(&output);
    assert_eq!(said.matches("of 4 of the checkout").count(), 4, "as many as can pass: {said}");
    assert!(!said.contains("can't pass"), "{said}");
    assert!(stdout(&output).contains("A regression."), "{}", stdout(&output));
    let output = ci(&["--compare", "HEAD~1", "--dev", "--runs", "1"]);
    assert!(stderr(&output).starts_with("with 1 and 1 runs of A and B"), "{}", stderr(&output));
    let output = ci(&["--compare", "HEAD~1", "--dev", "--json", "nowhere/x.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("error: nowhere/x.json can't be written"));
}

#[test]
fn both_revisions_are_put_under_load() {
    let project = project();
    let at = project.path();
    let compare = |load: &str| {
        run(at, &["--compare", "HEAD~1", "--dev", "--runs", "2", "--load", load, "--", "serve"])
    };
    let output = compare("echo x >>loads; sleep 60");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(at.join("loads")).unwrap(), "x\nx\nx\nx\n");
    assert_eq!(stderr(&output).matches("; load: echo x >>loads").count(), 4, "{}", stderr(&output));
    assert!(stdout(&output).contains("regressed  checkout throughput"), "{}", stdout(&output));

    let output = compare("exit 3");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("HEAD~1: the load command `exit 3` failed (exit code 3)"), "{said}");
    assert_eq!(git(at, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn uncommitted_changes_belong_to_the_checkout() {
    let project = project();
    let at = project.path();
    write(at, &BEFORE, 201);
    let output = run(at, &["--compare", "HEAD", "--dev", "--runs", "2"]);
    assert!(stdout(&output).contains("improved  checkout throughput"), "{}", stderr(&output));
    let output = run(at, &["-q", "--compare", "HEAD..HEAD~1", "--dev", "--runs", "1"]);
    assert!(stdout(&output).contains("A: HEAD (shop, 1 run), B: HEAD~1 (shop, 1 run)"));
    assert_eq!(stderr(&output), "");
}

#[test]
fn comparison_error_is_reported_before_the_build() {
    let project = project();
    let at = project.path();
    let say = |arguments: &[&str]| {
        let output = run(at, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        stderr(&output)
    };
    assert!(say(&["--compare", "nonsense"]).contains("git knows no commit `nonsense`"));
    assert!(say(&["--compare", "HEAD..nonsense"]).contains("git knows no commit `nonsense`"));
    assert!(say(&["--compare", "HEAD", "--out", "x"]).contains("cannot be used with"));
    assert!(say(&["--runs", "2"]).contains("--compare <REV>"));
    assert!(!at.join("target").exists());
    let failed = say(&["--compare", "HEAD", "--dev", "--", "fail"]);
    assert!(failed.contains("HEAD failed (exit code 7)"), "{failed}");
}

#[test]
fn verbose_names_the_commands_and_quiet_says_nothing() {
    let project = project();
    let output = run(project.path(), &["-v", "--dev"]);
    let verbose = stderr(&output);
    assert!(verbose.contains("starts ") && verbose.contains("\"build\""), "{verbose}");
    assert!(verbose.contains("ANDWEORC_ENABLED=\"1\""), "{verbose}");
    assert_eq!(stderr(&run(project.path(), &["-q", "--dev"])), "");
    let output = run(project.path(), &["-q", "-v"]);
    assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
}

#[test]
fn sigterm_ends_the_turns() {
    let project = project();
    let at = project.path();
    let mut child = command_in(at, &["--compare", "HEAD~1", "--dev", "--", "wait"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !at.join("ready").exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before the program was ready");
        thread::sleep(Duration::from_millis(20));
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("before both versions had run once"), "{}", stderr(&output));
}

#[test]
fn a_lock_file_that_is_not_committed_holds_for_both() {
    let project = project();
    let at = project.path();
    // Cargo takes any version of the package's own entry, but not a lock file that it doesn't know.
    fs::write(at.join("Cargo.lock"), "version = 99\n").unwrap();
    let output = run(at, &["--compare", "HEAD~1", "--dev"]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("HEAD~1: ") && message.contains("compare/"), "{message}");
}

#[test]
fn a_saved_baseline_is_what_the_next_run_is_compared_with() {
    let project = project();
    let at = project.path();
    let output = run(at, &["--dev", "--save-baseline", "main"]);
    assert!(stderr(&output).contains("saved as the baseline `main`"), "{}", stderr(&output));
    let diff = || command().current_dir(at).args(["diff", "--baseline", "main"]).output().unwrap();
    assert!(stderr(&diff()).contains("there is nothing to compare"), "{}", stderr(&diff()));
    write(at, &BEFORE, 301);
    assert!(run(at, &["--dev"]).status.success());
    // B is the newest profile.
    assert!(stdout(&diff()).contains("A: main (shop, 1 run), B: "), "{}", stderr(&diff()));
    let output = command().current_dir(at).arg("list").output().unwrap();
    assert!(stdout(&output).contains("Baselines in "), "{}", stdout(&output));
}

#[test]
fn a_folder_that_can_not_be_written_is_named() {
    let project = project();
    let at = project.path();
    fs::create_dir_all(at.join("target/andweorc")).unwrap();
    // A file where the folder should be: what even root can't write into.
    fs::write(at.join("target/andweorc/baselines"), "").unwrap();
    let output = run(at, &["--dev", "--save-baseline", "main"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("main.jsonl can't be written"), "{}", stderr(&output));
    assert!(!at.join("target/andweorc/build").exists(), "it is said before the build");
    fs::remove_dir_all(at.join("target")).unwrap();
    fs::write(at.join("file"), "").unwrap();
    let output = run(at, &["--dev", "--out", "file/run.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("file/run.jsonl can't be written"), "{}", stderr(&output));
    assert!(!at.join("target").exists(), "it is said before the build");
}

#[test]
fn path_dependencies_outside_of_the_repository_are_the_same_for_both() {
    let folder = tempfile::tempdir().unwrap();
    let (shop, stock) = (folder.path().join("code/shop"), folder.path().join("code/stock"));
    let manifest = "[package]\nname = \"shop\"\nedition = \"2024\"\n[workspace]\n[dependencies]\nstock = { path = \"../stock\" }\n";
    commit(&shop, "", manifest, &with_stock());
    library(&stock, &["units"]);
    library(&folder.path().join("code/units"), &[]);
    let output = run(&shop, &["--compare", "HEAD~1", "--dev", "--runs", "1"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let stock = stock.canonicalize().unwrap();
    assert!(said.contains(&format!("HEAD~1 is built with {} as it is", stock.display())), "{said}");
    assert!(stock.join("src/lib.rs").exists(), "the links are removed, not what they lead to");
    let left = shop.join("target/andweorc/compare").read_dir().unwrap();
    let left: BTreeSet<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a", "b", "build"].map(OsString::from).into());

    fs::remove_dir_all(&stock).unwrap();
    git(&shop, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let output = run(&shop, &["--compare", "HEAD~1..HEAD", "--dev"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("failed to read"), "cargo says it: {}", stderr(&output));
}

#[test]
fn path_dependencies_inside_the_repository_are_those_of_the_revision() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(
        at.join("Cargo.toml"),
        "[workspace]\nresolver = \"3\"\nmembers = [\"services/shop\", \"services/stock\"]\n",
    )
    .unwrap();
    library(&at.join("services/stock"), &[]);
    let manifest = "[package]\nname = \"shop\"\nedition = \"2024\"\n[dependencies]\nstock.path = \"../stock\"\n";
    commit(at, "services/shop", manifest, &with_stock());
    // The checkout's own no longer has what the revision calls.
    fs::write(at.join("services/stock/src/lib.rs"), "pub fn call_other() {}\n").unwrap();
    fs::write(at.join("services/shop/src/main.rs"), with_stock().replace("call;", "call_other;"))
        .unwrap();
    let output = run(&at.join("services/shop"), &["--compare", "HEAD~1", "--dev", "--runs", "1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!stderr(&output).contains("as it is"), "{}", stderr(&output));
}

#[test]
fn a_workspace_around_the_repository_is_seen_by_the_revision() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(
        at.join("Cargo.toml"),
        "[workspace]\nresolver = \"3\"\nmembers = [\"shop\", \"stock\"]\n[workspace.dependencies]\nstock.path = \"stock\"\n",
    )
    .unwrap();
    library(&at.join("stock"), &[]);
    let manifest =
        "[package]\nname = \"shop\"\nedition = \"2024\"\n[dependencies]\nstock.workspace = true\n";
    commit(&at.join("shop"), "", manifest, &with_stock());
    let output = run(&at.join("shop"), &["--compare", "HEAD~1", "--dev", "--runs", "1"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_dependency_that_is_not_committed_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    library(&at.join("vendor/stock"), &[]);
    let manifest = "[package]\nname = \"shop\"\nedition = \"2024\"\n[workspace]\nexclude = [\"vendor\"]\n[dependencies]\nstock.path = \"vendor/stock\"\n";
    commit(at, "", manifest, &with_stock());
    let output = run(at, &["--compare", "HEAD~1", "--dev"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("error: HEAD~1: "), "{said}");
    assert!(said.contains("vendor/stock, which git has not in this revision"), "{said}");
    assert!(said.contains("cargo andweorc diff A B"), "{said}");
}

#[test]
fn outputs_of_ci_that_can_not_be_written_are_told_before_the_build() {
    let project = project();
    let at = project.path();
    fs::create_dir(at.join("folder")).unwrap();
    for (option, path, why) in [
        ("--html", "nowhere/x.html", "No such file or directory"),
        ("--markdown", "folder", "it is a folder"),
        ("--json", "Cargo.toml/x.json", "Cargo.toml is a file"),
    ] {
        let arguments = ["ci", "--compare", "HEAD~1", "--dev", option, path];
        let output = command().current_dir(at).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(said.starts_with(&format!("error: {path} can't be written: {why}")), "{said}");
    }
    assert!(!at.join("target").exists(), "it is said before the build");
}
