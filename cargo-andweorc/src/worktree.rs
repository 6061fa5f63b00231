//! A git revision checked out beside the user's own checkout, which is left as it is.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A worktree in a folder of its own; removed when dropped.
#[derive(Debug)]
pub(crate) struct Worktree {
    repository: PathBuf,
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
        let path = into.join(&commit.hash[..12]);
        let worktree = Worktree { repository, path, inner };
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

    fn remove(&self) {
        let path = self.path.as_os_str();
        let remove = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
        // It fails when there is nothing to remove, or git has forgotten it; then the files are
        // what is left.
        if git(&self.repository, remove.into_iter().chain([path])).is_err() {
            fs::remove_dir_all(&self.path).ok();
            git(&self.repository, ["worktree", "prune"]).ok();
        }
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        self.remove();
    }
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
