//! Programs that end before the time is up.

use crate::Project;
use crate::common::{stderr, stdout};

#[test]
fn a_short_lived_program_is_run_until_the_time_is_used_up_and_its_profiles_are_one() {
    let project = Project::new();
    let output = project.run(&["--duration", "10s", "--", "short", "lasted=2600000000"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("shop ends by itself after 2.6 s, and is run again"));
    // The last run has what is left.
    assert_eq!(project.read("times"), "10s \n2s 600ms 1\n2s 600ms 2\n2s 200ms 3\n");
    let profile = project.read("target/andweorc/shop.jsonl");
    assert_eq!(profile.matches(r#""record":"header""#).count(), 4, "{profile}");
    assert_eq!(profile.matches(r#""record":"end""#).count(), 4, "{profile}");
    let report = stdout(&output);
    assert_eq!(report.matches("  stock shop.rs:12").count(), 1, "{report}");
    assert!(
        report.contains("32 experiments and 36 baselines") && report.contains("4 runs"),
        "{report}"
    );
    assert!(!project.at().join("target/andweorc/shop.jsonl.part").exists());
}

#[test]
fn a_program_that_is_too_short_is_not_run_again() {
    let project = Project::new();
    let output = project.run(&["--duration", "10s", "--", "short", "lasted=300000000"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("ends by itself after 0.3 s, too soon for experiments"), "{said}");
    assert_eq!(project.read("times"), "10s \n");
}
