//! `cargo build` with what a profile needs: line tables, symbols, frame pointers, and tokio's
//! reports of all tasks (`--cfg tokio_unstable`, but for `--stable`).
//!
//! Cargo takes flags for rustc from one of several places (`RUSTFLAGS`, `target.*.rustflags`,
//! `build.rustflags`) and ignores the others, so that a flag added to one place could switch off
//! the project's own (a linker, a CPU). Therefore this program stands between cargo and rustc as
//! `RUSTC_WRAPPER`, and adds its flags to whatever cargo says, also where cargo asks rustc which
//! cfgs are set, so that dependencies for `cfg(tokio_unstable)` are built.

use crate::cargo::CargoOptions;
use crate::console::Console;
use crate::select::Program;
use cargo_metadata::Message;
use std::ffi::OsString;
use std::io::{self, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, error, fmt};

/// Set for the wrapper, to the wrapper that it replaces (empty: none).
const WRAPPED: &str = "CARGO_ANDWEORC_RUSTC_WRAPPER";

/// Set for the wrapper when it is to leave tokio as it is.
const STABLE: &str = "CARGO_ANDWEORC_STABLE";

/// Cargo's target folder, in that of the profiles. Cargo does not know what the wrapper adds:
/// builds with other flags must not meet.
pub(crate) fn folder(profiles: &Path, options: &CargoOptions) -> PathBuf {
    profiles.join(if options.stable { "build-stable" } else { "build" })
}

/// Builds the program in `folder` into `target`, cargo's diagnostics going to stderr, and tells
/// where its executable is.
pub(crate) fn build(
    folder: &Path,
    target: &Path,
    options: &CargoOptions,
    program: &Program,
    console: Console,
) -> Result<PathBuf, BuildError> {
    let mut cargo = cargo_build(folder, target, options, program).map_err(BuildError::Start)?;
    if console.quiet {
        cargo.arg("--quiet");
    }
    console.detail(format_args!("starts {cargo:?}"));
    let mut cargo = cargo.stdout(Stdio::piped()).spawn().map_err(BuildError::Start)?;
    let out = BufReader::new(cargo.stdout.take().expect("it is piped"));
    let mut executable = None;
    for message in Message::parse_stream(out) {
        if let Message::CompilerArtifact(artifact) = message.map_err(BuildError::Messages)? {
            let target = &artifact.target;
            if program.kind.is(target)
                && target.name == program.name
                && artifact.package_id == program.package
            {
                executable = artifact.executable.map(PathBuf::from);
            }
        }
    }
    if !cargo.wait().map_err(BuildError::Messages)?.success() {
        return Err(BuildError::Failed);
    }
    executable.ok_or_else(|| BuildError::NoExecutable(program.name.clone()))
}

fn cargo_build(
    folder: &Path,
    target: &Path,
    options: &CargoOptions,
    program: &Program,
) -> io::Result<Command> {
    let profile = options.profile();
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--message-format=json-render-diagnostics"])
        .args(["--config", &format!("profile.{profile}.debug=\"line-tables-only\"")])
        .args(["--config", &format!("profile.{profile}.strip=\"none\"")])
        .current_dir(folder)
        .arg("--target-dir")
        .arg(target)
        .args(["--package", &program.package.repr])
        .args([program.kind.option(), &program.name])
        .env(WRAPPED, env::var_os("RUSTC_WRAPPER").unwrap_or_default())
        .env("RUSTC_WRAPPER", env::current_exe()?);
    if options.stable {
        cargo.env(STABLE, "1");
    } else {
        cargo.env_remove(STABLE);
    }
    options.pass_to(&mut cargo);
    Ok(cargo)
}

/// Whether cargo started this program in rustc's stead.
pub(crate) fn is_rustc_wrapper() -> bool {
    env::var_os(WRAPPED).is_some()
}

/// Becomes rustc, or the wrapper that was set before; returns only if that fails.
pub(crate) fn wrap_rustc() -> Box<dyn error::Error> {
    let before = env::var_os(WRAPPED).filter(|wrapper| !wrapper.is_empty());
    let mut command: Vec<OsString> = before.into_iter().chain(env::args_os().skip(1)).collect();
    if command.is_empty() {
        return format!(
            "{WRAPPED} is set, which cargo-andweorc sets only while it builds: unset it"
        )
        .into();
    }
    let rustc = command.remove(0);
    let mut rustc_command = Command::new(&rustc);
    rustc_command.args(command).arg("-Cforce-frame-pointers=yes").env_remove(WRAPPED);
    if env::var_os(STABLE).is_none() {
        rustc_command.args(["--cfg", "tokio_unstable"]);
    }
    let error = rustc_command.exec();
    format!("{} can't be started: {error}", rustc.display()).into()
}

/// A program that can't be built.
#[derive(Debug)]
pub(crate) enum BuildError {
    /// Cargo can't be started.
    Start(io::Error),
    /// The messages of cargo can't be read.
    Messages(io::Error),
    /// The build failed, and cargo said why.
    Failed,
    /// The build made no executable of the program.
    NoExecutable(String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Start(source) => write!(f, "cargo can't be started: {source}"),
            BuildError::Messages(source) => write!(f, "what cargo says can't be read: {source}"),
            BuildError::Failed => f.write_str("the build failed, see above"),
            BuildError::NoExecutable(name) => {
                write!(f, "cargo built no executable `{name}`; is it a library?")
            }
        }
    }
}

impl error::Error for BuildError {}
