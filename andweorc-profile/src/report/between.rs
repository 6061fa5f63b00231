//! How the runs of a report differ.

use crate::estimate::{Analysis, TargetSummary};
use crate::plain;

/// A sentence for each target that so many runs say different things of: that they differ and by
/// how much, which of them are odd, and that only some of them tested it.
pub fn between_runs(runs: usize, analysis: &Analysis) -> Vec<String> {
    let sentence = |target: &TargetSummary| {
        let effect = target.ranking_effect()?;
        let mut said = Vec::new();
        if effect.runs < runs {
            said.push(format!("tested in {} of {runs} runs", effect.runs));
        }
        if let Some(tau) = effect.tau.filter(|_| effect.runs_differ) {
            said.push(format!("runs differ by ±{tau:.1} points"));
        }
        match &target.odd_runs[..] {
            [] => (),
            [one] => said.push(format!("run {} is odd", one + 1)),
            several => {
                let several: Vec<_> = several.iter().map(|run| (run + 1).to_string()).collect();
                said.push(format!("runs {} are odd", several.join(", ")));
            }
        }
        let name = format!("{} {}", target.kind, plain::name(&target.name));
        (!said.is_empty()).then(|| format!("{name}: {}", said.join("; ")))
    };
    analysis.targets.iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::estimate::analyse;
    use crate::estimate::tests::{closed, push};

    /// A run in which `hot` brings so many %, and `cold` nothing if it is tested.
    fn run(hot: u64, cold: bool) -> Run {
        let mut run = closed();
        push(&mut run, None, 0.0, 10_000, 1_000);
        for i in 0..4 {
            push(&mut run, Some(1), 0.5, 10_000 + 100 * hot + i, 1_000);
            push(&mut run, None, 0.0, 10_000 + 3 * i, 1_000);
            if cold {
                push(&mut run, Some(2), 0.5, 10_000 + i, 1_000);
                push(&mut run, None, 0.0, 10_000 + 3 * i, 1_000);
            }
        }
        run
    }

    #[test]
    fn disagreement_between_runs_is_reported() {
        let mut runs: Vec<Run> = (0..8).map(|i| run(20 + i % 3, i < 2)).collect();
        let of = |runs: &[Run]| between_runs(runs.len(), &analyse(runs));
        assert_eq!(
            of(&runs),
            ["span hot: runs differ by ±0.8 points", "span cold: tested in 2 of 8 runs"]
        );
        runs[4] = run(60, false);
        assert!(of(&runs)[0].ends_with("; run 5 is odd"), "{:?}", of(&runs));
        assert_eq!(of(&runs[..1]), Vec::<String>::new());
    }
}
