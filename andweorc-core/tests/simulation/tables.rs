//! Programs whose cases are predicted by several rules, as tables.

use crate::measure::{Comparison, Errors, Truth, in_parallel};
use crate::program::Program;
use crate::rules::{Rules, SHIPPED};
use andweorc_core::time::Speedup;

/// The cases of one program, by each of the rules.
pub(crate) type ByRules = Vec<Vec<Comparison>>;

pub(crate) fn errors<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> Errors {
    Errors::of(comparisons.into_iter().map(Comparison::error))
}

/// Compares each program by each of the rules.
pub(crate) fn compare(programs: &[Program], speedups: &[Speedup], rules: &[Rules]) -> Vec<ByRules> {
    in_parallel(programs, |program| {
        let truth = Truth::of(program, speedups, SHIPPED).unwrap();
        rules.iter().map(|rules| truth.compare(*rules, |_| true).unwrap()).collect()
    })
}

/// The errors of all programs by the rules of this number.
pub(crate) fn errors_by(compared: &[ByRules], n: usize) -> Errors {
    errors(compared.iter().flat_map(|by_rules| &by_rules[n]))
}

/// Prints the truth of each case, and what each of the rules predicts.
pub(crate) fn print_cases(programs: &[Program], compared: &[ByRules]) {
    for (program, by_rules) in programs.iter().zip(compared) {
        println!("{}, {} workers", program.name, program.workers);
        for (n, Comparison { case, truth, .. }) in by_rules[0].iter().enumerate() {
            let what = format!("{} {}", case.target, case.speedup);
            print!("    {what:<18} {truth:>6.2}:");
            by_rules.iter().for_each(|all| print!(" {:>6.2}", all[n].predicted));
            println!();
        }
    }
}

/// Prints and returns the errors of each of the rules, which `of` knows by their number.
pub(crate) fn print_errors<const N: usize>(
    what: &str,
    rules: &[Rules; N],
    of: impl Fn(usize) -> Errors,
) -> [Errors; N] {
    let all = std::array::from_fn(of);
    let names = rules.iter().map(|rules| rules.name);
    print_rows(what, &names.zip(all).collect::<Vec<_>>());
    all
}

/// Prints a row of errors for each name.
pub(crate) fn print_rows(what: &str, rows: &[(&str, Errors)]) {
    println!("\n{what:<44} {:>6} {:>6} {:>6}", "mean", "p95", "worst");
    for (name, Errors { mean, p95, worst, .. }) in rows {
        println!("{name:<44} {mean:>6.2} {p95:>6.2} {worst:>6.2}");
    }
}
