//! The pages of the README and the book that have Rust in them, each as the documentation of a
//! module, so that `cargo test` compiles their code.
//!
//! A block that cannot be compiled here, because it needs a heavy crate, is marked `ignore` on its
//! page. All others are `no_run`: they are servers, or need a load.

/// Declares a module for each page, and the list of the pages.
macro_rules! pages {
    ($($module:ident = $page:literal),* $(,)?) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("../../../", $page))]
            mod $module {}
        )*

        #[cfg(test)]
        const PAGES: &[&str] = &[$($page),*];
    };
}

pages! {
    readme = "README.md",
    actix = "docs/book/src/how-to/actix.md",
    add = "docs/book/src/how-to/add.md",
    all_tasks = "docs/book/src/how-to/all-tasks.md",
    allocations = "docs/book/src/how-to/allocations.md",
    axum = "docs/book/src/how-to/axum.md",
    events = "docs/book/src/how-to/events.md",
    hyper = "docs/book/src/how-to/hyper.md",
    load = "docs/book/src/how-to/load.md",
    long_polls = "docs/book/src/how-to/long-polls.md",
    other_tools = "docs/book/src/how-to/other-tools.md",
    remote = "docs/book/src/how-to/remote.md",
    settings = "docs/book/src/reference/settings.md",
    threads = "docs/book/src/how-to/threads.md",
    tonic = "docs/book/src/how-to/tonic.md",
    tutorial = "docs/book/src/tutorial.md",
    waits = "docs/book/src/how-to/waits.md",
}

#[cfg(test)]
mod tests {
    use super::PAGES;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// The pages that a reader sees, relative to the repository.
    fn pages() -> Vec<(String, String)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut folders: Vec<PathBuf> = vec![root.join("docs/book/src")];
        let mut files = vec![root.join("README.md")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|it| it == "md") {
                    files.push(path);
                }
            }
        }
        let read = |path: PathBuf| {
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        };
        files.into_iter().map(read).collect()
    }

    #[test]
    fn every_page_with_rust_is_compiled() {
        let missing: Vec<_> = pages()
            .into_iter()
            .filter(|(name, text)| text.contains("```rust") && !PAGES.contains(&&**name))
            .map(|(name, _)| name)
            .collect();
        assert!(missing.is_empty(), "not in the list of docs/check/src/lib.rs: {missing:?}");
    }

    #[test]
    fn rust_is_either_compiled_or_marked_as_not() {
        for (name, text) in pages() {
            for line in text.lines().filter(|line| line.starts_with("```rust")) {
                let marks = ["```rust,no_run", "```rust,ignore"];
                assert!(marks.contains(&line), "{name}: `{line}` is none of {marks:?}");
            }
        }
    }
}
