//! The two versions that `diff` and `ci` compare.

use crate::{profiles, project};
use andweorc_profile::plain;
use andweorc_profile::{Run, joint};
use clap::Args;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Which two versions.
#[derive(Debug, Args)]
pub(crate) struct SidesOptions {
    /// A and B: a profile, a folder of profiles of one version, or the name of a baseline [default:
    /// the newest profile in the target folder, and the one of the same program before it]
    #[arg(value_name = "PROFILE", num_args = 0..=2)]
    pub(crate) profiles: Vec<String>,
    /// Compare with this baseline; then B alone is named [default: the newest profile in the target
    /// folder]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
    /// Compare also what are profiles of two different programs
    #[arg(long)]
    pub(crate) across_programs: bool,
    /// Of services that were profiled together: compare the points of this one [default: the one
    /// that `cargo andweorc run` built and started]
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
}

/// One version.
#[derive(Debug)]
pub(crate) struct Side {
    /// Name that the user gave to the version.
    pub(crate) name: String,
    /// Its profiles.
    pub(crate) files: Vec<PathBuf>,
    /// Its runs, of all its profiles: where these are of services that were profiled together,
    /// those of the entry.
    pub(crate) runs: Vec<Run>,
}

impl SidesOptions {
    /// Reads both.
    ///
    /// # Errors
    ///
    /// When the options don't name two sides, one can't be read or is of services that don't belong
    /// together, a baseline is compared with the
    /// profile that it is a copy of, or the two are of different programs and that is not asked
    /// for.
    pub(crate) fn read(&self) -> Result<[Side; 2], Box<dyn Error>> {
        let entry = self.entry.as_deref();
        let side_of = |name: &str, files: &[PathBuf]| side_of(name, files, entry);
        let side = |name: &str| side_of(name, &files(name)?);
        let sides = match (&self.baseline, &self.profiles[..]) {
            (Some(name), []) => {
                let (file, newest) = (baseline(name)?, profiles::newest_of_project()?);
                if fs::read(&file)? == fs::read(&newest)? {
                    return Err(is_itself(name, &newest).into());
                }
                [side_of(name, &[file])?, side_of(&shown(&newest), &[newest])?]
            }
            (Some(name), [b]) => [side_of(name, &[baseline(name)?])?, side(b)?],
            (None, [a, b]) => [side(a)?, side(b)?],
            (None, []) => {
                let [before, newest] = profiles::newest_two()?;
                [side_of(&shown(&before), &[before])?, side_of(&shown(&newest), &[newest])?]
            }
            (Some(_), _) => return Err("with `--baseline` name one profile, the new one".into()),
            (None, _) => return Err("name two profiles, or one and `--baseline NAME`".into()),
        };
        let [a, b] = sides.each_ref().map(|side| side.runs[0].header.program.as_str());
        if a != b && !self.across_programs {
            let [a, b] = [a, b].map(plain::name);
            return Err(format!(
                "A is of the program `{a}` and B of `{b}`: compare two profiles of one program, or say `--across-programs` if one \
                 is the other under a new name"
            )
            .into());
        }
        Ok(sides)
    }
}

/// The profiles of both.
pub(crate) fn files_of(sides: &[Side; 2]) -> Vec<PathBuf> {
    sides.iter().flat_map(|side| side.files.iter().cloned()).collect()
}

/// Says what to do when a baseline was saved from the profile that it is to be compared with.
fn is_itself(baseline: &str, newest: &Path) -> String {
    format!(
        "the newest profile, {}, is the one that the baseline `{baseline}` was saved from, so there is nothing to compare: change the \
         program and profile it again (`cargo andweorc run`), or name another profile",
        shown(newest)
    )
}

fn shown(file: &Path) -> String {
    file.display().to_string()
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

fn side_of(name: &str, files: &[PathBuf], entry: Option<&str>) -> Result<Side, Box<dyn Error>> {
    let united = joint::unite(profiles::read(files)?.runs, entry);
    let united = united.map_err(|error| format!("{}: {error}", plain::name(name)))?;
    Ok(Side { name: name.to_owned(), files: files.to_vec(), runs: united.runs })
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
