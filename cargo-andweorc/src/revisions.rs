//! `cargo andweorc run --compare`: two versions built and run in turns on one host.
//!
//! Runs of one build differ by what the host does meanwhile. Run in turns, A B A B, both versions
//! meet the same, and each run is an observation of what is left. Both are started in the user's
//! folder with the same arguments and settings: the program is all that differs.

use crate::cli::ProgramOptions;
use crate::console::{Console, style};
use crate::outside::Outside;
use crate::run::{self, quoted};
use crate::select::Program;
use crate::sides::Side;
use crate::worktree::{Commit, Worktree};
use crate::{build, child, history, project, report, select};
use andweorc_profile::Run;
use andweorc_profile::joint::United;
use andweorc_profile::plain;
use andweorc_profile::report::Looks;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One of the two.
struct Version {
    name: String,
    program: Program,
    executable: PathBuf,
    /// Where its profiles go.
    profiles: PathBuf,
    runs: Vec<Run>,
}

/// Builds, runs in turns, so often each, and returns what was measured.
///
/// # Errors
///
/// When a version can't be built, or a run fails or measures nothing.
pub(crate) fn run(
    revisions: &str,
    runs: u32,
    options: &ProgramOptions,
    console: Console,
) -> Result<[Side; 2], Box<dyn Error>> {
    let budget = run::budget(options)?;
    let folder = options.cargo.folder()?;
    let (a, b) = match revisions.split_once("..") {
        Some((a, b)) => (a, Some(b)),
        None => (revisions, None),
    };
    // Both are looked up before the first build.
    let a = Commit::find(&folder, a)?;
    let b = b.map(|b| Commit::find(&folder, b)).transpose()?;
    let metadata = options.cargo.metadata(&folder)?;
    let profiles = metadata.target_directory.as_std_path().join("andweorc");
    let place = Place {
        user: folder,
        built: build::folder(&profiles, &options.cargo),
        workspace: fs::canonicalize(&metadata.workspace_root)?,
        aside: profiles.join("compare"),
    };
    // Before the builds, which would be in vain.
    project::make_folder_of(&place.aside.join("a/01.jsonl"))?;
    let mut versions = [
        place.version("a", Some(&a), options, console)?,
        place.version("b", b.as_ref(), options, console)?,
    ];
    'rounds: for round in 1..=runs {
        for version in &mut versions {
            console.hint(format_args!(
                "{}run {round} of {runs} of {}{}",
                style::BOLD,
                plain::name(&version.name),
                style::END
            ));
            version.run(round, options, budget, console)?;
            if child::stop_asked() {
                break 'rounds;
            }
        }
    }
    let [a, b] = &versions;
    if b.runs.is_empty() {
        return Err(
            "stopped before both versions had run once, so there is nothing to compare".into()
        );
    }
    console.hint(format_args!(
        "as Markdown: cargo andweorc diff --format markdown {} {}\n",
        quoted(&a.profiles),
        quoted(&b.profiles)
    ));
    Ok(versions.map(|Version { name, profiles, runs, .. }| Side {
        name,
        files: project::profiles_in(&profiles),
        runs,
    }))
}

/// Where things are.
struct Place {
    /// The folder that the command was started in.
    user: PathBuf,
    /// Cargo's target folder for the checkout.
    built: PathBuf,
    /// The folder of the checkout's workspace.
    workspace: PathBuf,
    /// Worktrees, executables and profiles.
    aside: PathBuf,
}

impl Place {
    /// Builds a commit, or the checkout as it is.
    fn version(
        &self,
        letter: &str,
        commit: Option<&Commit>,
        options: &ProgramOptions,
        console: Console,
    ) -> Result<Version, Box<dyn Error>> {
        let worktree =
            commit.map(|commit| Worktree::add(&self.user, commit, &self.aside)).transpose()?;
        let folder = worktree.as_ref().map_or_else(|| self.user.clone(), Worktree::folder);
        let name = commit.map_or("the checkout", |commit| &commit.name);
        let outside = worktree.as_ref().map(|it| Outside::link(it, &self.workspace)).transpose()?;
        let outside = outside.unwrap_or_default();
        for folder in &outside.linked {
            console.hint(format_args!("{name} is built with {} as it is", quoted(folder)));
        }
        if worktree.is_some() {
            let shared = self.share_lock(&folder);
            shared.map_err(|error| format!("{name}: {error}{}", outside.advice()))?;
        }
        // A target folder of its own: to cargo the same package in another folder of the same
        // layout is the same package, and as fresh as its files are old.
        let target = match commit {
            Some(_) => build::folder(&self.aside, &options.cargo).join(letter),
            None => self.built.clone(),
        };
        let built = build(&folder, &target, options, console);
        let (program, executable) =
            built.map_err(|error| format!("{name}: {error}{}", outside.advice()))?;
        let profiles = self.aside.join(letter);
        empty(&profiles)?;
        // The next build may put another executable in its place.
        let copy = profiles.join(&program.name);
        fs::copy(&executable, &copy)
            .map_err(|error| format!("{} can't be written: {error}", copy.display()))?;
        Ok(Version { name: name.to_owned(), program, executable: copy, profiles, runs: Vec::new() })
    }

    /// Gives the worktree of a project that doesn't commit its `Cargo.lock` that of the checkout:
    /// dependencies shall not differ.
    fn share_lock(&self, folder: &Path) -> Result<(), String> {
        let to = project::metadata(folder)?.workspace_root.join("Cargo.lock");
        let lock = self.workspace.join("Cargo.lock");
        if lock.exists() && !to.exists() {
            fs::copy(&lock, &to).map_err(|error| format!("{to} can't be written: {error}"))?;
        }
        Ok(())
    }
}

fn build(
    folder: &Path,
    target: &Path,
    options: &ProgramOptions,
    console: Console,
) -> Result<(Program, PathBuf), Box<dyn Error>> {
    let metadata = options.cargo.metadata(folder)?;
    let program = select::select(&metadata, options, folder)?;
    let executable = build::build(folder, target, &options.cargo, &program, console)?;
    Ok((program, executable))
}

impl Version {
    fn run(
        &mut self,
        round: u32,
        options: &ProgramOptions,
        budget: Duration,
        console: Console,
    ) -> Result<(), Box<dyn Error>> {
        let out = self.profiles.join(format!("{round:02}.jsonl"));
        let (ended, profile) =
            run::profile(&self.program, &self.executable, options, &[], &out, budget, console)
                .map_err(|error| format!("{}: {error}", self.name))?;
        let failed = !ended.stopped && !ended.status.success();
        if failed && !child::stop_asked() {
            return Err(format!(
                "{} failed ({}); its profile is {}",
                self.name,
                child::how(ended.status),
                out.display()
            )
            .into());
        }
        if !history::has_measured(&profile.runs) && !child::stop_asked() {
            return Err(format!(
                "{}: nothing was measured: {}",
                self.name,
                report::words(&United::apart(profile.runs), Looks::default())
            )
            .into());
        }
        self.runs.extend(profile.runs);
        Ok(())
    }
}

/// A folder with nothing in it.
fn empty(folder: &Path) -> Result<(), String> {
    let removed = if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) };
    removed
        .and_then(|()| fs::create_dir_all(folder))
        .map_err(|error| format!("{} can't be made empty: {error}", folder.display()))
}
