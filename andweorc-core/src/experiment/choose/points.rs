//! Choosing points when the user named none, and finding those that he named.

use super::names::by_name;
use crate::clock;
use crate::point::{Importance, Point, points};
use crate::thread::Within;
use crate::time::Real;
use andweorc_profile::plain;
use std::collections::HashMap;

/// A span that ends less often than this in a second, and [`MIN_RATE_RATIO`] times less often than
/// another, is open for long.
pub(super) const MIN_RATE: u64 = 10;

const MIN_RATE_RATIO: f64 = 100.0;

/// How often each point was hit up to a moment, by its id.
#[derive(Debug)]
pub(crate) struct Hits {
    at: Real,
    counts: HashMap<u32, u64>,
}

impl Hits {
    /// Up to now.
    pub(crate) fn read() -> Hits {
        let counts = points().iter().map(|point| (point.id(), point.count())).collect();
        Hits { at: clock::now(), counts }
    }

    /// Hits of a point since then.
    pub(crate) fn since(&self, point: &Point) -> u64 {
        point.count() - self.counts.get(&point.id()).copied().unwrap_or(0)
    }

    /// The points that were ever hit, each with its hits a second since then: one at least, since
    /// the next one may be about to come.
    fn rates(&self) -> Vec<(&'static Point, f64)> {
        let seconds = (clock::now() - self.at).as_secs_f64().max(1e-3);
        let rate = |point: &Point| self.since(point).max(1) as f64 / seconds;
        let hit = points().into_iter().filter(|point| point.count() > 0);
        hit.map(|point| (point, rate(point))).collect()
    }
}

/// The points in order of importance: those named by `wanted`, in that order; by default those of
/// the workspace's own code first, and of these what the user wrote down, then root spans in tasks,
/// then those on threads that poll none (parts of a request that a thread pool does), then what is
/// inside of spans, each by hits since `before`. A root that hardly ever ends (a connection) comes
/// after what is inside. Points that were never hit are left out. Second, the wanted names that no
/// point has.
pub(crate) fn choose_points(
    before: &Hits,
    wanted: &[String],
) -> (Vec<&'static Point>, Vec<String>) {
    let mut rates = before.rates();
    in_order(&mut rates);
    let hit = rates.into_iter().map(|(point, _)| point).collect();
    by_name(hit, wanted, |point, name| point.name() == plain::cut_name(name))
}

/// The points in another order, where since `before` the first of these was hardly hit, others were
/// often, and one of them is to come first then.
pub(crate) fn reconsidered(
    points: &[&'static Point],
    before: &Hits,
) -> Option<Vec<&'static Point>> {
    anew(points, before.rates())
}

/// Does what [`reconsidered`] says, by the hits a second of each point that was hit.
fn anew(
    points: &[&'static Point],
    mut rates: Vec<(&'static Point, f64)>,
) -> Option<Vec<&'static Point>> {
    let first = points.first()?;
    let rate = rates.iter().find(|it| it.0.id() == first.id())?.1;
    if !ends_seldom(first, rate, most(&rates, first.is_own())) {
        return None;
    }
    in_order(&mut rates);
    (rates.first()?.0.id() != first.id()).then(|| rates.into_iter().map(|it| it.0).collect())
}

/// Sorts points, each with its hits a second, by importance.
fn in_order(rates: &mut [(&'static Point, f64)]) {
    let most = [false, true].map(|own| most(rates, own));
    let key = |&(point, rate): &(&'static Point, f64)| {
        let explicit = point.importance() == Importance::Explicit;
        let ends_seldom = ends_seldom(point, rate, most[usize::from(point.is_own())]);
        let is_outside = point.within() == Within::Nothing;
        (!point.is_own(), !explicit, ends_seldom, point.depth(), is_outside)
    };
    // The main task may do all of the work, or hand each unit to a task that does it.
    let rate = |&(point, rate): &(&'static Point, f64)| match point.within() {
        Within::Main => rate / 2.0,
        Within::Task | Within::Nothing => rate,
    };
    rates.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| rate(b).total_cmp(&rate(a))));
}

/// The hits a second of the point that has most of them, of the user's own or of others.
fn most(rates: &[(&'static Point, f64)], own: bool) -> f64 {
    rates.iter().filter(|it| it.0.is_own() == own).map(|it| it.1).fold(0.0, f64::max)
}

/// Whether a point with so many hits a second is of spans that are open for long, where the point
/// with most hits has `most`.
fn ends_seldom(point: &Point, rate: f64, most: f64) -> bool {
    point.importance() != Importance::Explicit
        && rate < MIN_RATE as f64
        && rate * MIN_RATE_RATIO < most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::point;
    use crate::time::Nanos;
    use andweorc_profile::PointKind;

    #[test]
    fn the_first_point_is_the_users_own_and_ends() {
        let span_in = |name, file, depth, within| {
            let span = point(PointKind::Latency, name, Some(file), None, false);
            span.seen_at_depth(depth, within);
            span
        };
        let span = |name, file, depth| span_in(name, file, depth, Within::Task);
        let (own, h2) = ("src/main.rs", "/x/.cargo/registry/src/i-1/h2-0.4.12/src/proto.rs");
        let frame = span("choose: queue_frame", h2, 0);
        let connection = span("choose: connection", own, 0);
        let command = span("choose: command", own, 1);
        let part = span("choose: part", own, 2);
        let marked = point(PointKind::Progress, "choose: marked", Some(own), None, true);
        let order = |mut hit: Vec<(&'static Point, f64)>| -> Vec<&str> {
            in_order(&mut hit);
            hit.into_iter().map(|(point, _)| point.name().split_once(' ').unwrap().1).collect()
        };
        assert_eq!(
            order(vec![(frame, 9000.0), (part, 4000.0), (command, 1000.0), (connection, 1.0)]),
            ["command", "part", "connection", "queue_frame"]
        );
        assert_eq!(
            order(vec![(part, 4000.0), (command, 1000.0), (connection, 20.0)]),
            ["connection", "command", "part"],
            "it ends often enough to be measured"
        );
        assert_eq!(order(vec![(part, 9.0), (connection, 1.0)]), ["connection", "part"]);
        assert_eq!(
            order(vec![(connection, 1000.0), (frame, 5000.0), (marked, 1.0)]),
            ["marked", "connection", "queue_frame"]
        );
        assert_eq!(order(vec![(frame, 1.0)]), ["queue_frame"], "nothing else is there");
        let job = span_in("choose: job", own, 0, Within::Nothing);
        assert_eq!(
            order(vec![(job, 4000.0), (part, 1000.0), (connection, 1000.0)]),
            ["connection", "job", "part"],
            "what a pool does for a request comes after it"
        );
        let accept = span_in("choose: accept", own, 0, Within::Main);
        assert_eq!(
            order(vec![(accept, 1001.0), (connection, 1000.0)]),
            ["connection", "accept"],
            "main hands out what tasks do"
        );
        assert_eq!(
            order(vec![(connection, 10.0), (accept, 500.0)]),
            ["accept", "connection"],
            "main does it"
        );
    }

    #[test]
    fn another_point_is_the_first_once_that_one_hardly_moves() {
        let span = |name, depth| {
            let span = point(PointKind::Latency, name, Some("src/choose.rs"), None, false);
            span.seen_at_depth(depth, Within::Task);
            span
        };
        let connection = span("choose: each connection", 0);
        let request = span("choose: each request", 1);
        let points = [connection, request];
        let first = |rates: [f64; 2]| {
            let rates = points.into_iter().zip(rates).collect();
            anew(&points, rates).map(|points| points[0].name())
        };
        assert_eq!(first([30.0, 2000.0]), None);
        assert_eq!(first([1.0, 2000.0]), Some(request.name()));
        assert_eq!(first([3.0, 2000.0]), Some(request.name()));
        assert_eq!(first([1.0, 20.0]), None, "there is little of either");
    }

    #[test]
    fn a_point_that_is_hardly_hit_may_be_about_to_be() {
        let seldom = point(PointKind::Progress, "choose: seldom", None, None, true);
        let rate =
            |hits: &Hits| hits.rates().iter().find(|it| it.0.id() == seldom.id()).map(|it| it.1);
        assert_eq!(rate(&Hits::read()), None, "it was never hit");
        seldom.hit();
        let two_seconds_ago = Hits { at: clock::now() - Nanos(2_000_000_000), ..Hits::read() };
        assert!(rate(&two_seconds_ago).is_some_and(|rate| rate > 0.0 && rate <= 0.5));
    }
}
