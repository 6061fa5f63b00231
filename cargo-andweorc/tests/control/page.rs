//! `cargo andweorc diff` and `ci` as a page.

use crate::common::{command, stderr, stdout};
use crate::made::before_and_after;
use std::fs;
use std::path::Path;
use std::process::Output;

fn at(folder: &Path, arguments: &[&str]) -> Output {
    command().current_dir(folder).args(arguments).output().unwrap()
}

#[test]
fn diff_is_a_page_without_a_script_or_anything_from_elsewhere() {
    let folder = before_and_after();
    let printed = at(folder.path(), &["diff", "--format", "html", "before", "after"]);
    assert!(printed.status.success(), "{}", stderr(&printed));
    let page = stdout(&printed);
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("script-src 'none'") && !page.contains("<script"), "{page}");
    assert!(!page.contains("://"), "it names another place: {page}");
    for said in [
        "<code>checkout throughput</code> went from",
        "<span class=\"chip state\">regressed</span>",
        "<span class=\"chip state\">gone</span>",
        "span legacy (src/legacy.rs:7)",
        "No request was recorded in A and in B, so that there is no wall time to compare",
    ] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    let written =
        at(folder.path(), &["diff", "--format", "html", "-o", "diff.html", "before", "after"]);
    assert_eq!((written.status.code(), stdout(&written)), (Some(0), String::new()));
    assert_eq!(fs::read_to_string(folder.path().join("diff.html")).unwrap(), page);
}

#[test]
fn a_comparison_is_never_written_over_a_profile() {
    let folder = before_and_after();
    let profile =
        fs::read_dir(folder.path().join("after")).unwrap().next().unwrap().unwrap().path();
    let before = fs::read(&profile).unwrap();
    let name = profile.to_str().unwrap();
    for arguments in [["diff", "-o", name], ["ci", "--json", name]] {
        let output = at(folder.path(), &[&arguments[..], &["before", "after"]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("is the profile itself"), "{}", stderr(&output));
        assert_eq!(fs::read(&profile).unwrap(), before);
    }
}

#[test]
fn the_page_of_ci_begins_with_its_verdict() {
    let folder = before_and_after();
    let output = at(folder.path(), &["ci", "before", "after", "--html", "ci.html"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stdout(&output).ends_with("A regression.\n"), "the text is printed too");
    let page = fs::read_to_string(folder.path().join("ci.html")).unwrap();
    assert!(page.contains("<p class=\"lead\"><b>A regression.</b> "), "{page}");
}

#[test]
fn places_are_links_to_the_editor_where_the_source_is_at_hand() {
    let folder = before_and_after();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("Cargo.toml"), "").unwrap();
    fs::write(folder.path().join("src/legacy.rs"), "fn legacy() {}\n").unwrap();
    let page = |editor: &[&str]| {
        let arguments = [&["diff", "--format", "html", "before", "after"], editor].concat();
        stdout(&at(folder.path(), &arguments))
    };
    let file = fs::canonicalize(folder.path().join("src/legacy.rs")).unwrap();
    let shown =
        format!("<a href=\"vscode://file{}:7\">span legacy (src/legacy.rs:7)</a>", file.display());
    let usual = page(&[]);
    assert!(usual.contains(&shown), "{usual}");
    assert_eq!(usual.matches("<a href").count(), 1, "other files are not there");
    assert!(page(&["--editor", "zed"]).contains("<a href=\"zed://file/"));
    assert!(!page(&["--editor", "none"]).contains("<a href"));
    let refused = at(folder.path(), &["diff", "before", "after", "--editor", "emacs"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("a template with `{file}`"), "{}", stderr(&refused));
}
