//! Which profiles are meant, and what they hold together.

use crate::{project, sides};
use andweorc_core::profile::{Profile, ReadError};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The profiles named (files, folders of them, baselines), or the newest of this project when none is.
///
/// # Errors
///
/// When a folder has no profile or a baseline is not there; when none is named and there is no project, or no profile in its target folder.
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
    let metadata = project::metadata(Path::new(".")).map_err(|_| {
        "no profile is named, and no cargo project is here whose newest could be meant; name a file".to_owned()
    })?;
    let folder = metadata.target_directory.join("andweorc");
    match newest(folder.as_std_path()) {
        Ok(Some(profile)) => Ok(vec![profile]),
        Ok(None) => Err(format!(
            "there is no profile in {folder}: make one with `cargo andweorc run`, or name a file"
        )),
        Err(error) => Err(format!("{folder} can't be searched for profiles: {error}")),
    }
}

/// The `*.jsonl` of a folder that was written last.
fn newest(folder: &Path) -> io::Result<Option<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    let mut newest = None;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            newest = newest.max(Some((fs::metadata(&path)?.modified()?, path)));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

/// All runs of these profiles.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Profile, ReadError> {
    let mut runs = Vec::new();
    for path in paths {
        runs.append(&mut Profile::read(path)?.runs);
    }
    Ok(Profile { runs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_newest_is_the_one_written_last() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(newest(&folder.path().join("absent")).unwrap(), None);
        assert_eq!(newest(folder.path()).unwrap(), None);
        let now = SystemTime::now();
        for (name, age) in [("a.jsonl", 20), ("b.jsonl", 10), ("c.jsonl", 30), ("d.html", 0)] {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(now - Duration::from_secs(age)).unwrap();
        }
        assert_eq!(newest(folder.path()).unwrap(), Some(folder.path().join("b.jsonl")));
    }
}
