//! One program after the other, each in a process of its own.

use crate::options::{ONE, Options};
use crate::outside;
use crate::program::Program;
use crate::report::{Report, Totals};
use crate::work::Pace;
use andweorc_core::program_clock;
use std::error::Error;
use std::fs;
use std::process::{Command, ExitCode, Stdio};

/// Runs what was asked for. The exit code tells when a case could not be measured.
pub(crate) fn all(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    // Once, so that all programs are measured by the same.
    let pace = Pace::measure();
    let (mut reports, mut failed) = (Vec::new(), 0);
    for program in &options.programs {
        match one(program, pace, options) {
            Ok(report) => {
                println!("{report}");
                failed += usize::from(!report.missing.is_empty());
                reports.push(report);
            }
            Err(error) => {
                println!("{}: NOT MEASURED: {error}\n", program.name);
                failed += 1;
            }
        }
    }
    if let Some(file) = &options.json {
        fs::write(file, serde_json::to_string_pretty(&reports)?)
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    }
    if failed > 0 {
        println!("{failed} programs could not be measured, or not all of their cases.");
    }
    let title = match (options.lines, options.unwrapped) {
        (true, _) => "ACCURACY-LINES",
        (false, true) => "ACCURACY-UNWRAPPED",
        (false, false) => "ACCURACY",
    };
    println!("{}", Totals { title, ..Totals::of(&reports) });
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn one(program: &Program, pace: Pace, options: &Options) -> Result<Report, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .args([ONE, program.name])
        .args(["--pace", &pace.rounds_per_ms().to_string()])
        .args(["--workers", &options.workers.to_string()])
        .args(["--budget", &options.budget.as_secs().to_string()])
        .args(options.quick.then_some("--quick"))
        .args(options.lines.then_some("--lines"))
        .args(options.unwrapped.then_some("--unwrapped"))
        .args(options.quiet_machine.then_some("--quiet-machine"))
        .args(program_clock::is_kept_real().then_some("--real-clock"))
        .args(outside::is_steady().then_some("--steady"))
        .env_remove("ANDWEORC_ENABLED")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("its process ended with {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
