//! Rules of the sources that neither the compiler nor clippy checks.

use std::fs;
use std::path::{Path, PathBuf};

/// The sources of the library crates.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = [
        "",
        "andweorc-core",
        "andweorc-tokio",
        "andweorc-tracing",
        "andweorc-threads",
        "andweorc-clock",
    ];
    let mut folders: Vec<PathBuf> = crates.map(|name| root.join(name).join("src")).into();
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                sources.push((path, text));
            }
        }
    }
    assert!(sources.len() > 100, "{sources:?}");
    sources
}

/// The names of the thread-locals that are declared by `thread_local!` itself.
fn thread_locals(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let word = line.trim_start();
        if word.starts_with("thread_local! {") {
            inside = true;
        } else if line.starts_with('}') {
            inside = false;
        } else if inside && let Some((_, declared)) = word.split_once("static ") {
            names.extend(declared.split(':').next());
        }
    }
    names
}

/// Uses of a thread-local that panic once it is destroyed.
fn uses_without_asking(text: &str, name: &str) -> Vec<String> {
    let used = format!("{name}.");
    let uses = text.match_indices(&used).filter_map(|(at, found)| {
        let before = text[..at].chars().next_back();
        let method: String = text[at + found.len()..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let is_other = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        (!is_other && method != "try_with").then_some(method)
    });
    uses.collect()
}

#[test]
fn thread_locals_with_destructors_are_tried() {
    let mut names = 0;
    for (path, text) in sources() {
        // Tests end in order.
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        if path.ends_with("tests.rs") {
            continue;
        }
        for name in thread_locals(text) {
            names += 1;
            let uses = uses_without_asking(text, name);
            assert!(
                uses.is_empty(),
                "{path:?}: {name}.{uses:?} panics in a destructor of another thread-local: use `try_with`, or declare it \
                 with `plain_thread_local!`"
            );
        }
    }
    assert!(names >= 5, "only {names} thread-locals were found");
}

#[test]
fn the_rule_finds_what_it_looks_for() {
    let text = "thread_local! {\n    static KEPT: Cell<u8> = const { Cell::new(0) };\n}\nfn f() {\n    KEPT.try_with(g);\n    \
                KEPT.with(g);\n    KEPT.set(1);\n    THEY_KEPT.with(g);\n}\n";
    assert_eq!(thread_locals(text), ["KEPT"]);
    assert_eq!(uses_without_asking(text, "KEPT"), ["with", "set"]);
}

#[test]
fn no_handle_of_the_calling_thread_is_asked_for() {
    // `thread::current()` panics in the last destructors of a thread.
    let allowed = ["tests.rs", "child.rs"];
    for (path, text) in sources() {
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let is_test = allowed.iter().any(|name| path.ends_with(name));
        assert!(is_test || !text.contains("thread::current()"), "{path:?} calls thread::current()");
    }
}
