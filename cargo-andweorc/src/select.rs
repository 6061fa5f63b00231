//! Which binary, example, bench or test is meant.

use crate::cli::ProgramOptions;
use cargo_metadata::{Metadata, Package, PackageId, Target};
use std::path::{Path, PathBuf};
use std::{error, fmt};

/// Program that is built and run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The package that it is in.
    pub(crate) package: PackageId,
    /// Its name.
    pub(crate) name: String,
    /// Its kind.
    pub(crate) kind: Kind,
    /// The folder of its package.
    pub(crate) folder: PathBuf,
}

/// Kind of thing that is built and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A binary.
    Bin,
    /// An example.
    Example,
    /// A bench.
    Bench,
    /// An integration test.
    Test,
}

impl Kind {
    /// The kind and the name that the options name, if they do.
    fn named(options: &ProgramOptions) -> Option<(Kind, &str)> {
        [
            (Kind::Bin, &options.bin),
            (Kind::Example, &options.example),
            (Kind::Bench, &options.bench),
            (Kind::Test, &options.test),
        ]
        .into_iter()
        .find_map(|(kind, name)| Some((kind, name.as_deref()?)))
    }

    /// Whether a target of cargo is of this kind.
    pub(crate) fn is(self, target: &Target) -> bool {
        match self {
            Kind::Bin => target.is_bin(),
            Kind::Example => target.is_example(),
            Kind::Bench => target.is_bench(),
            Kind::Test => target.is_test(),
        }
    }

    /// Cargo's option for it.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Kind::Bin => "--bin",
            Kind::Example => "--example",
            Kind::Bench => "--bench",
            Kind::Test => "--test",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Bin => "binary",
            Kind::Example => "example",
            Kind::Bench => "bench",
            Kind::Test => "test",
        })
    }
}

/// Chooses as `cargo run` does: what the options name, else the package's `default-run`, else the
/// only binary there is.
///
/// `folder` is where the command was started.
pub(crate) fn select(
    metadata: &Metadata,
    options: &ProgramOptions,
    folder: &Path,
) -> Result<Program, SelectError> {
    let packages = packages(metadata, options.cargo.package.as_deref(), folder)?;
    let named = Kind::named(options);
    let kind = named.map_or(Kind::Bin, |(kind, _)| kind);
    let program = |package: &Package, name: &str| Program {
        package: package.id.clone(),
        name: name.to_owned(),
        kind,
        folder: package.manifest_path.parent().map(PathBuf::from).unwrap_or_default(),
    };
    let all: Vec<Program> = packages
        .iter()
        .flat_map(|package| {
            let targets = package.targets.iter().filter(|target| kind.is(target));
            targets.map(|target| program(package, &target.name))
        })
        .collect();
    let names = || all.iter().map(|program| program.name.clone()).collect();
    if let Some((_, name)) = named {
        let found: Vec<&Program> = all.iter().filter(|program| program.name == name).collect();
        return match found[..] {
            [one] => Ok(one.clone()),
            [] => Err(SelectError::NoSuch { name: name.to_owned(), kind, names: names() }),
            _ => Err(SelectError::InSeveralPackages(name.to_owned())),
        };
    }
    let defaults: Vec<Program> = packages
        .iter()
        .filter_map(|package| Some(program(package, package.default_run.as_deref()?)))
        .collect();
    match (&defaults[..], &all[..]) {
        ([one], _) | (_, [one]) => Ok(one.clone()),
        (_, []) => Err(SelectError::NoBinary),
        _ => Err(SelectError::Several(names())),
    }
}

/// The packages that cargo would take: the one named, else the one of the folder, else the default
/// members.
fn packages<'a>(
    metadata: &'a Metadata,
    name: Option<&str>,
    folder: &Path,
) -> Result<Vec<&'a Package>, SelectError> {
    let members = metadata.workspace_packages();
    if let Some(name) = name {
        let found = members.iter().find(|package| package.name.as_str() == name);
        return found.map(|package| vec![*package]).ok_or_else(|| SelectError::NoPackage {
            name: name.to_owned(),
            names: members.iter().map(|package| package.name.to_string()).collect(),
        });
    }
    let manifest = folder.ancestors().map(|at| at.join("Cargo.toml")).find(|file| file.exists());
    let at_root =
        manifest.as_deref() == Some(metadata.workspace_root.join("Cargo.toml").as_std_path());
    let here = members
        .iter()
        .find(|package| manifest.as_deref() == Some(package.manifest_path.as_std_path()));
    Ok(match here {
        Some(package) if !at_root => vec![*package],
        _ => metadata.workspace_default_packages(),
    })
}

/// No program, or none in particular, is meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SelectError {
    /// The workspace has no such package.
    NoPackage {
        /// The one asked for.
        name: String,
        /// Names of the packages that there are.
        names: Vec<String>,
    },
    /// There is no such thing of this name.
    NoSuch {
        /// The one asked for.
        name: String,
        /// Kind that was asked for.
        kind: Kind,
        /// Names of the programs of this kind that there are.
        names: Vec<String>,
    },
    /// More than one package has the program.
    InSeveralPackages(String),
    /// There is no binary.
    NoBinary,
    /// There are these binaries, and none is chosen.
    Several(Vec<String>),
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::NoPackage { name, names } => {
                write!(f, "the workspace has no package `{name}`; it has {}", list(names))
            }
            SelectError::NoSuch { name, kind, names } => {
                write!(f, "there is no {kind} `{name}`; there is {}", list(names))
            }
            SelectError::InSeveralPackages(name) => {
                write!(f, "several packages have `{name}`: choose one with `-p PKG`")
            }
            SelectError::NoBinary => f.write_str(
                "there is no binary to run: choose an example with `--example NAME`, or a package with `-p PKG`",
            ),
            SelectError::Several(names) => {
                write!(f, "there are several binaries: choose one with `--bin NAME`: {}", list(names))
            }
        }
    }
}

impl error::Error for SelectError {}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
