//! Cargo's own options: which project is meant, and how it is built.

use crate::project;
use cargo_metadata::Metadata;
use clap::Args;
use std::io;
use std::path::{self, Path, PathBuf};
use std::process::Command;

const HEADING: &str = "Cargo";

/// The options that mean what they mean to `cargo build`.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct CargoOptions {
    /// The `Cargo.toml` of the project [default: that of the current folder, or of one around it]
    #[arg(long, value_name = "PATH", value_parser = manifest)]
    pub(crate) manifest_path: Option<PathBuf>,
    /// The package that it is in
    #[arg(short, long, value_name = "PKG")]
    pub(crate) package: Option<String>,
    /// Features to build with, as in `cargo build`
    #[arg(short = 'F', long)]
    features: Vec<String>,
    /// Build with all features
    #[arg(long)]
    all_features: bool,
    /// Build without the default features
    #[arg(long)]
    no_default_features: bool,
    /// Build with this profile [default: release]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["dev", "release"])]
    profile: Option<String>,
    /// Build with the profile `dev` instead of `release`
    #[arg(long, conflicts_with = "release")]
    dev: bool,
    /// Build with the profile `release`, which is the default
    #[arg(short, long)]
    release: bool,
    /// Build for this target triple, which must be one that runs here (what is tested is named by
    /// `--targets`)
    #[arg(long, value_name = "TRIPLE", value_parser = triple)]
    target: Option<String>,
    /// Build and keep profiles in this folder [default: cargo's target folder]
    #[arg(long, value_name = "FOLDER")]
    target_dir: Option<PathBuf>,
    /// Leave `Cargo.lock` as it is, or fail
    #[arg(long)]
    locked: bool,
    /// Build without the network
    #[arg(long)]
    offline: bool,
    /// Build without `--cfg tokio_unstable`, for dependencies that break under it: of the tasks
    /// that libraries spawn, only what is wrapped is seen
    #[arg(long)]
    pub(crate) stable: bool,
}

impl CargoOptions {
    /// The folder that the project is looked for from.
    ///
    /// # Errors
    ///
    /// When the current folder is gone.
    pub(crate) fn folder(&self) -> io::Result<PathBuf> {
        let manifest = self.manifest_path.as_deref();
        path::absolute(manifest.and_then(Path::parent).unwrap_or(Path::new("")).join("."))
    }

    /// The project of a folder, its target folder being the one that was asked for.
    ///
    /// # Errors
    ///
    /// When there is none, with what cargo says about it.
    pub(crate) fn metadata(&self, folder: &Path) -> Result<Metadata, String> {
        let flags = [("--locked", self.locked), ("--offline", self.offline)];
        let flags = flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag.to_owned());
        let mut metadata = project::metadata_with(folder, flags.collect())?;
        if let Some(target) = &self.target_dir {
            let absolute = path::absolute(target).map_err(|error| error.to_string())?;
            metadata.target_directory = absolute.try_into().map_err(|_| {
                format!("--target-dir {}: its name must be valid UTF-8", target.display())
            })?;
        }
        Ok(metadata)
    }

    /// The profile to build with.
    pub(crate) fn profile(&self) -> &str {
        let default = if self.dev { "dev" } else { "release" };
        self.profile.as_deref().unwrap_or(default)
    }

    /// Gives the command the options that tell what is built and how, but for package and target
    /// folder.
    pub(crate) fn pass_to(&self, cargo: &mut Command) {
        cargo.args(["--profile", self.profile()]);
        for (flag, given) in [
            ("--all-features", self.all_features),
            ("--no-default-features", self.no_default_features),
            ("--locked", self.locked),
            ("--offline", self.offline),
        ] {
            cargo.args(given.then_some(flag));
        }
        for features in &self.features {
            cargo.args(["--features", features]);
        }
        if let Some(triple) = &self.target {
            cargo.args(["--target", triple]);
        }
    }
}

fn manifest(value: &str) -> Result<PathBuf, &'static str> {
    let path = Path::new(value);
    match path.file_name() {
        Some(name) if name == "Cargo.toml" && path.is_file() => Ok(path.to_owned()),
        _ => Err("not the path of a `Cargo.toml` that is there"),
    }
}

fn triple(value: &str) -> Result<String, &'static str> {
    if value.contains('-') || value.ends_with(".json") {
        Ok(value.to_owned())
    } else {
        Err(
            "not a target triple, such as `x86_64-unknown-linux-gnu`; what is tested is named by `--targets`",
        )
    }
}
