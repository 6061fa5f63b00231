//! Where the wall time of both sides went, a stack at a time: the differential flame graph.
//!
//! Both sides are divided by their requests, so that neither the length of a run nor its load
//! counts. Stacks are the same where all of their targets are.

use crate::flame::{Flame, StackLabel, flame};
use crate::report::html::script_safe;
use crate::sides::Side;
use andweorc_profile::compare::SameTargets;
use andweorc_profile::{ExampleState, TargetKind, TargetRecord};
use serde::Serialize;
use std::collections::HashMap;

/// In the order in which each needs the ones before it.
pub(super) const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("../report/html/page/format.js"),
    include_str!("../report/html/page/flame.js"),
    include_str!("page/wall.js"),
);

/// The section of the page, and whether it needs [`SCRIPT`].
pub(super) fn section(sides: &[Side; 2]) -> (String, bool) {
    let section =
        |inside: &str| format!("<section><h2>Where wall time went</h2>{inside}</section>");
    match data(sides) {
        Err(why) => (section(&format!("<p class=\"hint\">{why}</p>\n")), false),
        Ok(data) => (section(&graph(&data)), true),
    }
}

fn graph(data: &Data<'_>) -> String {
    let [a, b] = &data.wall.sides;
    let json = serde_json::to_string(data).expect("names are strings and numbers are numbers");
    format!(
        "<p class=\"hint\">Wall time per request, by spans: {} of A in {} and {} of B in {}, before \
         the first experiment. The width of a box is the time on one side, its colour how much \
         more or less that is in B. Whether a difference is by chance is not tested here, as it \
         is for the outcome. Tasks stand for what they did outside of all spans.</p>\
         <noscript><p class=\"hint\">The graph needs JavaScript.</p></noscript>\
         <div id=\"wall\"></div><script type=\"application/json\" id=\"data\">{}</script>\
         <script>{SCRIPT}</script>",
        requests(a),
        seconds(a),
        requests(b),
        seconds(b),
        script_safe(&json)
    )
}

fn requests(side: &Requests) -> String {
    let s = if side.requests == 1 { "" } else { "s" };
    format!("{} request{s}", side.requests)
}

fn seconds(side: &Requests) -> String {
    format!("{:.1} s", side.real_ns as f64 / 1e9)
}

/// Data that the script reads.
#[derive(Debug, Serialize)]
struct Data<'a> {
    wall: Wall<'a>,
}

#[derive(Debug, Serialize)]
struct Wall<'a> {
    /// Names of the states, in the order of [`Stack::times`].
    states: [&'static str; ExampleState::ALL.len()],
    sides: [Requests; 2],
    /// Each after the one around it.
    stacks: Vec<Stack<'a>>,
    /// Sentences on what was not recorded, or not told apart.
    losses: Vec<String>,
}

/// The requests that a side was recorded of.
#[derive(Debug, Serialize)]
struct Requests {
    requests: u64,
    #[serde(skip)]
    real_ns: u64,
}

/// A stack of either side, without those inside of it.
#[derive(Debug, Serialize)]
struct Stack<'a> {
    #[serde(flatten)]
    label: StackLabel<'a>,
    /// Spans or waits that ended, in A and in B.
    count: [u64; 2],
    /// Its own time in ns, in A and in B.
    times: [[u64; ExampleState::ALL.len()]; 2],
}

/// The stacks of both sides.
///
/// # Errors
///
/// In one sentence, when there is nothing to compare.
fn data(sides: &[Side; 2]) -> Result<Data<'_>, String> {
    let flames = sides.each_ref().map(|side| flame(&side.runs));
    let lacking: Vec<&str> = ["A", "B"]
        .into_iter()
        .zip(&flames)
        .filter_map(|(name, flame)| (requests_of(flame) == 0).then_some(name))
        .collect();
    if !lacking.is_empty() {
        return Err(format!(
            "No request was recorded in {}, so that there is no wall time to compare: an older \
             version wrote the profile, or the program had no span or no load while it was \
             observed.",
            lacking.join(" and in ")
        ));
    }
    let [a, b] = sides;
    let same = SameTargets::of(&a.runs, &b.runs);
    let mut stacks: Vec<Stack<'_>> = Vec::new();
    let mut known: HashMap<(Option<usize>, Option<usize>), usize> = HashMap::new();
    // B's names and places are those to look at.
    for (side, flame) in flames.iter().enumerate().rev() {
        let mut places: Vec<usize> = Vec::with_capacity(flame.frames.len());
        for frame in &flame.frames {
            let parent = frame.parent.map(|parent| places[parent]);
            let number = frame.target.and_then(|target| same.number(side, target));
            let place = *known.entry((parent, number)).or_insert_with(|| {
                stacks.push(Stack {
                    label: StackLabel::of(parent, frame.target),
                    count: [0; 2],
                    times: Default::default(),
                });
                stacks.len() - 1
            });
            places.push(place);
            stacks[place].count[side] += frame.count;
            for (sum, ns) in stacks[place].times[side].iter_mut().zip(frame.states) {
                *sum = sum.saturating_add(ns);
            }
        }
    }
    let losses = ["A", "B"].into_iter().zip(&flames);
    let losses = losses
        .flat_map(|(name, it)| it.losses().into_iter().map(move |loss| format!("{name}: {loss}")));
    Ok(Data {
        wall: Wall {
            states: ExampleState::ALL.map(ExampleState::words),
            losses: losses.collect(),
            sides: flames
                .each_ref()
                .map(|flame| Requests { requests: requests_of(flame), real_ns: flame.real_ns }),
            stacks,
        },
    })
}

/// Requests of a side that ended: of all outermost stacks but those of tasks, whose waits count.
fn requests_of(flame: &Flame<'_>) -> u64 {
    let is_request =
        |target: Option<&TargetRecord>| target.is_none_or(|target| target.kind != TargetKind::Task);
    let outermost = flame.frames.iter().filter(|it| it.parent.is_none() && is_request(it.target));
    outermost.fold(0, |sum: u64, frame| sum.saturating_add(frame.count))
}
