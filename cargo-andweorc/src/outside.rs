//! Path dependencies of a revision that are not in its commit.
//!
//! One that leads out of the repository, such as `path = "../stock"`, is linked to where cargo
//! looks for it beside the worktree: both versions are built with it as it is. One inside that git
//! does not have, such as a submodule, can only be named.

use crate::worktree::Worktree;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Component, Path, PathBuf};
use toml::{Table, Value};

/// Path dependencies that a commit does not have.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// Folders outside of the repository that are linked.
    pub(crate) linked: BTreeSet<PathBuf>,
    /// A sentence for each that is not there.
    missing: Vec<String>,
}

impl Outside {
    /// Links what the packages of a worktree, and what these depend on, need from outside of it.
    /// `workspace` is that of the user's checkout, which can be one around the repository.
    ///
    /// # Errors
    ///
    /// When a link can't be made, or git can't list the manifests.
    pub(crate) fn link(worktree: &Worktree, workspace: &Path) -> Result<Outside, String> {
        let mut outside = Outside::default();
        let mut left = worktree.files("*Cargo.toml")?;
        if !workspace.starts_with(worktree.repository()) {
            worktree.link(workspace)?;
            left.push(workspace.join("Cargo.toml"));
        }
        let mut seen = BTreeSet::new();
        while let Some(manifest) = left.pop() {
            if seen.insert(manifest.clone()) {
                left.extend(outside.follow(worktree, &manifest)?);
            }
        }
        Ok(outside)
    }

    /// Links what a manifest depends on, and returns the manifests that tell what that needs.
    fn follow(&mut self, worktree: &Worktree, manifest: &Path) -> Result<Vec<PathBuf>, String> {
        let mut further = Vec::new();
        for path in path_dependencies(&worktree.shown(manifest)) {
            let folder = lexical(&manifest.with_file_name(&path));
            let is_there = worktree.shown(&folder).join("Cargo.toml").is_file();
            let is_inside = folder.starts_with(worktree.repository());
            if !is_there {
                let why = if is_inside {
                    "which git has not in this revision: what is built is what is committed, without submodules; commit it"
                } else {
                    "outside of the repository, where no package is; put it there"
                };
                self.missing.push(format!(
                    "{} depends on {}, {why}",
                    manifest.display(),
                    folder.display()
                ));
            } else if !is_inside {
                worktree.link(&folder)?;
                // One of them can be a workspace that the package inherits from.
                further.extend(folder.ancestors().map(|it| it.join("Cargo.toml")).take_while(
                    |it| !it.parent().is_some_and(|it| worktree.repository().starts_with(it)),
                ));
                self.linked.insert(folder);
            }
        }
        Ok(further)
    }

    /// Says what to do where a revision can't be built and dependencies of it are not there; else
    /// nothing.
    pub(crate) fn advice(&self) -> String {
        let mut advice = String::new();
        for sentence in &self.missing {
            write!(advice, "\n{sentence}").expect("a string takes all");
        }
        if !self.missing.is_empty() {
            advice += "\nor profile both versions in checkouts of your own, and compare them: cargo andweorc diff A B";
        }
        advice
    }
}

/// Paths of the dependencies in a manifest, relative ones alone. None where it can't be read: cargo
/// says why.
fn path_dependencies(manifest: &Path) -> Vec<String> {
    let Some(manifest) = fs::read_to_string(manifest).ok().and_then(|it| it.parse::<Table>().ok())
    else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    collect(&manifest, &mut paths);
    paths
}

/// Collects from all tables of dependencies: a package's, a target's, a workspace's and patches.
fn collect(table: &Table, paths: &mut Vec<String>) {
    for (name, value) in table {
        let Value::Table(inner) = value else { continue };
        match name.as_str() {
            name if name.ends_with("dependencies") => add(inner, paths),
            "patch" => inner.values().filter_map(Value::as_table).for_each(|it| add(it, paths)),
            "workspace" => collect(inner, paths),
            "target" => {
                inner.values().filter_map(Value::as_table).for_each(|it| collect(it, paths))
            }
            _ => {}
        }
    }
}

fn add(dependencies: &Table, paths: &mut Vec<String>) {
    let named = dependencies.values().filter_map(|it| it.get("path")?.as_str());
    paths.extend(named.filter(|path| Path::new(path).is_relative()).map(str::to_owned));
}

/// The path without `.` and `..`, in the way that cargo takes it: links are not looked at.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_path_dependencies_are_found() {
        let manifest = r#"
            [workspace.dependencies]
            a = { path = "../a" }
            [dependencies]
            b = { path = "b", version = "1" }
            serde = "1"
            absolute = { path = "/x" }
            [target.'cfg(unix)'.dev-dependencies]
            c.path = "../../c"
            [patch.crates-io]
            d = { path = "../d" }
            [package.metadata.dependencies-of-others]
            e = { path = "../e" }
        "#;
        let mut paths = Vec::new();
        collect(&manifest.parse().unwrap(), &mut paths);
        paths.sort();
        assert_eq!(paths, ["../../c", "../a", "../d", "b"]);
    }

    #[test]
    fn paths_are_made_plain_without_the_file_system() {
        assert_eq!(lexical(Path::new("/code/shop/./../stock/x/..")), Path::new("/code/stock"));
        assert_eq!(lexical(Path::new("/../a")), Path::new("/a"));
    }
}
