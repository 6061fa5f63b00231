//! Edges from each waiter to its waker: the waits of all stacks of wall time, by the innermost span
//! or task that waits and by the target that ended the wait, with the locks and channels at which
//! they wait.

use crate::{Run, TargetKind, TargetRecord, WaitSite, WallRecord};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// One that waits, or that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Party {
    /// A span, or a kind of task outside of all spans.
    Target {
        /// Its kind.
        kind: TargetKind,
        /// Its name.
        name: String,
        /// Source file, where known.
        file: Option<String>,
        /// Line, where known.
        line: Option<u32>,
    },
    /// The world outside; timers too, where they can't be told from it.
    Outside,
    /// A timer.
    Timer,
    /// Another task or thread, and it is not known which.
    Unknown,
}

/// How long one waited for another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Edge {
    /// The one that waits.
    pub waiter: Party,
    /// The one that ends the wait.
    pub waker: Party,
    /// Time of the waits in all, ns.
    pub ns: u64,
    /// That time for each request in which such a wait may be, ns: of the requests that have the
    /// waiter's stacks.
    pub ns_per_request: Option<f64>,
    /// Its share of the wall time of all requests and tasks, 0 to 1.
    pub share: f64,
    /// Its share of the waiter's own wall time, 0 to 1.
    pub waiter_share: f64,
    /// The locks and channels where the waits were, as far as samples tell, the longest first.
    pub sites: Vec<EdgeSite>,
}

/// One lock, channel or the like, by the line that waits there.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EdgeSite {
    /// The function of it that was called: `tokio::sync::mutex::Mutex::lock`. `None` where code in
    /// scope left the waker itself.
    pub call: Option<String>,
    /// The innermost function in scope; `None` where none was seen.
    pub function: Option<String>,
    /// Its source file, where known.
    pub file: Option<String>,
    /// The line in that file, where known.
    pub line: Option<u32>,
    /// Part of the edge's waits that is there, 0 to 1.
    pub share: f64,
    /// Samples that say so.
    pub samples: u64,
}

/// The edges of all runs, the longest first.
pub(super) fn edges(runs: &[Run]) -> Vec<Edge> {
    let mut all = Sums::default();
    for run in runs {
        let targets: HashMap<u32, &TargetRecord> =
            run.targets.iter().map(|target| (target.id, target)).collect();
        for record in &run.wall {
            all.add(record, |id| targets.get(&id).copied());
        }
    }
    all.into_edges()
}

/// Wall time of requests and tasks.
#[derive(Default)]
struct Sums {
    total_ns: u64,
    own_ns: HashMap<Party, u64>,
    edges: HashMap<(Party, Party), Sum>,
}

/// Waits of one for another.
#[derive(Default)]
struct Sum {
    ns: u64,
    /// Requests with such waits, at least of some: the root's stack and how many there were.
    requests: HashMap<Party, u64>,
    /// Time and samples by site, which is a row without ids, time and samples.
    sites: HashMap<WaitSite, (u64, u64)>,
}

impl Sums {
    fn add<'a>(&mut self, record: &WallRecord, target: impl Fn(u32) -> Option<&'a TargetRecord>) {
        let stacks = &record.stacks;
        let of = |id: Option<u32>| id.and_then(&target).map_or(Party::Unknown, Party::from);
        // Each comes after the one around it.
        let mut roots: Vec<usize> = Vec::with_capacity(stacks.len());
        let mut seen: HashMap<(Party, Party), HashMap<usize, u64>> = HashMap::new();
        for (at, stack) in stacks.iter().enumerate() {
            let root = stack.parent.and_then(|parent| roots.get(parent as usize).copied());
            let root = root.unwrap_or(at);
            roots.push(root);
            let waiter = of(stack.target);
            for sum in [&mut self.total_ns, self.own_ns.entry(waiter.clone()).or_default()] {
                *sum = sum.saturating_add(stack.total_ns());
            }
            let tasks = stack.tasks.iter().map(|waker| (of(waker.by), waker.ns));
            let others = [(Party::Outside, stack.outside_ns), (Party::Timer, stack.timer_ns)];
            for (waker, ns) in tasks.chain(others).filter(|(_, ns)| *ns > 0) {
                let by_root = seen.entry((waiter.clone(), waker)).or_default();
                let sum = by_root.entry(root).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
        for (edge, by_root) in seen {
            let sum = self.edges.entry(edge).or_default();
            for (root, ns) in by_root {
                sum.ns = sum.ns.saturating_add(ns);
                let of = &stacks[root];
                if let Some(span) = of.target.and_then(&target)
                    && span.kind == TargetKind::Span
                {
                    let count = sum.requests.entry(Party::from(span)).or_default();
                    *count = count.saturating_add(of.count);
                }
            }
        }
        for site in &record.wait_sites.sites {
            // Where a span is left before the wait, the wait is another one's.
            if let Some(sum) = self.edges.get_mut(&(of(site.waiter), of(site.by))) {
                let place = WaitSite { waiter: None, by: None, ns: 0, samples: 0, ..site.clone() };
                let (ns, samples) = sum.sites.entry(place).or_default();
                *ns = ns.saturating_add(site.ns);
                *samples = samples.saturating_add(site.samples);
            }
        }
    }

    fn into_edges(self) -> Vec<Edge> {
        let total = self.total_ns.max(1) as f64;
        let edge = |((waiter, waker), sum): ((Party, Party), Sum)| {
            let requests = sum.requests.values().fold(0_u64, |all, one| all.saturating_add(*one));
            let ns_per_request = (requests > 0).then(|| sum.ns as f64 / requests as f64);
            let own = self.own_ns.get(&waiter).copied().unwrap_or(0).max(1) as f64;
            let (share, waiter_share) = (sum.ns as f64 / total, sum.ns as f64 / own);
            let sites = sites(sum.sites);
            Edge { waiter, waker, ns: sum.ns, ns_per_request, share, waiter_share, sites }
        };
        let mut edges: Vec<Edge> = self.edges.into_iter().map(edge).collect();
        let order = |edge: &Edge| (Reverse(edge.ns), edge.waiter.clone(), edge.waker.clone());
        edges.sort_by_cached_key(order);
        edges
    }
}

/// The sites that have a name, with their parts of all that were sampled.
fn sites(all: HashMap<WaitSite, (u64, u64)>) -> Vec<EdgeSite> {
    let sampled = all.values().fold(0_u64, |sum, (ns, _)| sum.saturating_add(*ns)).max(1);
    let mut named: Vec<_> = all
        .into_iter()
        .filter(|(site, _)| site.call.is_some() || site.function.is_some())
        .collect();
    named.sort_unstable_by(|(a, (a_ns, _)), (b, (b_ns, _))| b_ns.cmp(a_ns).then_with(|| a.cmp(b)));
    let site = |(site, (ns, samples)): (WaitSite, (u64, u64))| EdgeSite {
        call: site.call,
        function: site.function,
        file: site.file,
        line: site.line,
        share: ns as f64 / sampled as f64,
        samples,
    };
    named.into_iter().map(site).collect()
}

impl From<&TargetRecord> for Party {
    fn from(target: &TargetRecord) -> Party {
        let TargetRecord { kind, name, file, line, .. } = target.clone();
        Party::Target { kind, name, file, line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::tests::run;
    use crate::{WallStack, WallWaker};

    #[test]
    fn sites_have_their_parts_of_an_edge_and_those_without_a_name_are_counted() {
        let mut run = run();
        run.targets = vec![
            TargetRecord::new(1, TargetKind::Task, "handle"),
            TargetRecord::new(2, TargetKind::Task, "audit"),
        ];
        let waits = |id, by| WallStack {
            target: Some(id),
            tasks: vec![WallWaker { by: Some(by), ns: 500 }],
            ..WallStack::default()
        };
        let site = |by, ns, line: Option<u32>| WaitSite {
            waiter: Some(1),
            by: Some(by),
            ns,
            samples: 2,
            call: line.map(|_| "tokio::sync::mutex::Mutex::lock".to_owned()),
            line,
            ..WaitSite::default()
        };
        let mut record = WallRecord { stacks: vec![waits(1, 2)], ..WallRecord::default() };
        // The last one is of an edge that nobody has.
        record.wait_sites.sites =
            vec![site(2, 100, Some(7)), site(2, 240, Some(9)), site(2, 60, None), site(1, 9, None)];
        run.wall = vec![record.clone(), record];
        let found = edges(&[run]);
        let [edge] = &found[..] else { panic!("{found:?}") };
        let shown: Vec<_> = edge.sites.iter().map(|it| (it.line, it.share, it.samples)).collect();
        assert_eq!(shown, [(Some(9), 0.6, 4), (Some(7), 0.25, 4)]);
    }

    #[test]
    fn waits_of_a_span_in_several_stacks_are_one_edge() {
        let mut run = run();
        run.targets.clear();
        for (id, kind, name) in [
            (1, TargetKind::Span, "checkout"),
            (2, TargetKind::Span, "refund"),
            (3, TargetKind::Span, "lock"),
            (4, TargetKind::Task, "writer"),
        ] {
            run.targets.push(TargetRecord::new(id, kind, name));
        }
        let stack = |parent, target, count, tasks: &[(Option<u32>, u64)]| WallStack {
            parent,
            target: Some(target),
            count,
            tasks: tasks.iter().map(|&(by, ns)| WallWaker { by, ns }).collect(),
            ..WallStack::default()
        };
        let mut stacks = vec![
            stack(None, 1, 10, &[]),
            stack(Some(0), 3, 10, &[(Some(4), 600), (None, 100)]),
            stack(None, 2, 5, &[]),
            stack(Some(2), 3, 5, &[(Some(4), 200)]),
        ];
        stacks[0].running_ns = 1_000;
        stacks[2].timer_ns = 100;
        run.wall.push(WallRecord { real_ns: 1, stacks, ..WallRecord::default() });
        let found = edges(&[run]);
        let name = |party: &Party| match party {
            Party::Target { name, .. } => name.clone(),
            other => format!("{other:?}"),
        };
        let shown: Vec<_> = found
            .iter()
            .map(|it| (name(&it.waiter), name(&it.waker), it.ns, it.ns_per_request, it.share))
            .collect();
        let row = |waiter: &str, waker: &str, ns: u64, requests: u64| {
            let each = Some(ns as f64 / requests as f64);
            (waiter.to_owned(), waker.to_owned(), ns, each, ns as f64 / 2_000.0)
        };
        let expected = [
            row("lock", "writer", 800, 15),
            row("lock", "Unknown", 100, 10),
            row("refund", "Timer", 100, 5),
        ];
        assert_eq!(shown, expected);
        assert_eq!((found[0].waiter_share, found[2].waiter_share), (800.0 / 900.0, 1.0));
        assert!(edges(&[self::run()]).is_empty());
    }
}
