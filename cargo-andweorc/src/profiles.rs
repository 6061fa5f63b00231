//! Which profiles are meant, and what they hold together.

use crate::{project, sides};
use andweorc_profile::joint::{self, United};
use andweorc_profile::plain;
use andweorc_profile::{Profile, ReadError};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The profiles named (files, folders of them, baselines), or the newest of this project when none
/// is.
///
/// # Errors
///
/// When a folder has no profile or a baseline is not there; when none is named and there is no
/// project, or no profile in its target folder.
pub(crate) fn or_newest(named: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    if !named.is_empty() {
        let mut files = Vec::new();
        for one in named {
            match one.to_str() {
                Some(name) => files.extend(sides::files(name)?),
                None => files.push(one.clone()),
            }
        }
        return Ok(files);
    }
    newest_of_project().map(|newest| vec![newest])
}

/// The newest profile of this project.
///
/// # Errors
///
/// When there is no project, or no profile in its target folder.
pub(crate) fn newest_of_project() -> Result<PathBuf, String> {
    let (folder, mut all) = all_of_project()?;
    if all.is_empty() {
        return Err(format!(
            "there is no profile in {}: make one with `cargo andweorc run`, or name a file",
            folder.display()
        ));
    }
    Ok(all.remove(0))
}

/// The profile before the newest, of the same program, and the newest of this project.
///
/// # Errors
///
/// When there is no project, the newest profile can't be read, or there are no two.
pub(crate) fn newest_two() -> Result<[PathBuf; 2], Box<dyn Error>> {
    let newest = newest_of_project()?;
    let program = program(&newest)?;
    let (_, all) = all_of_project()?;
    let before = all.into_iter().skip(1).find(|it| self::program(it).is_ok_and(|it| it == program));
    let before = before.ok_or_else(|| {
        format!(
            "there is but one profile of `{}` here, {}: run it again when it has changed, or name two profiles",
            plain::name(&program),
            newest.display()
        )
    })?;
    Ok([before, newest])
}

/// The name of the program that a profile is of.
fn program(profile: &Path) -> Result<String, ReadError> {
    // A profile that was read has a run.
    Profile::read(profile).map(|mut profile| profile.runs.remove(0).header.program)
}

/// The folder of the profiles of this project, and the profiles in it, the newest first.
fn all_of_project() -> Result<(PathBuf, Vec<PathBuf>), String> {
    let metadata = project::metadata(Path::new(".")).map_err(|_| {
        "no profile is named, and no cargo project is here whose newest could be meant; name a file".to_owned()
    })?;
    let folder = metadata.target_directory.join("andweorc").into_std_path_buf();
    let all = newest_first(&folder)
        .map_err(|error| format!("{} can't be searched for profiles: {error}", folder.display()))?;
    Ok((folder, all))
}

/// The `*.jsonl` of a folder, the one that was written last first.
fn newest_first(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut all = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            all.push((fs::metadata(&path)?.modified()?, path));
        }
    }
    all.sort_unstable();
    Ok(all.into_iter().rev().map(|(_, path)| path).collect())
}

/// The runs of these profiles, as one report is made of them. Where they are of several services
/// of joint runs, it ranks by the points of the service `entry`.
///
/// # Errors
///
/// When one can't be read, or they don't belong together.
pub(crate) fn read_united(
    paths: &[PathBuf],
    entry: Option<&str>,
) -> Result<United, Box<dyn Error>> {
    Ok(joint::unite(read(paths)?.runs, entry)?)
}

/// All runs of these profiles.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Profile, ReadError> {
    let mut runs = Vec::new();
    for path in paths {
        runs.append(&mut Profile::read(path)?.runs);
    }
    Ok(Profile::from(runs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_newest_is_the_one_written_last() {
        let folder = tempfile::tempdir().unwrap();
        let none: Vec<PathBuf> = Vec::new();
        assert_eq!(newest_first(&folder.path().join("absent")).unwrap(), none);
        assert_eq!(newest_first(folder.path()).unwrap(), none);
        let now = SystemTime::now();
        for (name, age) in [("a.jsonl", 20), ("b.jsonl", 10), ("c.jsonl", 30), ("d.html", 0)] {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(now - Duration::from_secs(age)).unwrap();
        }
        let order = ["b.jsonl", "a.jsonl", "c.jsonl"].map(|name| folder.path().join(name));
        assert_eq!(newest_first(folder.path()).unwrap(), order);
    }
}
