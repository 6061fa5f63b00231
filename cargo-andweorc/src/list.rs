//! `cargo andweorc list`: which profiles and baselines there are.

use crate::console::{self, style};
use crate::project;
use andweorc_profile::plain;
use andweorc_profile::{Profile, Run, TargetKind, TargetRecord};
use clap::Args;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

/// The options of `list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc list
  cargo andweorc list runs/before")]
pub(crate) struct ListOptions {
    /// The folder to look in [default: andweorc in the target folder]
    pub(crate) folder: Option<PathBuf>,
}

/// Prints a table of profiles, one of baselines, and those of the last `run --compare`.
pub(crate) fn list(options: &ListOptions) -> Result<ExitCode, Box<dyn Error>> {
    let folder = options.folder.clone().unwrap_or_else(project::folder);
    let mut out = String::new();
    for (title, inner) in [
        ("Profiles", ""),
        ("Baselines", "baselines"),
        ("Compared, A", "compare/a"),
        ("Compared, B", "compare/b"),
    ] {
        let folder = if inner.is_empty() { folder.clone() } else { folder.join(inner) };
        let files = project::profiles_in(&folder);
        if files.is_empty() {
            continue;
        }
        let heading = ["NAME", "DATE", "PROGRAM", "RUNS", "SIZE", "TARGETS"].map(str::to_owned);
        let mut rows: Vec<[String; 6]> = files.iter().map(|file| row(file)).collect();
        // The newest first; the second cell is the date, which is absent where it can't be read.
        rows.sort_by(|a, b| b[1].cmp(&a[1]));
        rows.insert(0, heading);
        let (bold, end) = (style::BOLD, style::END);
        out += &format!("{bold}{title}{end} in {}\n", plain::path(&folder));
        out += &table(&rows);
    }
    if out.is_empty() {
        out = format!(
            "no profiles in {}; `cargo andweorc run` makes one, `--save-baseline NAME` keeps one\n",
            plain::path(&folder)
        );
    }
    console::print(&out)?;
    Ok(ExitCode::SUCCESS)
}

fn row(file: &Path) -> [String; 6] {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = fs::metadata(file).map_or(0, |metadata| metadata.len());
    match Profile::read(file) {
        Ok(profile) => {
            let first = &profile.runs[0].header;
            let targets = tested(&profile.runs);
            [
                name,
                date(first.start_unix_ms),
                plain::name(&first.program).into_owned(),
                profile.runs.len().to_string(),
                size(bytes),
                targets,
            ]
        }
        Err(error) => {
            let why = error.kind().to_string();
            [name, String::new(), String::new(), String::new(), size(bytes), format!("({why})")]
        }
    }
    .map(|cell| plain::sentence(&cell).into_owned())
}

/// Names of the targets that were tested.
fn tested(runs: &[Run]) -> String {
    let names: BTreeSet<_> = runs
        .iter()
        .flat_map(|run| {
            let tested = |id| run.experiments.iter().any(|one| one.target == Some(id));
            let is_part = |target: &&TargetRecord| target.kind != TargetKind::Probe;
            run.targets.iter().filter(is_part).filter(move |target| tested(target.id))
        })
        .map(|target| plain::name(&target.name))
        .collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// `2026-11-21 07:57:32` (UTC)
fn date(unix_ms: u64) -> String {
    let mut text = String::new();
    // Beyond the year 9999, in a damaged header, there is no such date.
    match UNIX_EPOCH.checked_add(Duration::from_millis(unix_ms)) {
        Some(time) if write!(text, "{}", humantime::format_rfc3339_seconds(time)).is_ok() => {
            text.chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).collect()
        }
        _ => "?".to_owned(),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Columns below each other, the last as it is.
fn table(rows: &[[String; 6]]) -> String {
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(i, cell)| {
            let width = if i + 1 == row.len() { 0 } else { width(i) };
            format!("{cell:<width$}")
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out += &format!("  {}\n", line.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_sizes_are_short() {
        assert_eq!(date(1_795_247_852_000), "2026-11-21 07:57:32");
        assert_eq!(date(u64::MAX), "?");
        assert_eq!([size(12), size(12_345), size(12_345_678)], ["12 B", "12 kB", "12.3 MB"]);
    }
}
