//! Which binary or example is meant.

use crate::cli::RunOptions;
use cargo_metadata::{Metadata, Package, PackageId, Target};
use std::path::Path;
use std::{error, fmt};

/// What is built and run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The package that it is in.
    pub(crate) package: PackageId,
    /// Name of the binary or example.
    pub(crate) name: String,
    /// Whether it is an example.
    pub(crate) example: bool,
}

impl Program {
    /// Whether this is the program, of the targets of its package.
    pub(crate) fn is(&self, target: &Target) -> bool {
        target.name == self.name && if self.example { target.is_example() } else { target.is_bin() }
    }
}

/// Chooses as `cargo run` does: what the options name, else the package's `default-run`, else the only binary there is.
pub(crate) fn select(
    metadata: &Metadata,
    options: &RunOptions,
    folder: &Path,
) -> Result<Program, SelectError> {
    let packages = packages(metadata, options.package.as_deref(), folder)?;
    let example = options.example.is_some();
    let asked = options.bin.as_ref().or(options.example.as_ref());
    let all: Vec<(&Package, Program)> = packages
        .iter()
        .flat_map(|package| package.targets.iter().map(move |target| (*package, target)))
        .filter(|(_, target)| if example { target.is_example() } else { target.is_bin() })
        .map(|(package, target)| {
            (*package, Program { package: package.id.clone(), name: target.name.clone(), example })
        })
        .map(|(package, program)| (package, program))
        .collect();
    todo_placeholder()
}
