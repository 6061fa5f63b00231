//! `cargo andweorc merge`: several profiles as one.

use crate::console::Console;
use crate::{project, sides};
use andweorc_profile::Profile;
use andweorc_profile::plain;
use andweorc_profile::report::counted;
use clap::Args;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// The options of `merge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc merge all.jsonl run1.jsonl run2.jsonl run3.jsonl
  cargo andweorc merge target/andweorc/baselines/main.jsonl runs/

The runs stay apart in the merged profile: reports take them together, comparisons as so many runs.")]
pub(crate) struct MergeOptions {
    /// Where the merged profile goes
    pub(crate) out: PathBuf,
    /// Profiles, folders of profiles, or names of baselines
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<String>,
    /// Replace OUT if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Concatenates what can be read.
pub(crate) fn merge(options: &MergeOptions, console: Console) -> Result<ExitCode, Box<dyn Error>> {
    let out = plain::path(&options.out);
    if options.out.exists() && !options.force {
        return Err(format!("{out} exists already; `--force` replaces it").into());
    }
    project::make_folder_of(&options.out)?;
    let (mut merged, mut runs) = (Vec::new(), 0);
    for input in &options.inputs {
        for file in sides::files(input)? {
            let profile = Profile::read(&file)?;
            let name = plain::path(&file);
            console.detail(format_args!("{name}: {}", counted(profile.runs.len(), "run")));
            runs += profile.runs.len();
            let bytes = fs::read(&file).map_err(|error| format!("{name}: {error}"))?;
            // What was torn off at the end would tear the next run's header.
            let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            merged.extend_from_slice(&bytes[..whole]);
        }
    }
    fs::write(&options.out, merged).map_err(|error| format!("{out} can't be written: {error}"))?;
    console.hint(format_args!("{} in {out}", counted(runs, "run")));
    Ok(ExitCode::SUCCESS)
}
