//! Predictions and truths as text.

use crate::change::{Change, Changes};
use crate::parts::Case;
use crate::truth::Turn;

/// A true change of the throughput within so many points is none.
const NULL: f64 = 1.0;

/// A case: prediction and truth.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) predicted: Option<Changes>,
    pub(crate) truth: Changes,
}

impl Row {
    /// Error of the predicted throughput, in points.
    fn error(&self) -> Option<f64> {
        Some(self.predicted?.throughput.percent - self.truth.throughput.percent)
    }
}

/// Prints all cases, and the closing line: means and worst errors of the throughput, in points.
pub(crate) fn print(unchanged: &[Turn], rows: &[Row]) {
    let mean =
        |of: fn(&Turn) -> f64| unchanged.iter().map(of).sum::<f64>() / unchanged.len() as f64;
    println!(
        "\nThe gateway as it is: {:.0}/s, p50 {:.2} ms, p99 {:.2} ms",
        mean(|turn| turn.per_second),
        mean(|turn| turn.p50_ms),
        mean(|turn| turn.p99_ms)
    );
    for row in rows {
        println!("\n{:<32}{:<26}{:<26}error", row.case.to_string(), "predicted", "truth");
        let predicted = |of: fn(&Changes) -> Change| row.predicted.as_ref().map(of);
        line("throughput", predicted(|it| it.throughput), row.truth.throughput);
        line("p50", predicted(|it| it.p50), row.truth.p50);
        line("p99", predicted(|it| it.p99), row.truth.p99);
    }
    println!("\n{}", closing(rows));
}

fn line(name: &str, predicted: Option<Change>, truth: Change) {
    let (said, error) = match predicted {
        Some(change) => (change.to_string(), format!("{:+.1}", change.percent - truth.percent)),
        None => ("not tested enough".to_owned(), String::new()),
    };
    println!("{:<32}{said:<26}{truth:<26}{error}", format!("  {name}"));
}

fn closing(rows: &[Row]) -> String {
    let errors = || rows.iter().filter_map(|row| Some((row, row.error()?.abs())));
    let cases = errors().count();
    let mean = errors().map(|(_, error)| error).sum::<f64>() / cases.max(1) as f64;
    let worst = errors().map(|(_, error)| error).fold(0.0, f64::max);
    let nulls = errors().filter(|(row, _)| row.truth.throughput.percent.abs() <= NULL);
    let null_worst = nulls.map(|(_, error)| error).fold(0.0, f64::max);
    format!("CHAIN cases={cases} mean={mean:.1} worst={worst:.1} null_worst={null_worst:.1}")
}
