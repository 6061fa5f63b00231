//! Which code is the user's own, so that samples are charged to it.

use crate::plain;
#[cfg(feature = "patterns")]
use glob::{MatchOptions, Pattern};
#[cfg(feature = "patterns")]
use regex_lite::Regex;
use std::str::FromStr;
use std::{error, fmt};

/// Which functions and lines can be targets: time in all else is charged to what called it.
///
/// By default the workspace's own crates. As a text it is a list, separated by commas:
///
/// | entry | what is in scope |
/// |---|---|
/// | `shop` | the crate of that name |
/// | `src/stock`, `**/db/*.rs` | files, by a glob of the path or of its end; a folder means all below it |
/// | `re:^shop::(cart\|stock)::` | functions whose name, or files whose path, the regex matches anywhere |
/// | `!shop::..`, `!src/gen`, `!re:..` | out of scope again, whatever else says |
///
/// Only excludes: the workspace's own crates without these. A comma inside brackets separates
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    text: String,
    includes: Vec<Entry>,
    excludes: Vec<Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    Crate(String),
    /// The path itself or its end, and all below it.
    #[cfg(feature = "patterns")]
    Path(Vec<Pattern>),
    #[cfg(feature = "patterns")]
    Regex(Regex),
}

impl PartialEq for Scope {
    fn eq(&self, other: &Scope) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.text.is_empty() { "the workspace's own crates" } else { &self.text })
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    /// # Errors
    ///
    /// When an entry is neither the name of a crate, a glob nor a regex.
    fn from_str(text: &str) -> Result<Scope, ScopeError> {
        let mut scope = Scope { text: text.trim().to_owned(), ..Scope::default() };
        for (i, written) in entries(text).into_iter().enumerate() {
            let written = written.trim();
            if written.is_empty() {
                continue;
            }
            let (list, entry) = match written.strip_prefix('!') {
                Some(entry) => (&mut scope.excludes, entry.trim_start()),
                None => (&mut scope.includes, written),
            };
            let error = |why| ScopeError { number: i + 1, entry: written.to_owned(), why };
            list.push(Entry::new(entry).map_err(error)?);
        }
        if scope.includes.is_empty() && scope.excludes.is_empty() {
            scope.text.clear();
        }
        Ok(scope)
    }
}

impl Scope {
    /// Whether it is the workspace's own crates, or these but for what is excluded.
    pub fn is_default(&self) -> bool {
        self.includes.is_empty()
    }

    /// Whether a frame is in scope. Of the file and the name, what is not known is empty; `home` is
    /// the crate of `main`, for when there is no file to tell whose a function is.
    pub fn has(&self, file: &str, function: &str, home: Option<&str>) -> bool {
        let any = |entries: &[Entry]| entries.iter().any(|entry| entry.matches(file, function));
        let included =
            if self.is_default() { is_own(file, function, home) } else { any(&self.includes) };
        included && !any(&self.excludes)
    }
}

impl Entry {
    fn new(entry: &str) -> Result<Entry, String> {
        if let Some(regex) = entry.strip_prefix("re:") {
            return Entry::regex(regex);
        }
        if entry.contains(['/', '*', '?', '[']) || entry.ends_with(".rs") {
            return Entry::path(entry.strip_prefix("./").unwrap_or(entry).trim_end_matches('/'));
        }
        let name = entry.replace('-', "_");
        if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return Ok(Entry::Crate(name));
        }
        Err("it is neither the name of a crate, such as `shop`, nor a glob of paths, such as `src/stock/**`, nor a regex, such as \
             `re:^shop::stock::`"
            .to_owned())
    }

    #[cfg(feature = "patterns")]
    fn regex(regex: &str) -> Result<Entry, String> {
        Regex::new(regex)
            .map(Entry::Regex)
            .map_err(|error| format!("its regex can't be read: {error}"))
    }

    #[cfg(feature = "patterns")]
    fn path(path: &str) -> Result<Entry, String> {
        let anchored = if path.starts_with('/') { path.to_owned() } else { format!("**/{path}") };
        let pattern = |glob: &str| {
            Pattern::new(glob).map_err(|error| {
                // `**/` was not written by the user.
                let before = error.pos + path.len() - anchored.len().min(error.pos + path.len());
                format!("its glob can't be read from character {} on: {}", before + 1, error.msg)
            })
        };
        Ok(Entry::Path(vec![pattern(&anchored)?, pattern(&format!("{anchored}/**"))?]))
    }

    #[cfg(not(feature = "patterns"))]
    fn regex(_: &str) -> Result<Entry, String> {
        Err("regexes need andweorc's feature `sampling`".to_owned())
    }

    #[cfg(not(feature = "patterns"))]
    fn path(_: &str) -> Result<Entry, String> {
        Err("globs need andweorc's feature `sampling`".to_owned())
    }

    fn matches(&self, file: &str, function: &str) -> bool {
        match self {
            Entry::Crate(name) => match crate_of(function) {
                Some(it) => it == name,
                None => package_folder(file).is_some_and(|it| it.replace('-', "_") == *name),
            },
            #[cfg(feature = "patterns")]
            Entry::Path(patterns) => {
                let options =
                    MatchOptions { require_literal_separator: true, ..MatchOptions::default() };
                patterns.iter().any(|pattern| pattern.matches_with(file, options))
            }
            #[cfg(feature = "patterns")]
            Entry::Regex(regex) => regex.is_match(function) || regex.is_match(file),
        }
    }
}

/// The entries of a list: commas outside of brackets separate.
fn entries(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|c| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = (depth - 1).max(0),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

/// Whether code is that of the workspace: not std's, not a dependency's, not andweorc's.
fn is_own(file: &str, function: &str, home: Option<&str>) -> bool {
    const ANDWEORC: [&str; 8] = [
        "andweorc_clock",
        "andweorc_core",
        "andweorc_macros",
        "andweorc_profile",
        "andweorc_sampling",
        "andweorc_threads",
        "andweorc_tokio",
        "andweorc_tracing",
    ];
    let package = crate_of(function);
    if package.is_some_and(|it| is_std(it) || it == "andweorc" || ANDWEORC.contains(&it)) {
        return false;
    }
    if file.is_empty() {
        return home.is_some() && package == home;
    }
    let is_andweorc =
        || package_folder(file).is_some_and(|it| ANDWEORC.contains(&&*it.replace('-', "_")));
    !is_foreign(file) && !is_andweorc()
}

/// Whether code in this file is the workspace's own, and not that of std, of a dependency or of
/// andweorc: by where cargo and rustup keep them.
pub fn is_own_file(file: &str) -> bool {
    is_own(file, "", None)
}

/// Whether a file is that of std or of a dependency, by where cargo and rustup keep them.
fn is_foreign(file: &str) -> bool {
    const FOREIGN: [&str; 6] = [
        "/rustc/",
        "/rust/deps/",
        "/.rustup/",
        "/lib/rustlib/",
        "/registry/src/",
        "/git/checkouts/",
    ];
    let vendored = || {
        let inside = file.split_once("/vendor/").map(|(_, inside)| inside);
        inside.is_some_and(|inside| inside.split('/').nth(1) == Some("src"))
    };
    file.starts_with("library/") || FOREIGN.iter().any(|part| file.contains(part)) || vendored()
}

/// The crate that a name begins with; `None` when it has no path.
#[doc(hidden)]
pub fn crate_of(name: &str) -> Option<&str> {
    name.split_once("::").map(|(first, _)| first)
}

/// Whether a crate comes with the compiler.
#[doc(hidden)]
pub fn is_std(name: &str) -> bool {
    matches!(name, "std" | "core" | "alloc" | "proc_macro" | "test" | "__rustc")
}

/// The folder of the package that a file is in: the one before `src`.
fn package_folder(file: &str) -> Option<&str> {
    let (folder, _) = file.rsplit_once("/src/")?;
    folder.rsplit('/').next()
}

/// An entry of a scope that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeError {
    number: usize,
    entry: String,
    why: String,
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (entry, why) = (plain::name(&self.entry), plain::sentence(&self.why));
        write!(f, "entry {} of the scope is `{entry}`: {why}", self.number)
    }
}

impl error::Error for ScopeError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        text.parse().unwrap()
    }

    const STOCK: &str = "/home/me/shop/src/stock/mod.rs";
    const TOKIO: &str = "/home/me/.cargo/registry/src/index.crates.io-1/tokio-1.0.0/src/task.rs";

    #[test]
    fn by_default_it_is_the_workspaces_own_code() {
        let own = |file, function| Scope::default().has(file, function, None);
        assert!(own(STOCK, "shop::stock::update"));
        assert!(own("src/main.rs", "main"));
        assert!(own("/home/me/andweorc/examples/checkout/main.rs", "checkout::main"));
        for (file, function) in [
            (TOKIO, "tokio::task::spawn"),
            ("/rustc/abc/library/core/src/hint.rs", "core::hint::black_box"),
            ("/rust/deps/hashbrown-0.15.0/src/raw.rs", "hashbrown::raw::find"),
            ("/home/me/.cargo/git/checkouts/x-1/ab/src/lib.rs", "x::f"),
            ("/home/me/shop/vendor/tokio/src/task.rs", "tokio::task::spawn"),
            ("/home/me/andweorc/andweorc-core/src/pause.rs", "pause"),
            ("/home/me/andweorc/src/lib.rs", "andweorc::init"),
            ("", "tokio::task::spawn"),
        ] {
            assert!(!own(file, function), "{file} {function}");
        }
        assert!(own("/home/me/shop/src/vendor/mod.rs", "shop::vendor::pay"));
    }

    #[test]
    fn without_files_it_is_the_crate_of_main() {
        let own = |function, home| Scope::default().has("", function, home);
        assert!(own("shop::stock::update", Some("shop")));
        assert!(!own("tokio::task::spawn", Some("shop")));
        assert!(!own("main", None));
        assert!(scope("tokio").has("", "tokio::task::spawn", Some("shop")));
    }

    #[test]
    fn crates_globs_and_regexes_are_told_apart() {
        let has = |text: &str| scope(text).has(STOCK, "shop::stock::update", None);
        for text in [
            "shop",
            "bank, shop",
            "src/stock",
            "./src/stock/",
            "src/*/mod.rs",
            "**/mod.rs",
            "mod.rs",
            "/home/me/shop",
            "/home/**/stock/*.rs",
            "re:^shop::(cart|stock)::",
            "re:st[o,a]ck/mod",
            "re:o{2,3},re:update$",
            "!re:total$",
            "!cart",
            "shop,!src/cart",
        ] {
            assert!(has(text), "{text}");
        }
        for text in [
            "bank",
            "sho",
            "src/cart",
            "stock/*.rs/x",
            "/shop",
            "src/*.rs",
            "re:^stock",
            "!shop",
            "shop,!src/stock",
            "src/stock,!re:update$",
            "re:.,!**/mod.rs",
        ] {
            assert!(!has(text), "{text}");
        }
        assert!(scope("tokio").has(TOKIO, "tokio::task::spawn", None), "a dependency by name");
        assert!(scope("my-bank").has("/x/my-bank/src/lib.rs", "pay", None), "dashes, and no path");
        assert_eq!(scope(" , "), Scope::default());
    }

    #[test]
    fn errors_say_what_is_wrong_and_where() {
        for (text, parts) in [
            ("shop,re:(", ["entry 2", "`re:(`", "regex"]),
            ("src/a***", ["entry 1", "`src/a***`", "character 8"]),
            ("/src/[a", ["entry 1", "`/src/[a`", "character 6"]),
            ("shop,bank,a b", ["entry 3", "`a b`", "name of a crate"]),
            ("!", ["entry 1", "`!`", "name of a crate"]),
        ] {
            let error = text.parse::<Scope>().unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }
}
