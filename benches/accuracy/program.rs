//! A program of the bench, and what it finds on its stage: parts with dials, a line to the world
//! outside, and a point to hit.

use crate::hot::{HOT, Hot};
use crate::line::Line;
use crate::load::Load;
use crate::work::{Cost, Pace, hash};
use andweorc_core::point::{Point, point};
use andweorc_core::target::{Target, target};
use andweorc_core::time::Virtual;
use andweorc_core::{clock, thread};
use andweorc_profile::{PointKind, TargetKind};
use std::cell::OnceCell;
use std::future::Future;
use std::io;
use std::ops::DerefMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinHandle;
use tracing::Span;

/// The name of the point that every program hits.
pub(crate) const POINT: &str = "done";

/// The speedups that most targets are tested at.
pub(crate) const SPEEDUPS: &[f64] = &[0.25, 0.5, 0.75];

/// A program whose parts can be made faster, virtually and really.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Description: what the program does, and which of its parts should matter.
    pub(crate) about: &'static str,
    pub(crate) runtime: Runtime,
    /// Its parts: name, and microseconds of work.
    pub(crate) parts: &'static [(&'static str, u32)],
    pub(crate) targets: &'static [Aim],
    /// Whether its units of work are timed, or only counted.
    pub(crate) point: PointKind,
    /// Starts it: spawns its tasks or threads, which run until the process ends. Called inside the
    /// runtime's context.
    pub(crate) start: fn(&Stage) -> io::Result<()>,
}

/// Runtime that a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    /// Tokio's multi-thread runtime with two workers.
    Workers,
    /// Tokio's current-thread runtime.
    CurrentThread,
    /// None: plain threads.
    None,
}

/// A target to test, and the part whose dial is its truth. They cover the same code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    pub(crate) kind: TargetKind,
    /// The name of both.
    pub(crate) name: &'static str,
    pub(crate) speedups: &'static [f64],
}

impl Aim {
    /// The span of a part.
    pub(crate) const fn span(name: &'static str) -> Aim {
        Aim { kind: TargetKind::Span, name, speedups: SPEEDUPS }
    }

    /// The task that does nothing but a part. Its polls hold a channel operation beside it, so the
    /// part should be long against that.
    pub(crate) const fn task(name: &'static str) -> Aim {
        Aim { kind: TargetKind::Task, name, speedups: SPEEDUPS }
    }

    /// At other speedups than [`SPEEDUPS`].
    pub(crate) const fn at(self, speedups: &'static [f64]) -> Aim {
        Aim { speedups, ..self }
    }
}

/// A part of a program: work of a known size. It is under a target of kind span, or, where targets
/// are sampled, a function that nothing marks.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    name: &'static str,
    cost: Arc<Cost>,
    target: &'static Target,
    hot: Hot,
}

impl Part {
    /// Does the work.
    pub(crate) fn run(&self) {
        self.run_times(1);
    }

    /// Does the work `times` times, in one visit of the target.
    pub(crate) fn run_times(&self, times: u32) {
        let rounds = self.cost.now() * times;
        if sampled() {
            return (self.hot.run)(rounds);
        }
        let entered = thread::enter(self.target, clock::now());
        hash(rounds);
        let stay = thread::exit(entered, clock::now());
        self.target.record(stay.busy, stay.own);
        thread::sync_point();
    }

    /// Does the work in a span of the program's own.
    pub(crate) fn run_in(&self, span: impl FnOnce() -> Span) {
        let rounds = self.cost.now();
        if sampled() { (self.hot.run)(rounds) } else { span().in_scope(|| hash(rounds)) }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The function that it is where targets are sampled.
    pub(crate) fn function(&self) -> &'static str {
        self.hot.name
    }

    /// Takes the fraction `by` off its cost; 0 restores it.
    pub(crate) fn reduce(&self, by: f64) {
        self.cost.reduce(by);
    }
}

/// Surroundings that a program finds when it starts: its parts, its point and its load.
#[derive(Debug)]
pub(crate) struct Stage {
    parts: Vec<Part>,
    done: Done,
    load: OnceCell<Load>,
}

impl Stage {
    /// The stage of a program.
    pub(crate) fn new(program: &Program, pace: Pace) -> Stage {
        let part = |(&(name, us), &hot): (&(&'static str, u32), &Hot)| Part {
            name,
            cost: Arc::new(Cost::work(us, pace)),
            target: target(TargetKind::Span, name, None, None),
            hot,
        };
        assert!(program.parts.len() <= HOT.len(), "there are no more functions for parts");
        Stage {
            parts: program.parts.iter().zip(&HOT).map(part).collect(),
            done: Done(point(program.point, POINT, None, None, true)),
            load: OnceCell::new(),
        }
    }

    /// A part by its name.
    ///
    /// # Panics
    ///
    /// When the program has none of this name.
    pub(crate) fn part(&self, name: &str) -> Part {
        let part = self.parts.iter().find(|part| part.name == name);
        part.unwrap_or_else(|| panic!("the program has no part `{name}`")).clone()
    }

    /// All parts, in the program's order.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The point to hit.
    pub(crate) fn done(&self) -> Done {
        self.done
    }

    /// A line to the world outside.
    pub(crate) fn line(&self) -> io::Result<Line> {
        Line::open()
    }

    /// Asks for HTTP clients, once the program has started.
    ///
    /// # Panics
    ///
    /// When asked twice.
    pub(crate) fn ask_for(&self, load: Load) {
        self.load.set(load).expect("a program is one service");
    }

    /// The HTTP clients that the program asked for.
    pub(crate) fn load(&self) -> Option<Load> {
        self.load.get().copied()
    }
}

/// Whether tasks are spawned as libraries do it, by tokio itself. Only with `--cfg tokio_unstable`
/// are they seen then.
static UNWRAPPED: AtomicBool = AtomicBool::new(false);

/// From now on tasks are spawned by tokio itself.
pub(crate) fn unwrap() {
    UNWRAPPED.store(true, Ordering::SeqCst);
}

/// Whether tasks are spawned by tokio itself.
pub(crate) fn unwrapped() -> bool {
    UNWRAPPED.load(Ordering::SeqCst)
}

/// Whether targets are lines and functions.
static SAMPLED: AtomicBool = AtomicBool::new(false);

/// From now on parts are functions that nothing marks.
pub(crate) fn sample() {
    SAMPLED.store(true, Ordering::SeqCst);
}

/// Whether targets are lines and functions.
pub(crate) fn sampled() -> bool {
    SAMPLED.load(Ordering::SeqCst)
}

/// Spawns a task as a target of this name.
pub(crate) fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[cfg(tokio_unstable)]
    if unwrapped() {
        let spawned = tokio::task::Builder::new().name(name).spawn(future);
        return spawned.expect("programs spawn in a runtime");
    }
    andweorc::task::Builder::new().name(name).spawn(future)
}

/// Runs a closure on the blocking pool.
pub(crate) fn spawn_blocking<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    if unwrapped() { tokio::task::spawn_blocking(f) } else { andweorc::spawn_blocking(f) }
}

/// Spawns a task in a set.
pub(crate) fn spawn_in(
    set: &mut andweorc::JoinSet<()>,
    future: impl Future<Output = ()> + Send + 'static,
) {
    if unwrapped() {
        set.deref_mut().spawn(future)
    } else {
        set.spawn(future)
    };
}

/// Where a program says that a unit of work is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done(&'static Point);

impl Done {
    /// One more is done, as by `andweorc::progress!`.
    pub(crate) fn hit(self) {
        self.0.hit();
        thread::catch_up();
    }

    /// One more begins. For programs whose point is of kind latency.
    pub(crate) fn begin(self) -> Visit {
        Visit { point: self.0, begin: thread::virtual_at(clock::now()) }
    }
}

/// A unit of work under way.
#[derive(Debug)]
#[must_use = "a visit counts when it ends"]
pub(crate) struct Visit {
    point: &'static Point,
    begin: Virtual,
}

impl Visit {
    /// Ends the visit: the unit of work is done.
    pub(crate) fn end(self) {
        self.point.hit_interval(self.begin, thread::virtual_at(clock::now()));
    }
}
