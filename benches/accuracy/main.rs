//! How far predictions are from the truth, on real programs. `cargo bench --bench accuracy`; see
//! `--help`.
//!
//! Each program runs in a process of its own, with HTTP clients in another. There, prediction and
//! truth take turns: a baseline, an experiment on a target, a baseline, the target's part really
//! faster by as much, a baseline, and so on. All five run with the same wrapping and load, and with
//! andweorc on, so that only the cost differs. Both are estimated by the library's own estimates,
//! from the same number of stretches of the same length.
//!
//! | module | what |
//! |---|---|
//! | `program`, `programs` | what a program is, and the programs |
//! | `hot` | what their parts do where lines and functions are the targets |
//! | `line`, `outside`, `load` | the world outside: services that take their time, HTTP clients |
//! | `measure`, `disturbed` | the turns of one program |
//! | `machine` | what the machine does beside a program, kept out of it |
//! | `cost` | what a sample costs |
//! | `report` | what came out: rows, errors, totals |
//! | `table` | all that as text |
//! | `run` | one process after the other |

mod cost;
mod disturbed;
mod hot;
mod line;
mod load;
mod machine;
mod measure;
mod options;
mod outside;
mod program;
mod programs;
mod report;
mod run;
mod table;
#[path = "../../examples/common/work.rs"]
mod work;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use options::{Mode, Options};
use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    match start() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("accuracy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<ExitCode, Box<dyn Error>> {
    match Options::read()? {
        Mode::Outside => outside::run()?,
        Mode::One(program, turns) => {
            // Not to go on, and disturb others, when the bench is stopped.
            set_pdeathsig(Signal::SIGKILL)?;
            let report = measure::run(program, &turns)?;
            println!("{}", serde_json::to_string(&report)?);
        }
        Mode::SamplingCost => cost::print()?,
        Mode::List => programs::timed()
            .chain(programs::unmarked())
            .for_each(|program| println!("{}", table::listed(program))),
        Mode::Bench(options) => return run::all(&options),
    }
    Ok(ExitCode::SUCCESS)
}
