//! The two versions that `diff` and `ci` compare.

use crate::{profiles, project};
use andweorc_core::profile::{Profile, Run};
use clap::Args;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Which two versions.
#[derive(Debug, Args)]
pub(crate) struct SidesOptions {
    /// A and B: a profile, a folder of profiles of one version, or the name of a baseline
    #[arg(value_name = "PROFILE", num_args = 0..=2)]
    pub(crate) profiles: Vec<String>,
    /// Compare with this baseline; then B alone is named [default: the newest profile in the target folder]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
}

/// One version.
#[derive(Debug)]
pub(crate) struct Side {
    /// What it was called.
    pub(crate) name: String,
    /// Its profiles.
    pub(crate) files: Vec<PathBuf>,
    /// Its runs, of all its profiles.
    pub(crate) runs: Vec<Run>,
}

impl SidesOptions {
    /// Reads both.
    pub(crate) fn read(&self) -> Result<[Side; 2], Box<dyn Error>> {
        match (&self.baseline, &self.profiles[..]) {
            (Some(name), [] | [_]) => {
                let file = baseline(name)?;
                let runs = Profile::read(&file)?.runs;
                let b = match self.profiles.first() {
                    Some(b) => side(b)?,
                    None => newest()?,
                };
                Ok([Side { name: name.clone(), files: vec![file], runs }, b])
            }
            (None, [a, b]) => Ok([side(a)?, side(b)?]),
            (Some(_), _) => Err("with `--baseline` name one profile, the new one".into()),
            (None, _) => Err("name two profiles, or one and `--baseline NAME`".into()),
        }
    }
}

/// The profiles of both.
pub(crate) fn files_of(sides: &[Side; 2]) -> Vec<PathBuf> {
    sides.iter().flat_map(|side| side.files.iter().cloned()).collect()
}

/// The profiles that a name means: a file, all in a folder, or a baseline.
///
/// # Errors
///
/// When a folder has no profile, or there is neither a file nor a baseline of that name.
pub(crate) fn files(name: &str) -> Result<Vec<PathBuf>, String> {
    let path = Path::new(name);
    if path.is_dir() {
        let files = project::profiles_in(path);
        if files.is_empty() {
            return Err(format!("{name}: the folder has no profile (`*.jsonl`)"));
        }
        Ok(files)
    } else if path.exists() || !project::is_name(name) || name.ends_with(".jsonl") {
        // A file that is not there is told by what reads it.
        Ok(vec![path.to_owned()])
    } else {
        Ok(vec![baseline(name)?])
    }
}

fn side(name: &str) -> Result<Side, Box<dyn Error>> {
    let files = files(name)?;
    let runs = profiles::read(&files)?.runs;
    Ok(Side { name: name.to_owned(), files, runs })
}

fn newest() -> Result<Side, Box<dyn Error>> {
    let files = profiles::or_newest(&[])?;
    let (name, runs) = (files[0].display().to_string(), profiles::read(&files)?.runs);
    Ok(Side { name, files, runs })
}

/// The file of a baseline that is there.
fn baseline(name: &str) -> Result<PathBuf, String> {
    let folder = project::folder();
    let file = project::baseline(&folder, name)?;
    if !file.exists() {
        let known = project::profiles_in(&folder.join("baselines"));
        let known: Vec<_> = known.iter().filter_map(|file| file.file_stem()?.to_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(format!(
            "there is no profile and no baseline `{name}` (baselines: {known}); \
             `cargo andweorc run --save-baseline {name}` makes one"
        ));
    }
    Ok(file)
}
