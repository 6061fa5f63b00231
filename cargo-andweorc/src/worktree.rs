//! A git revision checked out beside the user's own checkout, which is left as it is.
//!
//! The worktree of `/code/shop` is `FOLDER/code/shop`, so that `../stock` leads to
//! `FOLDER/code/stock` from there: a link to `/code/stock`, where a dependency needs it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// A worktree in a folder of its own; removed when dropped.
#[derive(Debug)]
pub(crate) struct Worktree {
    repository: PathBuf,
    /// Stands for the root of the file system: the worktree, and links to what is outside of it.
    root: PathBuf,
    path: PathBuf,
    /// Where in the worktree the folder is that corresponds to the user's.
    inner: PathBuf,
}

/// The commit that a revision means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    /// Name of the commit, as the user wrote it.
    pub(crate) name: String,
    hash: String,
}

impl Commit {
    /// The commit that `name` means in the repository of `folder`.
    ///
    /// # Errors
    ///
    /// When the folder is in no repository, or there is no such commit.
    pub(crate) fn find(folder: &Path, name: &str) -> Result<Commit, String> {
        let wanted = format!("{name}^{{commit}}");
        let hash = git(folder, ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]);
        let hash = hash.map_err(|why| match git(folder, ["rev-parse", "--show-toplevel"]) {
            Ok(_) => format!("git knows no commit `{name}`"),
            Err(_) if why.is_empty() => "no git repository is here".to_owned(),
            Err(why) => format!("no git repository is here: {why}"),
        })?;
        Ok(Commit { name: name.to_owned(), hash })
    }
}

impl Worktree {
    /// Checks the commit out into a folder of `into`.
    ///
    /// # Errors
    ///
    /// With what git says, when that can't be done.
    pub(crate) fn add(folder: &Path, commit: &Commit, into: &Path) -> Result<Worktree, String> {
        let repository = PathBuf::from(git(folder, ["rev-parse", "--show-toplevel"])?);
        let inner = PathBuf::from(git(folder, ["rev-parse", "--show-prefix"])?);
        // Cargo and git speak of real paths.
        let into = fs::create_dir_all(into).and_then(|()| into.canonicalize());
        let into =
            into.map_err(|error| format!("git can't check out `{}`: {error}", commit.name))?;
        let root = into.join(&commit.hash[..12]);
        let path = below(&root, &repository);
        let worktree = Worktree { repository, root, path, inner };
        // What a killed run left.
        worktree.remove();
        let path = worktree.path.as_os_str();
        // A hook of the user's is not meant for this checkout.
        let arguments =
            ["-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--force"];
        let arguments = arguments.iter().map(OsStr::new).chain([path, OsStr::new(&commit.hash)]);
        git(&worktree.repository, arguments)
            .map_err(|why| format!("git can't check out `{}`: {why}", commit.name))?;
        Ok(worktree)
    }

    /// The folder that corresponds to the user's.
    pub(crate) fn folder(&self) -> PathBuf {
        self.path.join(&self.inner)
    }

    /// The repository, in whose place the worktree stands.
    pub(crate) fn repository(&self) -> &Path {
        &self.repository
    }

    /// The path in which the worktree shows one of the repository; any other stays.
    pub(crate) fn shown(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.repository) {
            Ok(inner) => self.path.join(inner),
            Err(_) => path.to_owned(),
        }
    }

    /// The files of the commit that a pattern of git's means, as paths of the repository.
    ///
    /// # Errors
    ///
    /// With what git says.
    pub(crate) fn files(&self, pattern: &str) -> Result<Vec<PathBuf>, String> {
        let listed = git(&self.path, ["ls-files", "-z", "--", pattern])?;
        let names = listed.split('\0').filter(|name| !name.is_empty());
        Ok(names.map(|name| self.repository.join(name)).collect())
    }

    /// Links a folder outside of the repository to its place beside the worktree, with all that is
    /// beside it up to a folder that the repository is in too: a package may need the workspace
    /// around it.
    ///
    /// # Errors
    ///
    /// When a link can't be made.
    pub(crate) fn link(&self, outside: &Path) -> Result<(), String> {
        if self.repository.starts_with(outside) {
            let entries = outside.read_dir().map_err(|error| not_linked(outside, &error))?;
            // Cargo writes its lock file, and looks for settings in the real folder by itself.
            let own = ["Cargo.lock", ".cargo", ".git"];
            let entries =
                entries.flatten().filter(|entry| own.iter().all(|it| entry.file_name() != *it));
            let mut paths = entries.map(|entry| entry.path());
            return paths.try_for_each(|path| self.link_one(&path));
        }
        let top = outside.ancestors().take_while(|it| !self.repository.starts_with(it)).last();
        top.map_or(Ok(()), |top| self.link_one(top))
    }

    fn link_one(&self, outside: &Path) -> Result<(), String> {
        let link = below(&self.root, outside);
        // The repository, the target folder, or what is linked already.
        if self.repository.starts_with(outside) || self.root.starts_with(outside) || link.exists() {
            return Ok(());
        }
        let folder = link.parent().unwrap_or(&self.root);
        let made = fs::create_dir_all(folder).and_then(|()| symlink(outside, &link));
        made.map_err(|error| not_linked(outside, &error))
    }

    fn remove(&self) {
        let path = self.path.as_os_str();
        let remove = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
        // It fails when there is nothing to remove, or git has forgotten it.
        git(&self.repository, remove.into_iter().chain([path])).ok();
        // Links in it are removed, and not what they lead to.
        fs::remove_dir_all(&self.root).ok();
        git(&self.repository, ["worktree", "prune"]).ok();
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The place of an absolute path where `root` stands for that of the file system.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(
        path.components().filter(|it| matches!(it, Component::Normal(_))).collect::<PathBuf>(),
    )
}

fn not_linked(outside: &Path, error: &io::Error) -> String {
    format!("{} can't be linked to beside the checkout of the revision: {error}", outside.display())
}

/// Runs git, and returns what it prints, without the line's end.
fn git<S: AsRef<OsStr>>(
    folder: &Path,
    arguments: impl IntoIterator<Item = S>,
) -> Result<String, String> {
    let output = Command::new("git")
        .current_dir(folder)
        .args(arguments)
        .output()
        .map_err(|error| format!("git can't be started: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for arguments in [
            &["init", "-q"][..],
            &["config", "user.name", "t"],
            &["config", "user.email", "t@localhost"],
        ] {
            git(at, arguments).unwrap();
        }
        fs::create_dir(at.join("shop")).unwrap();
        for (content, message) in [("old", "one"), ("new", "two")] {
            fs::write(at.join("shop/file"), content).unwrap();
            git(at, ["add", "."]).unwrap();
            git(at, ["commit", "-q", "-m", message]).unwrap();
        }
        folder
    }

    #[test]
    fn a_revision_is_checked_out_aside_and_leaves_no_trace() {
        let repository = repository();
        let at = repository.path().join("shop");
        let hook = repository.path().join(".git/hooks/post-checkout");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
        let into = tempfile::tempdir().unwrap();
        let commit = Commit::find(&at, "HEAD~1").unwrap();
        for _ in 0..2 {
            let worktree = Worktree::add(&at, &commit, into.path()).unwrap();
            assert_eq!(fs::read_to_string(worktree.folder().join("file")).unwrap(), "old");
            assert_eq!(fs::read_to_string(at.join("file")).unwrap(), "new");
            drop(worktree);
            assert_eq!(git(&at, ["worktree", "list"]).unwrap().lines().count(), 1);
            assert_eq!(into.path().read_dir().unwrap().count(), 0);
            // As a killed run leaves it.
            let left = into.path().join(&commit.hash[..12]);
            fs::create_dir_all(left.join("rest")).unwrap();
        }
        assert_eq!(git(&at, ["status", "--porcelain"]).unwrap(), "");
    }

    #[test]
    fn revision_unknown_to_git_is_named_in_the_error() {
        let repository = repository();
        let error = Commit::find(repository.path(), "--all").unwrap_err();
        assert_eq!(error, "git knows no commit `--all`");
        let nowhere = tempfile::tempdir().unwrap();
        assert!(Commit::find(nowhere.path(), "HEAD").unwrap_err().contains("no git repository"));
    }
}
