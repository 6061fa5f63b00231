//! Choosing points and targets when the user named none, and finding those that he named.

use crate::clock;
use crate::point::{Importance, Point, points};
use crate::program_clock;
use crate::symbols::is_own_file;
use crate::target::{Target, is_main, targets};
use crate::thread::Within;
use crate::time::Real;
use andweorc_profile::plain;
use andweorc_profile::{TargetKind, TargetTime, WaitTime};
use std::cmp::Reverse;
use std::collections::HashMap;

/// How many targets are tested at most: with more, none would be settled in time.
const MOST_TARGETS: usize = 8;

/// A target below this share of the program's CPU time is not worth testing.
pub(crate) const LEAST_SHARE: f64 = 0.02;

/// Of them, so many waits at most.
const MOST_WAITS: usize = 3;

/// A wait is worth testing from this share of the time on, summed over all who wait: below it, it
/// is short, or few wait.
const LONG: f64 = 0.05;

/// A task that takes this share of the program's CPU time is the program itself.
const ALL: f64 = 0.9;

/// A target that spends less than this share of its time outside of other targets is a container:
/// its parts are tested instead.
const LEAST_OWN: f64 = 0.5;

/// A span that ends less often than this in a second, and [`CONTAINS`] times less often than
/// another, is open for long.
const SELDOM: u64 = 10;

const CONTAINS: f64 = 100.0;

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

    /// The points that were ever hit, each with its hits a second since then: one at least, since
    /// the next one may be about to come.
    fn rates(&self) -> Vec<(&'static Point, f64)> {
        let seconds = (clock::now() - self.at).as_secs_f64().max(1e-3);
        let before = |point: &Point| self.counts.get(&point.id()).copied().unwrap_or(0);
        let rate = |point: &Point| (point.count() - before(point)).max(1) as f64 / seconds;
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
    point.importance() != Importance::Explicit && rate < SELDOM as f64 && rate * CONTAINS < most
}

/// The time that each target had over a stretch.
#[derive(Debug, Default)]
pub(crate) struct Times(HashMap<u32, Time>);

/// The time of one target, ns, and its visits.
#[derive(Clone, Copy, Debug, Default)]
struct Time {
    busy: u64,
    own: u64,
    count: u64,
    waited: Option<[u64; 3]>,
    for_timers: u64,
    own_outside: u64,
}

impl Time {
    fn of(target: &Target) -> Time {
        Time {
            busy: target.busy_ns(),
            own: target.own_ns(),
            count: target.count(),
            waited: target.waited_ns(),
            for_timers: target.waited_for_timers_ns(),
            own_outside: target.own_outside_ns(),
        }
    }

    fn since(&self, before: &Time) -> Time {
        let waited = self.waited.map(|now| {
            let before = before.waited.unwrap_or_default();
            std::array::from_fn(|i| now[i] - before[i])
        });
        Time {
            busy: self.busy - before.busy,
            own: self.own - before.own,
            count: self.count - before.count,
            waited,
            for_timers: self.for_timers - before.for_timers,
            own_outside: self.own_outside.saturating_sub(before.own_outside),
        }
    }
}

impl Times {
    /// The times up to now.
    pub(crate) fn read() -> Times {
        Times::of(&targets())
    }

    /// The times up to now of these targets alone.
    pub(crate) fn of(targets: &[&'static Target]) -> Times {
        Times(targets.iter().map(|target| (target.id(), Time::of(target))).collect())
    }

    /// The times since `before` of the targets that had any.
    fn since(&self, before: &Times) -> Vec<(&'static Target, Time)> {
        let mut all = Vec::new();
        for target in targets() {
            let Some(now) = self.0.get(&target.id()) else { continue };
            let time = now.since(&before.0.get(&target.id()).copied().unwrap_or_default());
            if time.count > 0 {
                all.push((target, time));
            }
        }
        all
    }

    /// Returns the times since `before` as the profile records them.
    pub(crate) fn records_since(&self, before: &Times) -> Vec<TargetTime> {
        let record = |(target, time): (&Target, Time)| TargetTime {
            target: target.id(),
            busy_ns: time.busy,
            count: time.count,
            waits: time.waited.map(|[outside_ns, task_ns, queue_ns]| WaitTime {
                outside_ns,
                timer_ns: program_clock::is_on().then_some(time.for_timers),
                task_ns,
                queue_ns,
            }),
        };
        self.since(before).into_iter().map(record).collect()
    }

    /// The targets to test, given what they used since `before` of `real_ns` that passed and of
    /// `cpu_ns` in all: those named by `wanted`; by default [what may matter](Times::by_default).
    /// Second, the wanted names that no target has.
    ///
    /// A name may have its kind before it: `span:stock`. A bare name means all targets of it but
    /// waits, `wait:stock`, and functions without what they call, `function-self:stock`. `lines`,
    /// `functions` and `functions-self` are the hottest of them.
    pub(crate) fn choose_targets(
        &self,
        before: &Times,
        [real_ns, cpu_ns]: [u64; 2],
        wanted: &[String],
    ) -> (Vec<&'static Target>, Vec<String>) {
        let mut used = self.since(before);
        used.sort_by_key(|(_, time)| std::cmp::Reverse(time.busy));
        if wanted.is_empty() {
            used = by_default(used, [real_ns, cpu_ns]);
        }
        let mut sampled = HashMap::new();
        used.retain(|(target, time)| {
            if !is_sampled(target) || wanted.iter().any(|wanted| is_named(target, wanted)) {
                return true;
            }
            let count = sampled.entry(target.kind()).or_insert(0);
            *count += 1;
            *count <= MOST_TARGETS && time.own as f64 >= LEAST_SHARE * cpu_ns as f64
        });
        let is_named = |target: &Target, wanted: &str| {
            is_named(target, wanted) || all_of(wanted) == Some(target.kind())
        };
        by_name(used.into_iter().map(|(target, _)| target).collect(), wanted, is_named)
    }
}

/// Of these targets, the busiest first, the ones that may matter: the busiest that are no
/// containers, and the longest waits for the world outside. Of what is sampled, the functions.
///
/// Left out, where there are others, are the task of `main`, a task that takes nearly all CPU time,
/// and what belongs to libraries. A wait has to be one of a span that ends often, a unit of
/// somebody's work: that of a task may be its own pace, or for the next request.
fn by_default(
    used: Vec<(&'static Target, Time)>,
    [real_ns, cpu_ns]: [u64; 2],
) -> Vec<(&'static Target, Time)> {
    let mut waits: Vec<_> = used
        .iter()
        .filter(|(target, time)| {
            target.kind() == TargetKind::Wait
                && is_own(target)
                && time.own_outside as f64 >= LONG * real_ns as f64
                && ends_often(target)
        })
        .copied()
        .collect();
    waits.sort_by_key(|(_, time)| Reverse(time.own_outside));
    waits.truncate(MOST_WAITS);
    let share = |time: &Time| time.busy as f64 / cpu_ns.max(1) as f64;
    let mut work = used;
    work.retain(|(target, time)| {
        !matches!(target.kind(), TargetKind::Wait | TargetKind::Line | TargetKind::FunctionSelf)
            && share(time) >= LEAST_SHARE
            && time.own as f64 >= LEAST_OWN * time.busy as f64
    });
    let is_all = |(target, time): &(&Target, Time)| {
        is_main(target.id()) || target.kind() == TargetKind::Task && share(time) >= ALL
    };
    keep_if_any(&mut work, |it| !is_all(it));
    keep_if_any(&mut work, |(target, _)| is_own(target));
    work.truncate(MOST_TARGETS - waits.len());
    work.extend(waits);
    work
}

/// Keeps those of which this is true, if there are any.
fn keep_if_any<T>(all: &mut Vec<T>, keep: impl Fn(&T) -> bool) {
    if all.iter().any(&keep) {
        all.retain(keep);
    }
}

/// Whether a target is in the workspace's own code, and not in that of a dependency.
fn is_own(target: &Target) -> bool {
    target.file().is_none_or(|file| is_own_file(file) && !is_of_package(file))
}

/// Whether a file is called by the package of cargo's registry that it is in:
/// `hyper-1.8.1/src/rt.rs`.
fn is_of_package(file: &str) -> bool {
    let package = file.split('/').next().unwrap_or_default();
    let version = package.rsplit_once('-').map_or("", |(_, version)| version);
    version.split('.').count() >= 3 && version.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a wait is one of spans that end often.
fn ends_often(wait: &Target) -> bool {
    let of_wait = |point: &&Point| {
        (point.name(), point.file(), point.line()) == (wait.name(), wait.file(), wait.line())
    };
    points().into_iter().find(of_wait).is_some_and(|point| point.count() >= SELDOM)
}

/// Whether a target is seen by samples alone.
pub(crate) fn is_sampled(target: &Target) -> bool {
    matches!(target.kind(), TargetKind::Line | TargetKind::Function | TargetKind::FunctionSelf)
}

/// Whether targets among these are seen by samples alone.
pub(crate) fn want_samples(wanted: &[String]) -> bool {
    let kinds = ["line:", "function:", FUNCTION_SELF];
    wanted
        .iter()
        .any(|wanted| all_of(wanted).is_some() || kinds.iter().any(|kind| wanted.starts_with(kind)))
}

/// Before the name of a function that is meant without what it calls.
const FUNCTION_SELF: &str = "function-self:";

/// Whether targets among these are functions without what they call.
pub(crate) fn want_functions_alone(wanted: &[String]) -> bool {
    let is = |wanted: &String| {
        all_of(wanted) == Some(TargetKind::FunctionSelf) || wanted.starts_with(FUNCTION_SELF)
    };
    wanted.iter().any(is)
}

/// The words for the hottest lines, and the hottest functions, with and without what they call.
pub(crate) fn all_of(wanted: &str) -> Option<TargetKind> {
    match wanted {
        "lines" => Some(TargetKind::Line),
        "functions" => Some(TargetKind::Function),
        "functions-self" => Some(TargetKind::FunctionSelf),
        _ => None,
    }
}

/// Whether a user means `target` by `wanted`.
pub(crate) fn is_named(target: &Target, wanted: &str) -> bool {
    let kind = target.kind();
    // Of the path of a line the end is enough; and the user may know it whole, where the target's
    // is relative to the workspace.
    let is_end = |name: &str| {
        let ends = |whole: &str, end: &str| {
            whole.strip_suffix(end).is_some_and(|rest| rest.ends_with('/'))
        };
        kind == TargetKind::Line
            && (ends(target.name(), name) || name.starts_with('/') && ends(name, target.name()))
    };
    // A task is called by its function, which may be spawned at several places.
    let is_place = |name: &str| {
        let place = name.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        matches!(kind, TargetKind::Task | TargetKind::Wait)
            && place.is_some_and(|place| {
                (target.file(), target.line()) == (Some(place.0), Some(place.1))
            })
    };
    let is = |name: &str| target.name() == plain::cut_name(name) || is_end(name) || is_place(name);
    (!matches!(kind, TargetKind::Wait | TargetKind::FunctionSelf) && is(wanted))
        || wanted.split_once(':').is_some_and(|(word, name)| word == kind.to_string() && is(name))
}

/// Of `all`, those with a wanted name, in the order of the names; all when none is wanted. Second,
/// the names that none has.
fn by_name<T: Copy>(
    all: Vec<T>,
    wanted: &[String],
    is_named: impl Fn(T, &str) -> bool,
) -> (Vec<T>, Vec<String>) {
    if wanted.is_empty() {
        return (all, Vec::new());
    }
    let mut chosen = Vec::new();
    let mut unknown = Vec::new();
    for wanted in wanted {
        let before = chosen.len();
        chosen.extend(all.iter().copied().filter(|&it| is_named(it, wanted)));
        if chosen.len() == before {
            unknown.push(wanted.clone());
        }
    }
    (chosen, unknown)
}

/// Names for a message: each once, in order, at most a dozen, and none at great length.
pub(crate) fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(12);
    names.truncate(12);
    let list = names
        .iter()
        .map(|name| format!("`{}`", plain::cut_name(name)))
        .collect::<Vec<_>>()
        .join(", ");
    match (list.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => list,
        (false, more) => format!("{list} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    #[test]
    fn wanted_names_keep_their_order_and_unknown_ones_are_told() {
        let all = vec!["a", "b", "c", "a"];
        let wanted = ["c", "x", "a"].map(str::to_owned);
        assert_eq!(
            by_name(all.clone(), &wanted, |s, name| s == name),
            (vec!["c", "a", "a"], vec!["x".to_owned()])
        );
        assert_eq!(by_name(all.clone(), &[], |s, name| s == name), (all, vec![]));
    }

    #[test]
    fn the_first_point_is_the_users_own_and_ends() {
        use crate::point::point;
        use andweorc_profile::PointKind;
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
        use crate::point::point;
        use andweorc_profile::PointKind;
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
        use crate::point::point;
        use andweorc_profile::PointKind;
        let seldom = point(PointKind::Progress, "choose: seldom", None, None, true);
        let rate =
            |hits: &Hits| hits.rates().iter().find(|it| it.0.id() == seldom.id()).map(|it| it.1);
        assert_eq!(rate(&Hits::read()), None, "it was never hit");
        seldom.hit();
        let two_seconds_ago = Hits { at: clock::now() - Nanos(2_000_000_000), ..Hits::read() };
        assert!(rate(&two_seconds_ago).is_some_and(|rate| rate > 0.0 && rate <= 0.5));
    }

    #[test]
    fn containers_and_trifles_are_not_chosen_unless_wanted() {
        use crate::target::target;
        use andweorc_profile::TargetKind;
        let new = |name| target(TargetKind::Span, name, None, None);
        let before = Times::read();
        new("choose: request").record(Nanos(1000), Nanos(10));
        new("choose: part").record(Nanos(990), Nanos(990));
        new("choose: trifle").record(Nanos(10), Nanos(10));
        let after = Times::read();
        let chosen = |wanted: &[String]| {
            let (targets, unknown) = after.choose_targets(&before, [1000, 1000], wanted);
            let mut names: Vec<_> = targets.iter().map(|t| t.name()).collect();
            names.retain(|name| name.starts_with("choose: "));
            (names, unknown)
        };
        assert_eq!(chosen(&[]), (vec!["choose: part"], vec![]));
        let wanted = ["choose: request", "no such"].map(str::to_owned);
        assert_eq!(chosen(&wanted), (vec!["choose: request"], vec!["no such".to_owned()]));
    }

    #[test]
    fn a_kind_before_the_name_tells_targets_of_one_name_apart() {
        use crate::target::target;
        let all = [TargetKind::Span, TargetKind::Task, TargetKind::Wait]
            .map(|kind| target(kind, "choose: pay", None, None));
        let meant = |wanted: &str| all.map(|target| is_named(target, wanted));
        assert_eq!(meant("choose: pay"), [true, true, false]);
        assert_eq!(meant("span:choose: pay"), [true, false, false]);
        assert_eq!(meant("wait:choose: pay"), [false, false, true]);
        assert_eq!(meant("wait:choose"), [false, false, false]);
    }

    #[test]
    fn a_task_is_named_by_its_function_or_its_place() {
        use crate::target::target;
        let all = [TargetKind::Task, TargetKind::Wait, TargetKind::Span]
            .map(|kind| target(kind, "choose_handle", Some("src/choose.rs"), Some(40)));
        let meant = |wanted: &str| all.map(|target| is_named(target, wanted));
        assert_eq!(meant("choose_handle"), [true, false, true]);
        assert_eq!(meant("src/choose.rs:40"), [true, false, false]);
        assert_eq!(meant("task:src/choose.rs:40"), [true, false, false]);
        assert_eq!(meant("wait:src/choose.rs:40"), [false, true, false]);
        assert_eq!(meant("src/choose.rs:41"), [false, false, false]);
    }

    #[test]
    fn functions_have_paths_and_of_a_lines_path_the_end_is_enough() {
        use crate::target::target;
        let function = target(TargetKind::Function, "choose::stock::update", None, None);
        assert!(is_named(function, "choose::stock::update"));
        assert!(is_named(function, "function:choose::stock::update"));
        assert!(!is_named(function, "stock::update") && !is_named(function, "span:choose"));
        let alone = target(TargetKind::FunctionSelf, "choose::stock::update", None, None);
        assert!(is_named(alone, "function-self:choose::stock::update"));
        assert!(!is_named(function, "function-self:choose::stock::update"));
        assert!(!is_named(alone, "choose::stock::update"), "a bare name means what it calls too");
        assert!(!is_named(alone, "function:choose::stock::update"));
        let file = "/choose/src/stock.rs";
        let line = target(TargetKind::Line, &format!("{file}:42"), Some(file), Some(42));
        for name in ["/choose/src/stock.rs:42", "src/stock.rs:42", "stock.rs:42"] {
            assert!(is_named(line, name) && is_named(line, &format!("line:{name}")), "{name}");
        }
        assert!(!is_named(line, "tock.rs:42") && !is_named(line, "src/stock.rs:4"));
        let line = target(TargetKind::Line, "examples/choose.rs:4", Some("x"), Some(4));
        for name in ["examples/choose.rs:4", "choose.rs:4", "/home/me/shop/examples/choose.rs:4"] {
            assert!(is_named(line, name) && is_named(line, &format!("line:{name}")), "{name}");
        }
        assert!(!is_named(line, "shop/examples/choose.rs:4") && !is_named(line, "/choose.rs:4"));
    }

    #[test]
    fn the_hottest_lines_and_functions_have_a_word() {
        use crate::target::target;
        let before = Times::read();
        for (kind, name, own) in [
            (TargetKind::Line, "choose: hot:1", 600),
            (TargetKind::Line, "choose: cold:2", 1),
            (TargetKind::Function, "choose: hot", 600),
            (TargetKind::Function, "choose: main", 0),
            (TargetKind::FunctionSelf, "choose: hot", 600),
        ] {
            target(kind, name, None, None).record(Nanos(own.max(1)), Nanos(own));
        }
        let after = Times::read();
        let chosen = |wanted: &str| {
            let wanted: Vec<String> = vec![wanted.to_owned()];
            let (targets, _) = after.choose_targets(&before, [1000, 1000], &wanted);
            let mut names: Vec<_> = targets.iter().map(|t| t.name()).collect();
            names.retain(|name| name.starts_with("choose: "));
            names
        };
        assert_eq!(chosen("lines"), ["choose: hot:1"]);
        assert_eq!(chosen("functions"), ["choose: hot"]);
        assert_eq!(chosen("functions-self"), ["choose: hot"]);
        assert_eq!(chosen("line:choose: cold:2"), ["choose: cold:2"]);
        assert_eq!(chosen("choose: main"), ["choose: main"]);
        for (wanted, samples) in
            [("lines", true), ("function:x", true), ("line:x", true), ("x", false)]
        {
            assert_eq!(want_samples(&[wanted.to_owned()]), samples);
            assert!(!want_functions_alone(&[wanted.to_owned()]));
        }
        for wanted in ["function-self:x", "functions-self"].map(|wanted| [wanted.to_owned()]) {
            assert!(want_samples(&wanted) && want_functions_alone(&wanted));
        }
    }

    #[test]
    fn long_lists_of_names_are_cut() {
        let many: Vec<String> = (0..20).map(|i| i.to_string()).collect();
        assert!(names(many.iter().map(String::as_str)).ends_with("and 8 more"));
        assert_eq!(names(std::iter::empty()), "none");
    }
}
