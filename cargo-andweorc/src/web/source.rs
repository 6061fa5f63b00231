//! Source lines, and links to them, where the files are at hand.
//!
//! A profile may come from elsewhere and name any file, and a page may be handed on. Therefore only
//! Rust files inside a cargo project are read: the one of the current folder, and those that the
//! profiles lie in.

use crate::web::Editor;
use andweorc_profile::plain;
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs};

/// Lines shown before and after the one that is meant.
const AROUND: usize = 3;
/// A longer file is not source.
const LARGEST: u64 = 4 << 20;
/// Longer lines are cut.
const WIDEST: usize = 160;

/// Some lines of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Snippet {
    /// Number of the first line, 1-based.
    first: usize,
    /// Number of the line that is meant.
    line: usize,
    /// The lines.
    lines: Vec<String>,
    /// The file was written after the run had begun, so that lines may have moved.
    changed: bool,
}

/// The files at hand.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Canonical folders, the nearest first.
    roots: Vec<PathBuf>,
    /// Text of each file that was read, and when the file was written.
    files: HashMap<PathBuf, Option<(String, SystemTime)>>,
    /// Where links to them lead.
    editor: Editor,
}

impl Sources {
    /// Returns the sources of the projects that this folder and these files are in.
    pub(crate) fn near<'a>(
        profiles: impl IntoIterator<Item = &'a PathBuf>,
        editor: &Editor,
    ) -> Sources {
        let here = env::current_dir().into_iter();
        let folders = profiles
            .into_iter()
            .filter_map(|profile| Some(fs::canonicalize(profile).ok()?.parent()?.to_owned()));
        Sources::of(here.chain(folders), editor.clone())
    }

    fn of(folders: impl Iterator<Item = PathBuf>, editor: Editor) -> Sources {
        let mut roots = Vec::new();
        for folder in folders {
            let Ok(folder) = fs::canonicalize(folder) else { continue };
            // Paths in a profile are relative to the workspace, which is the outermost; a member is
            // tried first.
            for root in folder.ancestors().filter(|at| at.join("Cargo.toml").is_file()) {
                if !roots.iter().any(|known| known == root) {
                    roots.push(root.to_owned());
                }
            }
        }
        Sources { roots, files: HashMap::new(), editor }
    }

    /// The lines around one of a file. `began` is when the run began, in ms since the Unix epoch.
    pub(crate) fn snippet(&mut self, file: &str, line: u32, began: u64) -> Option<Snippet> {
        let line = usize::try_from(line).ok()?;
        let path = self.find(Path::new(file))?;
        let (text, written) =
            self.files.entry(path).or_insert_with_key(|path| read(path)).as_ref()?;
        let first = line.saturating_sub(AROUND).max(1);
        let lines: Vec<String> = text
            .lines()
            .skip(first - 1)
            .take(line + AROUND + 1 - first)
            .map(|text| {
                let shown: String = text.replace('\t', "    ").chars().take(WIDEST).collect();
                plain::sentence(&shown).into_owned()
            })
            .collect();
        let changed = *written > UNIX_EPOCH + Duration::from_millis(began);
        (line >= first && line < first + lines.len()).then_some(Snippet {
            first,
            line,
            lines,
            changed,
        })
    }

    /// The address of a line of a file in the editor.
    pub(crate) fn address(&self, file: &str, line: u32) -> Option<String> {
        self.editor.address(&self.find(Path::new(file))?, line)
    }

    fn find(&self, file: &Path) -> Option<PathBuf> {
        // An absolute path takes the place of the root.
        let candidates =
            self.roots.iter().filter_map(|root| fs::canonicalize(root.join(file)).ok());
        candidates.into_iter().find(|path| {
            path.extension().is_some_and(|extension| extension == "rs")
                && self.roots.iter().any(|root| path.starts_with(root))
        })
    }
}

fn read(path: &Path) -> Option<(String, SystemTime)> {
    let metadata =
        fs::metadata(path).ok().filter(|file| file.is_file() && file.len() <= LARGEST)?;
    Some((fs::read_to_string(path).ok()?, metadata.modified().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project with `src/shop.rs`, and a file outside.
    fn project() -> (tempfile::TempDir, Sources) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(root.join("Cargo.toml"), "").unwrap();
        let lines: String = (1..=9).map(|i| format!("line {i}\n")).collect();
        fs::write(root.join("src/shop.rs"), lines).unwrap();
        fs::write(folder.path().join("secret.rs"), "secret\n").unwrap();
        std::os::unix::fs::symlink("../../secret.rs", root.join("src/link.rs")).unwrap();
        let sources = Sources::of([root.join("src")].into_iter(), "vscode".parse().unwrap());
        (folder, sources)
    }

    #[test]
    fn the_line_stands_among_its_neighbours() {
        let (_folder, mut sources) = project();
        let snippet = sources.snippet("src/shop.rs", 5, u64::MAX >> 20).unwrap();
        assert_eq!((snippet.first, snippet.line, snippet.lines.len()), (2, 5, 7));
        assert_eq!((snippet.lines[3].as_str(), snippet.changed), ("line 5", false));
        let at_top = sources.snippet("src/shop.rs", 1, 0).unwrap();
        assert_eq!((at_top.first, at_top.lines.len(), at_top.changed), (1, 4, true));
        assert_eq!(sources.snippet("src/shop.rs", 9, 0).unwrap().lines.len(), 4);
        let address = sources.address("src/shop.rs", 5).unwrap();
        assert!(address.starts_with("vscode://file/") && address.ends_with("/src/shop.rs:5"));
    }

    #[test]
    fn snippet_of_missing_source_is_not_shown() {
        let (_folder, mut sources) = project();
        for (file, line) in
            [("src/shop.rs", 10), ("src/shop.rs", 0), ("src/gone.rs", 1), ("src", 1)]
        {
            assert_eq!(sources.snippet(file, line, 0), None, "{file}:{line}");
        }
    }

    #[test]
    fn nothing_but_source_of_the_project_is_read() {
        let (folder, mut sources) = project();
        fs::write(folder.path().join("project/.env"), "secret\n").unwrap();
        let absolute = folder.path().join("secret.rs");
        for file in [
            "../secret.rs",
            "src/../../secret.rs",
            "src/link.rs",
            ".env",
            absolute.to_str().unwrap(),
            "/etc/passwd",
        ] {
            assert_eq!(sources.snippet(file, 1, 0), None, "{file}");
            assert_eq!(sources.address(file, 1), None, "{file}");
        }
    }
}
