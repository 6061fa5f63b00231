//! How much one experiment scatters, as all experiments of a metric tell, not the few of one
//! target.
//!
//! A target has two or three experiments when its first interval is wanted. How much they scatter
//! is hardly known from them, but it is known from all targets together, and from the baselines,
//! of which each is compared with its neighbours as an experiment is. So the variance of a target
//! is **moderated**: drawn towards that of all, the more so the fewer experiments it has and the
//! more alike targets are. (Smyth 2004, "Linear models and empirical Bayes methods for assessing
//! differential expression", Stat. Appl. Genet. Mol. Biol. 3(1), section 6; limma's moderated t.)
//!
//! Where Smyth matches moments, which takes thousands of groups, the prior here is that of the
//! greatest likelihood, times a weak belief in how alike targets are: a run has two to ten.

use crate::estimate::observation::Observation;
use crate::stats::{self, ln_gamma};

/// The variance of one experiment's logarithm, and from how much it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Variance {
    /// Of one experiment.
    pub(crate) of_one: f64,
    /// Degrees of freedom.
    pub(crate) df: f64,
}

/// How much experiments scatter by one metric of one point.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    /// That of a target of which nothing is known; none where nothing was repeated.
    prior: Option<Variance>,
    /// Degrees of freedom of all groups.
    all_df: f64,
}

/// Where two experiments of one cell share a baseline, so much of their variance is common: a
/// quarter of the baseline's, where an experiment has its own and half of one.
const COMMON: f64 = 1.0 / 6.0;

/// Degrees of freedom that a prior may have.
const PRIOR_DF: [f64; 12] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 40.0, 80.0, 1e3];

/// About so many are believed in before the first experiment, and by what factor, as a logarithm:
/// standard deviations of targets differ by a quarter or so.
const BELIEVED_DF: f64 = 10.0;
const BELIEVED_WIDTH: f64 = 1.0;

impl Scatter {
    /// Of these groups, of which each scatters by itself.
    pub(crate) fn of(groups: impl IntoIterator<Item = Variance>) -> Scatter {
        let groups: Vec<Variance> = groups.into_iter().filter(|group| group.df > 0.0).collect();
        let all_df: f64 = groups.iter().map(|group| group.df).sum();
        Scatter { prior: (all_df > 0.0).then(|| prior(&groups, all_df)), all_df }
    }

    /// Of a target with these experiments.
    pub(crate) fn of_target(&self, observations: &[Observation]) -> Option<Variance> {
        let prior = self.prior?;
        let own = within(observations);
        let df = prior.df + own.df;
        Some(Variance {
            of_one: (prior.df * prior.of_one + own.df * own.of_one) / df,
            df: df.min(self.all_df),
        })
    }
}

/// How much experiments at one speedup differ from their mean in the same run.
pub(crate) fn within(observations: &[Observation]) -> Variance {
    let (mut squares, mut df) = (0.0, 0.0);
    for run in by_run(observations) {
        for speedup in speedups(run) {
            let cell = Cell::of(run, speedup);
            squares += cell.squares;
            df += cell.count - 1.0;
        }
    }
    Variance { of_one: if df > 0.0 { squares / df } else { 0.0 }, df }
}

/// The observations of each run, which are next to each other.
pub(crate) fn by_run(observations: &[Observation]) -> impl Iterator<Item = &[Observation]> {
    observations.chunk_by(|a, b| a.run == b.run)
}

/// The speedups of these experiments, in rising order.
pub(crate) fn speedups(observations: &[Observation]) -> Vec<f64> {
    let mut speedups: Vec<f64> = observations.iter().map(|one| one.speedup).collect();
    speedups.sort_by(f64::total_cmp);
    speedups.dedup();
    speedups
}

/// The experiments of a target at one speedup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    /// Mean of the logarithms.
    pub(crate) log: f64,
    /// The mean of the logarithms that are within reach.
    pub(crate) reach: f64,
    /// How many experiments there are.
    pub(crate) n: usize,
    /// The sum of squares about the mean, each of one experiment.
    squares: f64,
    /// How many observations there are: experiments, or means of several.
    count: f64,
    /// How many share a baseline with the one before.
    shared: usize,
}

impl Cell {
    pub(crate) fn of(observations: &[Observation], speedup: f64) -> Cell {
        let these = || observations.iter().filter(|one| one.speedup == speedup);
        let n: usize = these().map(|one| one.n).sum();
        let mean = |of: fn(&Observation) -> f64| {
            these().map(|one| one.n as f64 * of(one)).sum::<f64>() / n as f64
        };
        let log = mean(|one| one.log_ratio);
        let square = |one: &Observation| one.n as f64 * (one.log_ratio - log).powi(2);
        Cell {
            log,
            reach: mean(|one| one.reach),
            n,
            squares: these().map(square).sum(),
            count: these().count() as f64,
            shared: these().map(|one| one.shared).sum(),
        }
    }

    /// The standard error of its mean.
    pub(crate) fn error(&self, variance: Variance) -> f64 {
        let n = self.n as f64;
        (variance.of_one / n * (1.0 + 2.0 * COMMON * self.shared as f64 / n)).sqrt()
    }

    /// Half the width of its mean's 95 % interval.
    pub(crate) fn half(&self, variance: Variance) -> f64 {
        stats::t_quantile(variance.df) * self.error(variance)
    }
}

/// The prior from which the variances of targets are drawn: inverse chi-squared, with so many
/// degrees of freedom about this variance.
fn prior(groups: &[Variance], all_df: f64) -> Variance {
    let sum: f64 = groups.iter().map(|group| group.df * group.of_one).sum();
    let mean = sum / all_df;
    if mean <= 0.0 {
        return Variance { of_one: 0.0, df: all_df };
    }
    // A few experiments may be alike by chance: a variance of nothing has no logarithm.
    let least = |group: &Variance| Variance { of_one: group.of_one.max(1e-5 * mean), ..*group };
    let groups: Vec<Variance> = groups.iter().map(least).collect();
    let candidate = |df: f64| {
        let of_one = likeliest(&groups, df);
        let belief = ((df / BELIEVED_DF).ln() / BELIEVED_WIDTH).powi(2) / 2.0;
        (Variance { of_one, df }, log_likelihood(&groups, of_one, df) - belief)
    };
    let all = PRIOR_DF.into_iter().map(candidate);
    all.max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map_or(Variance { of_one: mean, df: 1.0 }, |it| it.0)
}

/// The likeliest variance of a prior with so many degrees of freedom, by bisection of its score,
/// which falls.
fn likeliest(groups: &[Variance], df: f64) -> f64 {
    let score = |log: f64| -> f64 {
        let of = |group: &Variance| {
            let x = group.df * group.of_one / log.exp();
            (group.df + df) / 2.0 * x / (df + x) - group.df / 2.0
        };
        groups.iter().map(of).sum()
    };
    let logs = || groups.iter().map(|group| group.of_one.ln());
    let (mut low, mut high) = (
        logs().fold(f64::INFINITY, f64::min) - 20.0,
        logs().fold(f64::NEG_INFINITY, f64::max) + 20.0,
    );
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if score(middle) > 0.0 { low = middle } else { high = middle }
    }
    ((low + high) / 2.0).exp()
}

/// The logarithm of the likelihood of the groups' variances: over that of the prior each is
/// distributed as F, with its own degrees of freedom and those of the prior.
fn log_likelihood(groups: &[Variance], of_one: f64, df: f64) -> f64 {
    let of = |group: &Variance| {
        let (a, b) = (group.df / 2.0, df / 2.0);
        let x = group.of_one / of_one;
        ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * (a / b).ln() + (a - 1.0) * x.ln()
            - (a + b) * (a / b * x).ln_1p()
            - of_one.ln()
    };
    groups.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(speedup: f64, log_ratio: f64, shared: usize) -> Observation {
        Observation { run: 0, speedup, n: 1, log_ratio, seconds: 1.0, shared, reach: 1.0 }
    }

    #[test]
    fn a_target_with_few_experiments_is_taken_to_scatter_as_all_do() {
        let groups = [4.0, 5.0, 6.0].map(|of_one| Variance { of_one, df: 20.0 });
        let scatter = Scatter::of(groups);
        let none = scatter.of_target(&[observation(0.5, 0.0, 0)]).unwrap();
        assert!((4.0..6.0).contains(&none.of_one) && none.df >= 8.0, "{none:?}");
        // Two that are alike by chance.
        let two = scatter.of_target(&[observation(0.5, 0.0, 0), observation(0.5, 0.0, 0)]).unwrap();
        assert!((3.0..none.of_one).contains(&two.of_one), "{two:?}");
        // Many that scatter more.
        let many: Vec<_> =
            (0..200).map(|i| observation(0.5, if i % 2 == 0 { 9.0 } else { -9.0 }, 0)).collect();
        let many = scatter.of_target(&many).unwrap();
        assert!((40.0..85.0).contains(&many.of_one), "{many:?}");
    }

    #[test]
    fn the_less_alike_groups_are_the_less_they_say_of_others() {
        let alike = Scatter::of([4.0, 5.0, 6.0, 5.0].map(|of_one| Variance { of_one, df: 20.0 }));
        let unlike = Scatter::of([0.1, 5.0, 90.0, 1.0].map(|of_one| Variance { of_one, df: 20.0 }));
        assert!(alike.prior.unwrap().df > 4.0 * unlike.prior.unwrap().df);
    }

    #[test]
    fn where_nothing_was_repeated_nothing_is_known() {
        assert_eq!(Scatter::of([]).of_target(&[observation(0.5, 1.0, 0)]), None);
        let nothing = Variance { of_one: 0.0, df: 0.0 };
        assert_eq!(Scatter::of([nothing]).of_target(&[]), None);
    }

    #[test]
    fn variance_is_zero_without_scatter() {
        let scatter = Scatter::of([Variance { of_one: 0.0, df: 5.0 }]);
        assert_eq!(scatter.of_target(&[]).unwrap().of_one, 0.0);
    }

    #[test]
    fn experiments_that_share_baselines_tell_less() {
        let apart: Vec<_> = (0..8).map(|_| observation(0.5, 0.0, 0)).collect();
        let together: Vec<_> = (0..8).map(|i| observation(0.5, 0.0, usize::from(i > 0))).collect();
        let variance = Variance { of_one: 1.0, df: 100.0 };
        let error = |all: &[Observation]| Cell::of(all, 0.5).error(variance);
        assert!((error(&apart).powi(2) - 1.0 / 8.0).abs() < 1e-12);
        // Sum of variances, and twice that of each pair.
        let exact = (8.0 + 2.0 * 7.0 / 6.0) / 64.0;
        assert!((error(&together).powi(2) - exact).abs() < 1e-12);
    }
}
