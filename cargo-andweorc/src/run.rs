//! Build, run, report.

use crate::cli::RunOptions;
use crate::console::{self, Console};
use crate::drive::Ended;
use crate::live::View;
use crate::repeat::{Series, SeriesError};
use crate::select::{Kind, Program};
use crate::{build, child, project, report, revisions, select};
use andweorc_core::plain;
use andweorc_core::profile::Profile;
use andweorc_core::report::Looks;
use andweorc_core::settings::{SettingError, Settings};
use std::error::Error;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{env, path};

const DURATION: &str = "ANDWEORC_DURATION";

/// Does what `cargo andweorc run` is for. The exit code is the program's, if it ends by itself.
pub(crate) fn run(options: &RunOptions, console: Console) -> Result<ExitCode, Box<dyn Error>> {
    let budget = budget(options)?;
    if let Some(revisions) = &options.compare {
        return revisions::run(revisions, options, budget, console);
    }
    let folder = env::current_dir()?;
    let metadata = project::metadata(&folder)?;
    let folder_of_profiles = metadata.target_directory.as_std_path().join("andweorc");
    let program = select::select(&metadata, options, &folder)?;
    let out = out(options, &folder_of_profiles, &program.name)?;
    // Before the build and the run, which would be in vain.
    project::make_folder_of(&out)?;
    let built = build::folder(&folder_of_profiles, options);
    let executable = build::build(&folder, &built, options, &program, console)?;

    let (ended, profile) = match profile(&program, &executable, options, &out, budget, console) {
        Err(SeriesError::Drive(error)) if error.exit_code().is_some() => {
            console::failed(&error);
            return Ok(error.exit_code().unwrap_or(ExitCode::from(crate::FAILED)));
        }
        done => done?,
    };
    if !ended.stopped && !ended.status.success() && !child::stop_asked() {
        console.hint(format_args!(
            "{} ended by itself ({}); the report is of what was measured until then",
            program.name,
            child::how(ended.status)
        ));
    }
    if let Some(name) = &options.save_baseline {
        let file = project::baseline(&folder_of_profiles, name)?;
        project::copy(&out, &file)?;
        console.hint(format_args!(
            "saved as the baseline `{name}`: cargo andweorc diff --baseline {name} PROFILE"
        ));
    }
    console::print(&report::words(&profile, Looks { styled: true, top: options.top.top }))?;
    console.hint(format_args!(
        "\nprofile: {file}\nas JSON: cargo andweorc report --format json {file}\nas a page: cargo andweorc view {file}",
        file = quoted(&out)
    ));
    Ok(if ended.stopped { ExitCode::SUCCESS } else { child::exit_code(ended.status) })
}

/// Profiles a program until its time is used up, in one run or in several.
///
/// # Errors
///
/// As [`Series::run`].
pub(crate) fn profile(
    program: &Program,
    executable: &Path,
    options: &RunOptions,
    out: &Path,
    budget: Duration,
    console: Console,
) -> Result<(Ended, Profile), SeriesError> {
    let series = Series { name: &program.name, out, options: &options.drive, budget };
    series.run(
        |out, further| {
            let mut command = command(program, executable, options, out);
            if let Some(further) = further {
                command.env(DURATION, humantime::format_duration(further.time).to_string());
                command.env("ANDWEORC_ORDER", further.order.to_string());
            }
            console.detail(format_args!("starts {command:?}"));
            command
        },
        &mut View::new(console),
    )
}

/// The program with its settings. Those that no option gives stay as they are in the environment.
fn command(program: &Program, executable: &Path, options: &RunOptions, out: &Path) -> Command {
    let mut command = Command::new(executable);
    if program.kind == Kind::Bench {
        // What `cargo bench` says: without it, criterion only tests that the bench works.
        command.arg("--bench");
    }
    if matches!(program.kind, Kind::Bench | Kind::Test) {
        command.current_dir(&program.folder);
    }
    command.args(&options.args).env("ANDWEORC_ENABLED", "1").env("ANDWEORC_OUT", out);
    command.envs(settings(options));
    command
}

/// The settings that the options give.
fn settings(options: &RunOptions) -> impl Iterator<Item = (&'static str, &str)> {
    [
        (DURATION, &options.duration),
        ("ANDWEORC_TARGETS", &options.targets),
        ("ANDWEORC_POINTS", &options.points),
        ("ANDWEORC_EVENT", &options.event),
        ("ANDWEORC_SPEEDUPS", &options.speedups),
        ("ANDWEORC_SCOPE", &options.scope),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value.as_deref()?)))
}

/// The time budget. Refuses what the program would refuse of its environment, before it is built; what options replace does not matter.
fn budget(options: &RunOptions) -> Result<Duration, SettingError> {
    let kept = |name: &OsStr| {
        !["ANDWEORC_ENABLED", "ANDWEORC_OUT"]
            .into_iter()
            .chain(settings(options).map(|(name, _)| name))
            .any(|replaced| name == replaced)
    };
    let given = settings(options).map(|(name, value)| (name.into(), value.into()));
    let vars = env::vars_os().filter(|(name, _)| kept(name)).chain(given);
    Settings::from_vars(vars).map(|settings| settings.duration)
}

/// Where the profile goes, absolute, since the program may change its folder.
fn out(options: &RunOptions, folder: &Path, name: &str) -> io::Result<PathBuf> {
    let from_env = || env::var_os("ANDWEORC_OUT").filter(|out| !out.is_empty()).map(PathBuf::from);
    let default = || folder.join(format!("{name}.jsonl"));
    path::absolute(options.out.clone().or_else(from_env).unwrap_or_else(default))
}

/// A path as a shell wants it. Characters that are not seen stand in it as bash and zsh read them:
/// `$'\xe2\x80\xae'`.
pub(crate) fn quoted(path: &Path) -> String {
    let bare = |c: char| c.is_alphanumeric() || "/._-+@%:,=".contains(c);
    match path.to_str().filter(|path| plain::is_plain(path)) {
        Some(path) if path.chars().all(bare) => path.to_owned(),
        Some(path) => format!("'{}'", path.replace('\'', r"'\''")),
        None => {
            let bytes = path.as_os_str().as_bytes().iter().map(|&byte| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(byte)),
                b' '..=b'~' => char::from(byte).to_string(),
                _ => format!("\\x{byte:02x}"),
            });
            format!("$'{}'", bytes.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_the_shell() {
        assert_eq!(quoted(Path::new("/a/b-1.jsonl")), "/a/b-1.jsonl");
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
        assert_eq!(quoted(Path::new("\u{202e}a'\n\\")), r"$'\xe2\x80\xaea\'\x0a\\'");
        assert_eq!(quoted(Path::new(OsStr::from_bytes(b"a\xff"))), r"$'a\xff'");
    }
}
