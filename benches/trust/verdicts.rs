//! Verdicts of a report, and whether they are true.

use crate::services::{Part, Service};
use crate::truth::{Change, Truth};
use serde::Deserialize;
use std::path::Path;
use std::{fmt, fs, io};

/// An effect is none within so many points, as reports have it.
const NOTHING: f64 = 1.0;

/// A report, as far as it is looked at.
#[derive(Debug, Deserialize)]
pub(crate) struct Report {
    targets: Vec<Target>,
    load: Option<String>,
    ranked_by: Ranking,
    #[serde(skip)]
    seconds: f64,
}

#[derive(Debug, Deserialize)]
struct Ranking {
    point_index: usize,
    metric: String,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: String,
    name: String,
    verdict: String,
    effects: Vec<Effect>,
}

#[derive(Debug, Deserialize)]
struct Effect {
    point_index: usize,
    metric: String,
    speedup: f64,
    effect_pct: f64,
    ci_low: Option<f64>,
    ci_high: Option<f64>,
}

impl Part {
    /// The kind, where it is one of a wait, and the name.
    pub(crate) fn title(&self) -> String {
        format!("{}{}", if self.is_wait { "wait " } else { "" }, self.name)
    }
}

/// A report's verdict on a part.
#[derive(Debug)]
pub(crate) struct Verdict {
    word: String,
    effect: Option<Change>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = self.effect.map_or(String::new(), |effect| effect.to_string());
        f.pad(&format!("{} {effect}", self.word))
    }
}

impl Report {
    /// The report, and from the profile how long the run took.
    pub(crate) fn read(report: &[u8], profile: &Path) -> io::Result<Report> {
        let mut report: Report = serde_json::from_slice(report)?;
        let profile = fs::read_to_string(profile)?;
        let end = profile.lines().next_back().unwrap_or_default();
        let end: serde_json::Value = serde_json::from_str(end)?;
        report.seconds = end["real_ns"].as_f64().unwrap_or(f64::NAN) / 1e9;
        Ok(report)
    }

    /// How it ranks, and under which load.
    pub(crate) fn head(&self) -> String {
        let load = self.load.as_deref().unwrap_or("unknown");
        format!("{load} load, by {}, {:.0} s", self.ranked_by.metric, self.seconds)
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The truth by what it judges, and whether less of that is better.
    pub(crate) fn of_truth(&self, truth: &Truth) -> (Change, bool) {
        match &*self.ranked_by.metric {
            "throughput" => (truth.throughput, false),
            _ => (truth.latency, true),
        }
    }

    pub(crate) fn verdict(&self, part: &Part) -> Verdict {
        match self.targets.iter().find(|target| target.is(part)) {
            None => Verdict { word: "not tested".into(), effect: None },
            Some(target) => {
                Verdict { word: target.verdict.clone(), effect: target.effect(&self.ranked_by) }
            }
        }
    }

    /// Its verdicts on targets that have no dial.
    pub(crate) fn others(&self, service: &Service) -> impl Iterator<Item = String> {
        self.targets.iter().filter(|target| !service.parts.iter().any(|part| target.is(part))).map(
            |target| {
                let (kind, name, verdict) = (&target.kind, &target.name, &target.verdict);
                let effect = target.effect(&self.ranked_by);
                let effect = effect.map_or(String::new(), |effect| effect.to_string());
                format!("{:<28} {verdict} {effect}", format!("({kind} {name})"))
            },
        )
    }
}

impl Target {
    fn is(&self, part: &Part) -> bool {
        self.name == part.name && (self.kind == "wait") == part.is_wait
    }

    /// The one that it is judged by.
    fn effect(&self, by: &Ranking) -> Option<Change> {
        let on =
            |effect: &&Effect| effect.point_index == by.point_index && effect.metric == by.metric;
        let judged =
            self.effects.iter().filter(on).max_by(|a, b| a.speedup.total_cmp(&b.speedup))?;
        Some(Change {
            mean: judged.effect_pct,
            low: judged.ci_low.unwrap_or(f64::NAN),
            high: judged.ci_high.unwrap_or(f64::NAN),
        })
    }
}

/// How a verdict compares with the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Right,
    FalseMatters,
    FalseNothing,
    Undecided,
}

impl Answer {
    /// A verdict is false where the whole interval of the truth contradicts it.
    pub(crate) fn of(verdict: &Verdict, truth: &Truth, report: &Report) -> Answer {
        let (change, less_is_better) = report.of_truth(truth);
        let (low, high) = match less_is_better {
            true => (-change.high, -change.low),
            false => (change.low, change.high),
        };
        match &*verdict.word {
            "matters" if high <= NOTHING => Answer::FalseMatters,
            "hurts" if low >= -NOTHING => Answer::FalseMatters,
            "nothing" if low > NOTHING || high < -NOTHING => Answer::FalseNothing,
            "matters" | "hurts" | "nothing" => Answer::Right,
            _ => Answer::Undecided,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Answer::Right => "right",
            Answer::FalseMatters => "FALSE",
            Answer::FalseNothing => "FALSE NOTHING",
            Answer::Undecided => "undecided",
        }
    }
}

/// The sums.
#[derive(Debug, Default)]
pub(crate) struct Score {
    answers: Vec<Answer>,
    seconds: Vec<f64>,
}

impl Score {
    pub(crate) fn count(&mut self, answer: Answer) {
        self.answers.push(answer);
    }

    pub(crate) fn settled(&mut self, seconds: f64) {
        self.seconds.push(seconds);
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |answer| self.answers.iter().filter(|it| **it == answer).count();
        let mut seconds = self.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        let median = seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN);
        write!(
            f,
            "TRUST cases={} right={} false_matters={} false_nothing={} undecided={} settle_s_median={median:.1}",
            self.answers.len(),
            count(Answer::Right),
            count(Answer::FalseMatters),
            count(Answer::FalseNothing),
            count(Answer::Undecided),
        )
    }
}
