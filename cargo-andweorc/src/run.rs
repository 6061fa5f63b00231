//! Build, run, report.

use crate::cli::{ProgramOptions, RunOptions};
use crate::console::{self, Console};
use crate::coordinate::Together;
use crate::drive::Ended;
use crate::history::{self, Earlier};
use crate::live::View;
use crate::repeat::{Series, SeriesError};
use crate::select::{Kind, Program};
use crate::{build, child, coordinate, diff, profiles, project, report, revisions, select};
use andweorc_profile::Profile;
use andweorc_profile::compare::Limits;
use andweorc_profile::joint::United;
use andweorc_profile::plain;
use andweorc_profile::settings::{SettingError, Settings};
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
    if let Some(revisions) = &options.compare {
        diff::say_few_runs([options.runs; 2].map(|runs| runs as usize), console);
        let sides = revisions::run(revisions, options.runs, &options.program, console)?;
        console::print(&diff::text(&sides, &diff::comparison(&sides, &Limits::default())?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_together = options.together.is_wanted();
    let settings = settings_of(&options.program, is_together)?;
    let budget = settings.duration;
    let cargo = &options.program.cargo;
    let folder = cargo.folder()?;
    let metadata = cargo.metadata(&folder)?;
    let folder_of_profiles = metadata.target_directory.as_std_path().join("andweorc");
    let program = select::select(&metadata, &options.program, &folder)?;
    let out = out(options, &folder_of_profiles, &program.name)?;
    let baseline = options.save_baseline.as_ref();
    let baseline = baseline.map(|name| project::baseline(&folder_of_profiles, name)).transpose()?;
    // Before the build and the run, which would be in vain.
    let page = options.open.then(|| page_beside(&out));
    for file in [Some(&out), baseline.as_ref(), page.as_ref()].into_iter().flatten() {
        project::make_folder_of(file)?;
    }
    let built = build::folder(&folder_of_profiles, cargo);
    let executable = build::build(&folder, &built, cargo, &program, console)?;

    let earlier = Earlier::put_aside(&out)?;
    let together = is_together
        .then(|| Together::start(&options.together, &program.name, &out, &settings, console))
        .transpose()?;
    let joins = together.as_ref().map(Together::env_of_main).unwrap_or_default();
    let done = profile(&program, &executable, &options.program, &joins, &out, budget, console);
    let others = together.map(Together::end).unwrap_or_default();
    let (ended, profile) = match done {
        Err(SeriesError::Drive(error)) if error.exit_code().is_some() => {
            console::failed(&error);
            return Ok(error.exit_code().unwrap_or(ExitCode::from(crate::FAILED)));
        }
        done => done?,
    };
    let failed = !ended.stopped && !ended.status.success();
    if failed && !child::stop_asked() {
        console.hint(format_args!(
            "{} ended by itself ({}); the report is of what was measured until then",
            program.name,
            child::how(ended.status)
        ));
    }
    if !history::has_measured(&profile.runs) {
        let apart = United::apart(profile.runs);
        console::print(&report::words(&apart, report::looks(true, options.top)))?;
        let stays = if earlier.is_there() { "; the profile of before stays" } else { "" };
        let said = console::failed(format_args!("nothing was measured, see above{stays}"));
        return Ok(if failed { child::exit_code(ended.status) } else { said });
    }
    drop(earlier);
    if let (Some(file), Some(name)) = (&baseline, &options.save_baseline) {
        project::copy(&out, file)?;
        console.hint(format_args!(
            "saved as the baseline `{name}`; when the program has changed: cargo andweorc run, and cargo andweorc diff --baseline {name}"
        ));
    }
    let (united, files) = with_others(profile, &out, &others, console);
    console::print(&report::words(&united, report::looks(true, options.top)))?;
    let quoted_files: Vec<String> = files.iter().map(|file| quoted(file)).collect();
    console.hint(format_args!(
        "\nprofile: {files}\nas JSON: cargo andweorc report --format json {files}\nas a page: cargo andweorc view {files}",
        files = quoted_files.join(" ")
    ));
    if let Some(page) = &page {
        open(&united, &files, page, console)?;
    }
    Ok(if ended.stopped { ExitCode::SUCCESS } else { child::exit_code(ended.status) })
}

/// The profile of the program that was built, with those of the services beside it, and the files
/// that it is made of. Profiles of which no one report can be made are told and left out.
fn with_others(
    profile: Profile,
    out: &Path,
    others: &[PathBuf],
    console: Console,
) -> (United, Vec<PathBuf>) {
    let files: Vec<PathBuf> =
        [out].into_iter().chain(others.iter().map(|it| &**it)).map(PathBuf::from).collect();
    if others.is_empty() {
        return (United::apart(profile.runs), files);
    }
    match profiles::read_united(&files, None) {
        Ok(united) => (united, files),
        Err(error) => {
            console.hint(format_args!("the report is without the other services: {error}"));
            (United::apart(profile.runs), vec![out.to_owned()])
        }
    }
}

/// Where the page of a profile goes.
fn page_beside(out: &Path) -> PathBuf {
    out.with_extension("html")
}

/// Writes the page of the report beside the profile, and opens it in a browser.
fn open(united: &United, files: &[PathBuf], page: &Path, console: Console) -> Result<(), String> {
    report::write_page(united, files, page)?;
    if let Err(error) = open::that_detached(page) {
        console.hint(format_args!(
            "no browser could be started ({error}); the page is {}",
            quoted(page)
        ));
    }
    Ok(())
}

/// Profiles a program until its time is used up, in one run or in several. `joins` are variables
/// that it has beside its settings.
///
/// # Errors
///
/// As [`Series::run`].
pub(crate) fn profile(
    program: &Program,
    executable: &Path,
    options: &ProgramOptions,
    joins: &[(&'static str, String)],
    out: &Path,
    budget: Duration,
    console: Console,
) -> Result<(Ended, Profile), SeriesError> {
    let series = Series { name: &program.name, out, options: &options.drive, budget };
    series.run(
        |out, further| {
            let mut command = command(program, executable, options, out);
            command.envs(joins.iter().map(|(name, value)| (name, value)));
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
fn command(program: &Program, executable: &Path, options: &ProgramOptions, out: &Path) -> Command {
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
    // Notes name options where these were used.
    let given: Vec<&str> = settings(options).map(|(name, _)| name).collect();
    command.env("CARGO_ANDWEORC_OPTIONS", given.join(" "));
    command
}

/// The settings that the options give.
fn settings(options: &ProgramOptions) -> impl Iterator<Item = (&'static str, &str)> {
    [
        (DURATION, &options.duration),
        ("ANDWEORC_TARGETS", &options.targets),
        ("ANDWEORC_POINTS", &options.points),
        ("ANDWEORC_EVENT", &options.event),
        ("ANDWEORC_EVENTS", &options.events),
        ("ANDWEORC_SPEEDUPS", &options.speedups),
        ("ANDWEORC_MAX_SLOWDOWN", &options.max_slowdown),
        ("ANDWEORC_SCOPE", &options.scope),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value.as_deref()?)))
}

/// The time budget. Refuses what the program would refuse of its environment, before it is built;
/// what options replace does not matter.
pub(crate) fn budget(options: &ProgramOptions) -> Result<Duration, SettingError> {
    settings_of(options, false).map(|settings| settings.duration)
}

/// The settings of the program as [`budget`] reads them. A program of several gets those of the
/// coordinator from this command.
fn settings_of(options: &ProgramOptions, is_together: bool) -> Result<Settings, SettingError> {
    let joins: &[&str] = if is_together { &coordinate::JOINS } else { &[] };
    let kept = |name: &OsStr| {
        !["ANDWEORC_ENABLED", "ANDWEORC_OUT"]
            .into_iter()
            .chain(joins.iter().copied())
            .chain(settings(options).map(|(name, _)| name))
            .any(|replaced| name == replaced)
    };
    let given = settings(options).map(|(name, value)| (name.into(), value.into()));
    let vars = env::vars_os().filter(|(name, _)| kept(name)).chain(given);
    Settings::from_vars(vars)
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
