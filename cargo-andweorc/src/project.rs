//! Where a project keeps profiles and baselines.

use cargo_metadata::{Metadata, MetadataCommand};
use nix::unistd::{AccessFlags, access};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The project of this folder.
///
/// # Errors
///
/// When there is none, with what cargo says about it.
pub(crate) fn metadata(folder: &Path) -> Result<Metadata, String> {
    metadata_with(folder, Vec::new())
}

/// The project of this folder, asked for with further flags of cargo's.
///
/// # Errors
///
/// When there is none, with what cargo says about it.
pub(crate) fn metadata_with(folder: &Path, flags: Vec<String>) -> Result<Metadata, String> {
    let mut command = MetadataCommand::new();
    command.no_deps().current_dir(folder).other_options(flags);
    command.exec().map_err(|error| {
        let why = match error {
            cargo_metadata::Error::CargoMetadata { stderr } => stderr.trim_end().to_owned(),
            error => error.to_string(),
        };
        format!(
            "no cargo project that can be built is here; start the command in the folder of one. \
             cargo says:\n{why}"
        )
    })
}

/// The folder of the profiles: `andweorc` in the target folder. Outside a project, where profiles
/// can be read all the same, it is that which the environment or the current folder suggests.
pub(crate) fn folder() -> PathBuf {
    let target = || match metadata(Path::new(".")) {
        Ok(metadata) => metadata.target_directory.into_std_path_buf(),
        Err(_) => env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from),
    };
    target().join("andweorc")
}

/// The file of a baseline, in the folder of the profiles.
///
/// # Errors
///
/// When the name can't be that of a file.
pub(crate) fn baseline(folder: &Path, name: &str) -> Result<PathBuf, String> {
    if is_name(name) {
        Ok(folder.join("baselines").join(format!("{name}.jsonl")))
    } else {
        Err(format!(
            "`{name}` can't be the name of a baseline: use letters, digits, `-`, `_` and `.`"
        ))
    }
}

/// Copies a profile, and makes the folder that it goes to.
///
/// # Errors
///
/// When that can't be done, with the file that can't be written.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    make_folder_of(to)?;
    fs::copy(from, to)
        .map(drop)
        .map_err(|error| format!("{} can't be written: {error}", to.display()))
}

/// Makes the folder that a file goes to, and looks whether it can be written to.
///
/// # Errors
///
/// When it can't, with what to do.
pub(crate) fn make_folder_of(file: &Path) -> Result<(), String> {
    let folder = folder_of(file);
    if !folder.is_file() {
        fs::create_dir_all(folder).map_err(|error| not_writable(file, &error.to_string()))?;
        allows(folder, file)?;
    }
    is_writable(file)
}

/// Looks whether outputs can be written, before the work whose result they are to hold; `-`, which
/// is stdout, always can.
///
/// # Errors
///
/// When one can't, with what to do.
pub(crate) fn are_writable<'a>(
    outputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), String> {
    outputs
        .into_iter()
        .filter(|file| *file != Path::new("-"))
        .try_for_each(|file| is_writable(file))
}

/// Looks whether a file can be written: it is no folder, and it allows it, or else the folder that
/// it goes to is there and does.
fn is_writable(file: &Path) -> Result<(), String> {
    if file.is_dir() {
        return Err(not_writable(file, "it is a folder"));
    }
    let folder = folder_of(file);
    if folder.is_file() {
        return Err(not_writable(file, &format!("{} is a file", folder.display())));
    }
    allows(if file.exists() { file } else { folder }, file)
}

/// Looks whether `place` may be written to, for the sake of `file`.
fn allows(place: &Path, file: &Path) -> Result<(), String> {
    access(place, AccessFlags::W_OK).map_err(|error| not_writable(file, error.desc()))
}

fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn not_writable(file: &Path, why: &str) -> String {
    format!(
        "{} can't be written: {why}; make {} a folder that you may write to, or choose another",
        file.display(),
        folder_of(file).display()
    )
}

/// Whether this can be the name of a baseline.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['.', '-'])
        && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

/// The profiles in a folder, by name. Empty when the folder can't be read.
pub(crate) fn profiles_in(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl") && path.is_file())
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_baselines_stay_in_their_folder() {
        for good in ["main", "v1.2", "a_b-c"] {
            assert!(baseline(Path::new("x"), good).unwrap().starts_with("x/baselines"), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "-q", "a b", r"a\b"] {
            assert!(baseline(Path::new("x"), bad).is_err(), "{bad}");
        }
    }
}
