//! The registry of points: where units of work are counted and intervals are timed, in virtual
//! time.

mod hits;
mod registry;

pub use registry::{point, points, unmatched};

use crate::counter::Counters;
use crate::latency::{Histograms, Latencies};
use crate::settings::is_own_file;
use crate::sync::Mutex;
use andweorc_profile::PointRecord;
use andweorc_profile::plain;
use std::collections::HashMap;
use std::mem;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub use andweorc_profile::PointKind;

/// How important a point is when nobody chose: lower ranks first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Importance {
    /// The user wrote it down: `progress!`, `begin!`/`end!`, a named event.
    Explicit,
    /// A span seen without a parent of the user's own: most often a request.
    Root,
    /// Any other span.
    Inner,
}

/// Where a span is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// In a spawned task.
    Task = 0,
    /// In the task of the main function, which may do little but hand work out.
    Main = 1,
    /// Outside of all targets: on a thread that polls no task.
    Nothing = 2,
}

impl Within {
    /// How many there are.
    pub(crate) const COUNT: u32 = 3;
}

/// A progress point or a latency point. Lives as long as the process.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Point {
    // What each hit reads, on one cache line.
    id: u32,
    kind: PointKind,
    explicit: bool,
    /// The point is in the workspace's own code.
    own: bool,
    /// How far out the outermost of its spans was: see [`Point::nesting`].
    nesting: AtomicU32,
    count: Counters<1>,
    latencies: Latencies,
    // What reports read.
    name: Box<str>,
    file: Option<Box<str>>,
    line: Option<u32>,
}

const _: () = assert!(mem::offset_of!(Point, name) <= 64, "a hit reads one cache line");

impl Point {
    /// Id, unique in the process and never 0.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its kind.
    pub fn kind(&self) -> PointKind {
        self.kind
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its source file, where known.
    pub(crate) fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Its line in that file, where known.
    pub(crate) fn line(&self) -> Option<u32> {
        self.line
    }

    /// How important it is when nobody chose.
    pub fn importance(&self) -> Importance {
        if self.explicit {
            Importance::Explicit
        } else if self.depth() == 0 {
            Importance::Root
        } else {
            Importance::Inner
        }
    }

    /// Whether it is in the workspace's own code, by its file, and not in that of a dependency.
    /// Where the file is not known it is.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// Of the spans of this point, the fewest parents that one was seen with: 0 for a root.
    #[inline]
    pub fn depth(&self) -> u32 {
        self.nesting() / Within::COUNT
    }

    /// How far out the outermost of its spans was: three times its [depth](Point::depth), and
    /// 1 more in the main task, 2 more outside of all targets. So 0 is a root in a spawned task;
    /// before the first span it is [`u32::MAX`].
    #[inline]
    pub fn nesting(&self) -> u32 {
        // Relaxed: a hint that only ever falls.
        self.nesting.load(Ordering::Relaxed)
    }

    /// Where the outermost of its spans was opened.
    pub(crate) fn within(&self) -> Within {
        match self.nesting() % Within::COUNT {
            0 => Within::Task,
            1 => Within::Main,
            _ => Within::Nothing,
        }
    }

    /// Notes that a span of this point was seen inside of so many others.
    pub fn seen_at_depth(&self, depth: u32, within: Within) {
        let nesting = Within::COUNT * depth + within as u32;
        // Written seldom, since all threads read it.
        if nesting < self.nesting() {
            // Relaxed: as above.
            self.nesting.fetch_min(nesting, Ordering::Relaxed);
        }
    }

    /// Hits so far.
    pub fn count(&self) -> u64 {
        let [count] = self.count.get();
        count
    }

    /// Record of the point as the profile names it, `rank`-th in importance.
    pub fn to_record(&self, rank: u32) -> PointRecord {
        let mut record = PointRecord::new(self.id, self.kind, self.name(), rank);
        record.file = self.file.as_deref().map(str::to_owned);
        record.line = self.line;
        record
    }
}

type Key<'a> = (PointKind, &'a str, Option<&'a str>, Option<u32>);

/// The points of a process, and what is known of all together.
pub(crate) struct Points {
    known: LazyLock<Mutex<HashMap<Key<'static>, &'static Point>>>,
    next_id: AtomicU32,
    /// The latencies of all.
    histograms: Histograms,
    /// Ends of intervals that never began on their thread.
    unmatched: AtomicU64,
}

impl Points {
    /// None yet.
    pub(crate) const fn new() -> Points {
        Points {
            known: LazyLock::new(Mutex::default),
            next_id: AtomicU32::new(1),
            histograms: Histograms::new(),
            unmatched: AtomicU64::new(0),
        }
    }

    fn get(
        &self,
        kind: PointKind,
        name: &str,
        file: Option<&str>,
        line: Option<u32>,
        explicit: bool,
    ) -> &'static Point {
        let (name, file) = (&*plain::cut_name(name), file.map(plain::cut_name));
        let file = file.as_deref();
        let mut points = self.known.lock();
        if let Some(point) = known(&points, &(kind, name, file, line)) {
            return point;
        }
        let point: &'static Point = Box::leak(Box::new(Point {
            // Relaxed: only uniqueness matters.
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            kind,
            name: name.into(),
            file: file.map(Into::into),
            line,
            explicit,
            own: file.is_none_or(is_own_file),
            nesting: AtomicU32::new(u32::MAX),
            count: Counters::default(),
            latencies: Latencies::new(&self.histograms),
        }));
        points.insert((kind, &point.name, point.file.as_deref(), line), point);
        point
    }

    fn all(&self) -> Vec<&'static Point> {
        let mut all: Vec<_> = self.known.lock().values().copied().collect();
        all.sort_by_key(|point| point.id);
        all
    }
}

/// A function, in which the keys need live no longer than what is looked for.
fn known<'a>(points: &HashMap<Key<'a>, &'static Point>, key: &Key<'a>) -> Option<&'static Point> {
    points.get(key).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ledger;
    use crate::process::tests::Own;
    use crate::time::{Speedup, Virtual};
    use crate::{clock, thread};

    #[cfg(not(loom))]
    #[test]
    fn latencies_of_experiments_are_taken_once_and_in_order() {
        Own::run(|_| {
            let point = point(PointKind::Latency, "latencies", None, None, true);
            point.hit_interval(Virtual(0), Virtual(7_000_000));
            assert_eq!(point.take_latencies(), [], "no experiment is held");
            ledger().begin(Speedup::ZERO, clock::now());
            point.hit_interval(Virtual(0), Virtual(5_000_000));
            point.hit_interval(Virtual(1_000), Virtual(2_001_000));
            let latencies = point.take_latencies();
            let near = |ns: u64, ms: f64| (ns as f64 / 1e6 - ms).abs() < 0.01;
            assert!(matches!(latencies[..], [(a, 1), (b, 1)] if near(a, 2.0) && near(b, 5.0)));
            assert_eq!(point.take_latencies(), []);
            point.hit_interval(Virtual(0), Virtual(1));
            point.discard_latencies();
            assert_eq!(point.take_latencies(), []);
            ledger().end(clock::now());
            assert_eq!(point.count(), 4);
        })
    }

    #[test]
    fn nested_intervals_end_innermost_first_and_strays_are_counted() {
        thread::enable();
        let point = point(PointKind::Latency, "nested", None, None, true);
        point.begin();
        point.begin();
        point.end();
        point.end();
        assert_eq!(point.count(), 2);
        let before = unmatched();
        point.end();
        assert_eq!(unmatched(), before + 1);
        assert_eq!(point.count(), 2);
    }

    #[test]
    fn one_name_and_place_is_one_point() {
        let first = point(PointKind::Progress, "same", Some("a.rs"), Some(1), true);
        let again = point(PointKind::Progress, "same", Some("a.rs"), Some(1), true);
        let other = point(PointKind::Progress, "same", Some("a.rs"), Some(2), true);
        assert!(std::ptr::eq(first, again));
        assert_ne!(first.id(), other.id());
    }

    #[test]
    fn a_long_name_is_cut_and_still_one_point() {
        let name = |end: char| format!("point: {}{end}", "a".repeat(1_000_000));
        let of = |name: &str| point(PointKind::Progress, name, None, None, true);
        let first = of(&name('x'));
        assert!(std::ptr::eq(first, of(&name('x'))) && !std::ptr::eq(first, of(&name('y'))));
        assert!(first.to_record(0).name.len() < 1_000, "{}", first.name().len());
    }

    #[test]
    fn a_span_becomes_a_root_and_stays_one() {
        let span = point(PointKind::Latency, "span", None, None, false);
        assert_eq!(span.importance(), Importance::Inner);
        span.seen_at_depth(2, Within::Task);
        assert_eq!((span.importance(), span.depth()), (Importance::Inner, 2));
        span.seen_at_depth(0, Within::Nothing);
        span.seen_at_depth(1, Within::Task);
        assert_eq!((span.importance(), span.depth()), (Importance::Root, 0));
        assert_eq!(span.within(), Within::Nothing);
        span.seen_at_depth(0, Within::Main);
        assert_eq!(span.within(), Within::Main);
        span.seen_at_depth(0, Within::Task);
        assert_eq!((span.within(), span.nesting()), (Within::Task, 0));
    }

    #[test]
    fn a_dependencys_point_is_not_the_users_own() {
        let own = |name, file| point(PointKind::Latency, name, file, None, false).is_own();
        assert!(own("own", Some("src/main.rs")) && own("own, somewhere", None));
        let file = "/home/me/.cargo/registry/src/index.crates.io-1/h2-0.4.12/src/proto/mod.rs";
        assert!(!own("not own", Some(file)));
    }
}
