//! Build, run, report.

use crate::cli::RunOptions;
use crate::console::{self, Console};
use crate::{build, child, project, report, revisions, select};
use andweorc_core::profile::{Profile, ReadErrorKind};
use andweorc_core::settings::{SettingError, Settings};
use std::error::Error;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;
use std::{env, path};

/// Does what `cargo andweorc run` is for. The exit code is the program's.
pub(crate) fn run(options: &RunOptions, console: Console) -> Result<ExitCode, Box<dyn Error>> {
    check_environment(options)?;
    if let Some(revisions) = &options.compare {
        return revisions::run(revisions, options, console);
    }
    let folder = env::current_dir()?;
    let metadata = project::metadata(&folder)?;
    let folder_of_profiles = metadata.target_directory.as_std_path().join("andweorc");
    let program = select::select(&metadata, options, &folder)?;
    let out = out(options, &folder_of_profiles, &program.name)?;
    // Before the build and the run, which would be in vain.
    project::make_folder_of(&out)?;
    let built = folder_of_profiles.join("build");
    let executable = build::build(&folder, &built, options, &program, console)?;

    let reported = Reported::at(&folder_of_profiles, &program.name);
    let before = state(&out);
    let mut command = command(&executable, options, &out);
    command.env(Reported::NAME, &reported.0);
    console.detail(format_args!("starts {command:?}"));
    let status = child::run(&mut command)
        .map_err(|error| format!("{} can't be started: {error}", executable.display()))?;
    let code = child::exit_code(status);
    let profile = if before.is_some() && state(&out) == before {
        None
    } else {
        match Profile::read(&out) {
            Ok(profile) => Some(profile),
            Err(error) if is_absent(error.kind()) => None,
            Err(error) => return Err(error.into()),
        }
    };
    let Some(profile) = profile else {
        let failed = console::failed(no_profile(&program.name, &out));
        return Ok(if status.success() { failed } else { code });
    };
    if let Some(name) = &options.save_baseline {
        let file = project::baseline(&folder_of_profiles, name)?;
        project::copy(&out, &file)?;
        console.hint(format_args!(
            "saved as the baseline `{name}`: cargo andweorc diff --baseline {name} PROFILE"
        ));
    }
    if !reported.where_we_print() {
        console::print(&report::words(&profile))?;
    }
    console.hint(format!("as JSON: cargo andweorc report --format json {}", quoted(&out)));
    Ok(code)
}

/// The program with its settings. Those that no option gives stay as they are in the environment.
pub(crate) fn command(executable: &Path, options: &RunOptions, out: &Path) -> Command {
    let mut command = Command::new(executable);
    command.args(&options.args).env("ANDWEORC_ENABLED", "1").env("ANDWEORC_OUT", out);
    command.envs(settings(options));
    command
}

/// The settings that the options give.
fn settings(options: &RunOptions) -> impl Iterator<Item = (&'static str, &str)> {
    [
        ("ANDWEORC_DURATION", &options.duration),
        ("ANDWEORC_TARGETS", &options.targets),
        ("ANDWEORC_POINTS", &options.points),
        ("ANDWEORC_SPEEDUPS", &options.speedups),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value.as_deref()?)))
}

/// Refuses what the program would refuse of its environment, before it is built. What options replace does not matter.
fn check_environment(options: &RunOptions) -> Result<(), SettingError> {
    let kept = |name: &OsStr| {
        !["ANDWEORC_ENABLED", "ANDWEORC_OUT"]
            .into_iter()
            .chain(settings(options).map(|(name, _)| name))
            .any(|replaced| name == replaced)
    };
    Settings::from_vars(env::vars_os().filter(|(name, _)| kept(name))).map(drop)
}

/// A file that the program makes when it has printed the report itself, on its stderr.
struct Reported(PathBuf);

impl Reported {
    /// The variable that names it to the program.
    const NAME: &str = "CARGO_ANDWEORC_REPORTED";

    fn at(folder: impl Into<PathBuf>, program: &str) -> Reported {
        let reported = Reported(folder.into().join(format!("{program}.reported")));
        reported.clear();
        reported
    }

    /// Whether the report is already where our stdout goes: on a terminal, most often.
    fn where_we_print(&self) -> bool {
        let place = |stream: BorrowedFd<'_>| {
            let file = File::from(stream.try_clone_to_owned().ok()?).metadata().ok()?;
            Some((file.dev(), file.ino()))
        };
        let stdout = place(io::stdout().as_fd());
        stdout.is_some() && stdout == place(io::stderr().as_fd()) && self.0.exists()
    }

    fn clear(&self) {
        // That it is not there is the rule; one that stays costs a look into the profile.
        fs::remove_file(&self.0).unwrap_or_default();
    }
}

impl Drop for Reported {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Where the profile goes, absolute, since the program may change its folder.
fn out(options: &RunOptions, folder: &Path, name: &str) -> io::Result<PathBuf> {
    let from_env = || env::var_os("ANDWEORC_OUT").filter(|out| !out.is_empty()).map(PathBuf::from);
    let default = || folder.join(format!("{name}.jsonl"));
    path::absolute(options.out.clone().or_else(from_env).unwrap_or_else(default))
}

/// What tells a profile that the program wrote from one that an earlier run left.
fn state(out: &Path) -> Option<(u64, Option<SystemTime>)> {
    let file = fs::metadata(out).ok()?;
    Some((file.len(), file.modified().ok()))
}

fn is_absent(kind: &ReadErrorKind) -> bool {
    match kind {
        ReadErrorKind::Io(error) => error.kind() == io::ErrorKind::NotFound,
        ReadErrorKind::Empty => true,
        _ => false,
    }
}

pub(crate) fn no_profile(name: &str, out: &Path) -> String {
    format!(
        "`{name}` wrote no profile to {}. Either its main function lacks `#[andweorc::main]`, or it ended before it began to \
         profile, or a message of it above says why",
        out.display()
    )
}

/// A path as a shell wants it.
pub(crate) fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+@%:,=".contains(c);
    if path.chars().all(plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_the_shell() {
        assert_eq!(quoted(Path::new("/a/b-1.jsonl")), "/a/b-1.jsonl");
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}
