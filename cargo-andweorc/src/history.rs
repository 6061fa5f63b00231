//! Earlier profiles. A run puts what it finds in the place of its profile aside, under the time at
//! which that was written, and puts it back when it has measured nothing itself.

use andweorc_profile::plain;
use andweorc_profile::{Profile, Run};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// So many earlier profiles of one name are kept.
const KEPT: usize = 10;

/// The profile that was in the place of a new one, until dropped: then it is put back, unless the
/// new one has measured something.
#[derive(Debug)]
pub(crate) struct Earlier {
    out: PathBuf,
    kept: Option<PathBuf>,
}

impl Earlier {
    /// Puts the profile at `out` aside, if there is one, and removes the oldest of those that were
    /// put aside before.
    ///
    /// # Errors
    ///
    /// When it can't be given another name.
    pub(crate) fn put_aside(out: &Path) -> Result<Earlier, String> {
        let mut earlier = Earlier { out: out.to_owned(), kept: None };
        let Ok(written) = fs::metadata(out).and_then(|it| it.modified()) else {
            return Ok(earlier);
        };
        if !out.is_file() {
            return Ok(earlier);
        }
        let mut at = written;
        while name_at(out, at).exists() {
            at += Duration::from_secs(1);
        }
        let kept = name_at(out, at);
        fs::rename(out, &kept).map_err(|error| {
            format!("{} can't be kept as {}: {error}", plain::path(out), plain::path(&kept))
        })?;
        earlier.kept = Some(kept);
        prune(out);
        Ok(earlier)
    }

    /// Whether there was one.
    pub(crate) fn is_there(&self) -> bool {
        self.kept.is_some()
    }
}

impl Drop for Earlier {
    fn drop(&mut self) {
        if let Some(kept) = &self.kept
            && !Profile::read(&self.out).is_ok_and(|profile| has_measured(&profile.runs))
        {
            // If it can't be, it stays where it was put.
            fs::rename(kept, &self.out).unwrap_or_default();
        }
    }
}

/// Whether a point was hit in any experiment or baseline of these runs.
pub(crate) fn has_measured(runs: &[Run]) -> bool {
    let mut experiments = runs.iter().flat_map(|run| &run.experiments);
    experiments.any(|one| one.points.iter().any(|point| point.count > 0))
}

/// `shop.20261127-103500.jsonl` for `shop.jsonl` of that time (UTC).
fn name_at(out: &Path, time: SystemTime) -> PathBuf {
    let time = humantime::format_rfc3339_seconds(time).to_string();
    let time: String = time
        .chars()
        .filter(|c| !"-:Z".contains(*c))
        .map(|c| if c == 'T' { '-' } else { c })
        .collect();
    let mut name = out.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{time}"));
    if let Some(ending) = out.extension() {
        name.push(".");
        name.push(ending);
    }
    out.with_file_name(name)
}

/// Removes the oldest profiles that were put aside from `out`, but for [`KEPT`].
fn prune(out: &Path) {
    let folder = out.parent().into_iter().flat_map(Path::read_dir).flatten().flatten();
    let mut kept: Vec<PathBuf> =
        folder.map(|entry| entry.path()).filter(|path| is_kept(path, out)).collect();
    // The time is in the name.
    kept.sort_unstable();
    for old in kept.iter().rev().skip(KEPT) {
        // One that can't be removed is one too many, and no harm.
        fs::remove_file(old).unwrap_or_default();
    }
}

/// Whether `path` has a name that [`name_at`] makes of `out`.
fn is_kept(path: &Path, out: &Path) -> bool {
    let rest = || {
        let stem = path.file_stem()?.to_str()?;
        stem.strip_prefix(out.file_stem()?.to_str()?)?.strip_prefix('.')
    };
    path.extension() == out.extension()
        && rest().is_some_and(|time| {
            let digit = |(i, c): (usize, char)| if i == 8 { c == '-' } else { c.is_ascii_digit() };
            time.len() == 15 && time.chars().enumerate().all(digit)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = folder.read_dir().unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    const GOOD: &str = include_str!("../tests/fixtures/shop.jsonl");

    #[test]
    fn profile_is_kept_by_its_time_or_put_back_if_none_follows() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("shop.jsonl");
        assert!(!Earlier::put_aside(&out).unwrap().is_there());
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_775_700);
        fs::write(&out, "the first").unwrap();
        fs::File::options().append(true).open(&out).unwrap().set_modified(time).unwrap();

        let earlier = Earlier::put_aside(&out).unwrap();
        assert!(earlier.is_there());
        assert_eq!(names(folder.path()), ["shop.20261127-103500.jsonl"]);
        fs::write(&out, GOOD.lines().next().unwrap()).unwrap();
        drop(earlier);
        assert_eq!(fs::read_to_string(&out).unwrap(), "the first");
        assert_eq!(names(folder.path()), ["shop.jsonl"]);

        let earlier = Earlier::put_aside(&out).unwrap();
        fs::write(&out, GOOD).unwrap();
        drop(earlier);
        assert_eq!(names(folder.path()), ["shop.20261127-103500.jsonl", "shop.jsonl"]);
        assert_eq!(fs::read_to_string(&out).unwrap(), GOOD);
    }

    #[test]
    fn the_oldest_are_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for i in 10..25 {
            fs::write(at.join(format!("shop.20261127-1035{i}.jsonl")), "").unwrap();
        }
        let others = ["shop.20261127-103500.html", "shop.old.jsonl", "shop2.20261127-103500.jsonl"];
        for other in others {
            fs::write(at.join(other), "").unwrap();
        }
        prune(&at.join("shop.jsonl"));
        let left = names(at);
        assert_eq!(left.len(), KEPT + others.len(), "{left:?}");
        assert!(others.iter().all(|other| left.iter().any(|name| name == other)), "{left:?}");
        assert_eq!(left[1], "shop.20261127-103515.jsonl");
    }
}
