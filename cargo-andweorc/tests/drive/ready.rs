//! When the load is started, and what is said when it never can be.

use crate::Project;
use crate::common::{stderr, stdout};
use std::net::TcpListener;

/// A load that fails unless the program is up, and lasts.
const LOAD: &str = "test -e up || exit 9; echo $$ >load; echo load is on; sleep 60";

#[test]
fn the_load_waits_for_a_line_a_port_or_any_port() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let given = format!("port={port}");
    let cases: [&[&str]; 3] = [
        &["--ready-line", "now serv", "--", "ends"],
        &["--ready-port", &port, "--", "ends", &given],
        &["--", "ends", "serve"],
    ];
    let project = Project::new();
    for case in cases {
        let arguments = [&["--load", LOAD][..], case].concat();
        let output = project.run(&arguments);
        let said = stderr(&output);
        assert!(output.status.success(), "{case:?}: {said}");
        assert!(said.contains("shop is ready after ") && said.contains("load is on"), "{said}");
        assert!(stdout(&output).contains("now serving\n"), "{}", stdout(&output));
        assert!(stdout(&output).contains("  stock shop.rs:12"), "{}", stdout(&output));
        assert!(!project.runs("load") && !project.runs("pid"), "{case:?}");
        std::fs::remove_file(project.at().join("up")).unwrap();
    }
}

#[test]
fn a_program_that_is_never_ready_is_stopped_and_told_what_was_waited_for() {
    let project = Project::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let cases: [(&[&str], &str); 3] = [
        (&["--ready-line", "never"], "no line of its output had `never`"),
        (&["--ready-port", &port], "did not accept"),
        (&[], "it listened on no TCP port"),
    ];
    for (case, told) in cases {
        let arguments =
            [&["--ready-timeout", "700ms", "--load", "touch loaded"][..], case, &["--", "silent"]]
                .concat();
        let output = project.run(&arguments);
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(
            said.contains("`shop` was not ready within 700ms") && said.contains(told),
            "{said}"
        );
        assert!(!project.runs("pid") && !project.at().join("loaded").exists());
    }
}

#[test]
fn a_port_of_another_program_is_refused() {
    let project = Project::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let output = project.run(&["--ready-port", &port, "--load", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("another program has it"), "{}", stderr(&output));
    assert!(!project.at().join("pid").exists(), "the program was not started");
}

#[test]
fn a_program_that_begins_no_profile_is_not_waited_for_for_ever() {
    let project = Project::new();
    let output = project.run(&["--ready-timeout", "1s", "--", "silent"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("wrote no profile to") && said.contains("within 1s"), "{said}");
    assert!(said.contains("lacks `#[andweorc::main]`"), "{said}");
    assert!(!project.runs("pid"));
}

#[test]
fn a_program_that_ends_at_once_is_told_with_its_exit_code() {
    let project = Project::new();
    let output = project.run(&["--load", "touch loaded", "--", "exit"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(stdout(&output).contains("can't find the configuration"));
    let said = stderr(&output);
    assert!(said.contains("`shop` ended (exit code 7) after"), "{said}");
    assert!(said.contains("before it was ready"), "{said}");
    let output = project.run(&["--", "exit"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(stderr(&output).contains("wrote no profile"), "{}", stderr(&output));
    assert!(stderr(&output).contains("and ended (exit code 7)"), "{}", stderr(&output));
    assert!(!project.at().join("loaded").exists());
}
