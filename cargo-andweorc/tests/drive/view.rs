//! The live view, on a terminal and elsewhere.

use crate::Project;
use crate::common::{stderr, stdout};
use nix::pty::{OpenptyResult, Winsize, openpty};
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn elsewhere_plain_lines_show_how_the_intervals_narrow() {
    let project = Project::new();
    let began = Instant::now();
    let output = project.run(&["--duration", "6s"]);
    let took = began.elapsed().as_secs() as usize;
    let said = stderr(&output);
    let lines: Vec<&str> = said.lines().filter_map(|it| it.strip_prefix("andweorc: ")).collect();
    assert_eq!(lines.first(), Some(&"profiling shop for 6s"), "{said}");
    let shown: Vec<&&str> = lines.iter().filter(|line| line.contains(" experiments")).collect();
    assert!((1..=took).contains(&shown.len()), "a line a second or so: {said}");
    let begins = |spent: u32| format!("{spent} s of 6 s, {} s left, ", 6 - spent);
    assert!((1..6).any(|spent| shown[0].starts_with(&begins(spent))), "{said}");
    assert!(said.contains("now: stock 50 % faster"), "{said}");
    let last = shown.last().unwrap();
    assert!(last.contains("checkout throughput, if stock were 50 % faster +"), "{last}");
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[test]
fn quiet_shows_results_only() {
    let project = Project::new();
    let output = project.run(&["--quiet", "--load", "sleep 60", "--", "serve"]);
    assert_eq!(stderr(&output), "");
    assert!(stdout(&output).contains("  stock shop.rs:12"));
}

#[test]
fn a_terminal_gets_a_table_that_is_gone_in_the_end() {
    let project = Project::new();
    let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let OpenptyResult { master, slave } = openpty(&size, None).unwrap();
    let reader = thread::spawn(move || {
        let (mut screen, mut part) = (Vec::new(), [0; 4096]);
        // At the end of the other side it is an error.
        let mut master = File::from(master);
        while let Ok(n @ 1..) = master.read(&mut part) {
            screen.extend_from_slice(&part[..n]);
        }
        String::from_utf8_lossy(&screen).into_owned()
    });
    let resized = slave.try_clone().unwrap();
    let mut child = project
        .command(&["--duration", "6s"])
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdout(Stdio::piped())
        .stderr(slave)
        .spawn()
        .unwrap();
    // Well after the first table, and before the end.
    while project.read("target/andweorc/shop.jsonl").lines().count() < 18 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended too soon");
        thread::sleep(Duration::from_millis(20));
    }
    let narrower = Command::new("stty").args(["cols", "40"]).stdin(resized).status().unwrap();
    assert!(narrower.success());
    let output = child.wait_with_output().unwrap();
    assert!(stdout(&output).contains("  stock shop.rs:12"), "{}", stdout(&output));
    let screen = reader.join().unwrap();
    for shown in
        ["s of 6 s", "now: stock 50 % faster", "if this were", "checkout throughput", "matters"]
    {
        assert!(screen.contains(shown), "{shown}: {screen}");
    }
    let (_, after) =
        screen.split_once("\u{1b}[J").expect("what was drawn for more columns is wiped");
    assert!(after.contains("if this were"), "{after:?}");
    let (_, after) = screen.rsplit_once("if this were").unwrap();
    assert!(after.contains("\u{1b}[2K") && after.contains("profile: "), "{after:?}");
}
