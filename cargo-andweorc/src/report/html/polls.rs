//! Polls, long polls, and who waits for whom, as the page's script reads them.

use super::data::shown_place;
use crate::web::Sources;
use andweorc_profile::TargetKind;
use andweorc_profile::estimate::{Analysis, Edge, EdgeSite, Lengths, Party};
use andweorc_profile::{plain, report};
use serde::Serialize;

/// Locks and channels of one wait in the table.
const MOST_SITES: usize = 3;

/// So many kinds of tasks are on the page, and so many waits: those with the most time.
const MOST_KINDS: usize = 100;
const MOST_EDGES: usize = 400;

/// Polls of one kind of task.
#[derive(Debug, Serialize)]
pub(super) struct Polls {
    name: String,
    place: Option<String>,
    /// The address of its place in the editor.
    editor: Option<String>,
    polls: Lengths,
    delays: Lengths,
    /// The outcome of experiments on it.
    tested: Option<String>,
}

/// The long polls.
#[derive(Debug, Serialize)]
pub(super) struct LongPolls {
    threshold_ns: u64,
    places: Vec<LongPoll>,
    /// Long polls that are only counted, in words.
    left_out: Option<String>,
}

#[derive(Debug, Serialize)]
struct LongPoll {
    task: String,
    text: String,
    tested: Option<String>,
    editor: Option<String>,
}

/// Waits of parties for each other.
#[derive(Debug, Serialize)]
pub(super) struct Edges {
    parties: Vec<Node>,
    edges: Vec<Wait>,
    /// Shorter ones that are not here.
    left_out: usize,
}

/// One that waits, or that is waited for.
#[derive(Debug, Serialize)]
struct Node {
    /// `target`, `outside`, `timer` or `unknown`.
    what: &'static str,
    kind: Option<TargetKind>,
    name: String,
    place: Option<String>,
    editor: Option<String>,
}

/// A wait, of the party with this index for another one.
#[derive(Debug, Serialize)]
struct Wait {
    waiter: usize,
    waker: usize,
    ns: u64,
    ns_per_request: Option<f64>,
    share: f64,
    /// The locks and channels where most of it is, in words.
    sites: Vec<String>,
}

/// The polls of each kind of task.
pub(super) fn polls(analysis: &Analysis, sources: &Sources) -> Vec<Polls> {
    let polls = analysis.polls.iter().take(MOST_KINDS).map(|one| {
        let (file, line) = (one.file.as_deref(), one.line);
        Polls {
            name: plain::name(&one.name).into_owned(),
            place: shown_place(&one.name, file, line),
            editor: address(sources, file, line),
            polls: one.polls.clone(),
            delays: one.delays.clone(),
            tested: report::tested_polls(one, analysis),
        }
    });
    polls.collect()
}

/// The long polls, where somebody looked for them.
pub(super) fn long_polls(analysis: &Analysis, sources: &Sources) -> Option<LongPolls> {
    let threshold_ns = analysis.long_polls.as_ref()?.threshold_ns;
    let places = report::long_polls(analysis).into_iter().map(|one| LongPoll {
        task: plain::name(&one.summary.name).into_owned(),
        editor: address(sources, one.summary.at.file.as_deref(), one.summary.at.line),
        text: one.text,
        tested: one.tested,
    });
    let left_out = report::long_polls_left_out(analysis);
    Some(LongPolls { threshold_ns, places: places.collect(), left_out })
}

/// The waits of parties for each other; `None` where nobody was seen to wait.
pub(super) fn edges(analysis: &Analysis, sources: &Sources) -> Option<Edges> {
    let all = &analysis.edges;
    let shown = &all[..all.len().min(MOST_EDGES)];
    let mut parties: Vec<&Party> = Vec::new();
    let mut index = |party| {
        parties.iter().position(|known| *known == party).unwrap_or_else(|| {
            parties.push(party);
            parties.len() - 1
        })
    };
    let wait = |edge: &'_ Edge, waiter, waker| Wait {
        waiter,
        waker,
        ns: edge.ns,
        ns_per_request: edge.ns_per_request.map(f64::round),
        share: edge.share,
        sites: edge.sites.iter().take(MOST_SITES).map(site).collect(),
    };
    let edges: Vec<Wait> =
        shown.iter().map(|edge| wait(edge, index(&edge.waiter), index(&edge.waker))).collect();
    let parties = parties.into_iter().map(|party| node(party, sources)).collect();
    (!edges.is_empty()).then(|| Edges { parties, edges, left_out: all.len() - shown.len() })
}

/// A lock or a channel: `75 %, in Mutex::lock at src/main.rs:40`.
fn site(site: &EdgeSite) -> String {
    format!("{:.0} %{}", 100.0 * site.share, report::wait_place(site))
}

fn node(party: &Party, sources: &Sources) -> Node {
    let other = |what, name: &str| Node {
        what,
        kind: None,
        name: name.to_owned(),
        place: None,
        editor: None,
    };
    match party {
        Party::Target { kind, name, file, line } => Node {
            what: "target",
            kind: Some(*kind),
            name: plain::name(name).into_owned(),
            place: shown_place(name, file.as_deref(), *line),
            editor: address(sources, file.as_deref(), *line),
        },
        Party::Outside => other("outside", "I/O"),
        Party::Timer => other("timer", "timer"),
        _ => other("unknown", "not known"),
    }
}

fn address(sources: &Sources, file: Option<&str>, line: Option<u32>) -> Option<String> {
    let (file, line) = file.zip(line)?;
    sources.address(file, line)
}
