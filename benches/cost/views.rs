//! Cost of what a run records while it observes the program, view by view, in one process: each
//! switched on and off in turns over the same work, between experiments.
//!
//! Wall time by stacks, who waits for whom, single requests, lengths of polls and the timeline are
//! one recording with one switch; what it adds to a poll, a wake and a span tells of which hook
//! each part is. Whether stacks are found by frame pointers or by copies depends on how this bench
//! was built: `views OTHER` measures that row in another build too.

use crate::Result;
use crate::part::{Part, Row};
use crate::requests::{Counted, Load};
use crate::rounds::{Difference, compare_timed};
use crate::work::Pace;
use andweorc_core::experiment::Experimenter;
use andweorc_core::sampler::{COARSE, CountedEvent, Counting, Event, Sampling};
use andweorc_core::symbols::Symbols;
use andweorc_core::wall;
use andweorc_sampling::slots;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// First argument of a process that measures call chains alone, and prints the row.
pub(crate) const STACKS: &str = "stacks-of-this-build";

/// How often both take turns; `--quick` only shows that all works.
const ROUNDS: usize = 31;
const QUICK_ROUNDS: usize = 2;

/// How long functions are looked up before anything is measured: later they are known.
const WARM_UP: Duration = Duration::from_secs(2);

/// The default of `ANDWEORC_LONG_POLL`.
const LONG_POLL: Duration = Duration::from_millis(10);

/// How often overflows of counters are taken, as a run takes them.
const LOOK: Duration = Duration::from_millis(10);

/// How long it is waited for the rate of an event.
const PATIENCE: Duration = Duration::from_secs(2);

/// Options of this part.
#[derive(Debug, Default)]
pub(crate) struct Options<'a> {
    quick: bool,
    /// Another build of this bench.
    other: Option<&'a Path>,
}

impl<'a> Options<'a> {
    /// Reads what stands behind `views`.
    pub(crate) fn read(args: &[&'a str]) -> Options<'a> {
        let quick = args.contains(&"--quick");
        let other = args.iter().find(|arg| **arg != "--quick").map(|arg| Path::new(*arg));
        Options { quick, other }
    }

    fn rounds(&self) -> usize {
        if self.quick { QUICK_ROUNDS } else { ROUNDS }
    }
}

/// A name of work that does one thing alone, and what starts it.
type Alone = (&'static str, fn() -> Load);

/// Switches of all views, and how they are measured.
struct Views {
    experimenter: Experimenter,
    sampling: Sampling,
    pace: Pace,
    rounds: usize,
}

/// Measures all views, and what the recording of wall time adds to polls, wakes and spans.
pub(crate) fn measure(options: &Options<'_>) -> Result<Vec<Part>> {
    let views = Views::new(options.rounds())?;
    println!("Views while a run observes: CPU time, median of {} rounds in turns", views.rounds);
    let mut rows = Vec::new();
    let mut tell = |of: String, cost: Difference| {
        println!("  {of:<58} {cost}, ratio {:.3}", cost.ratio());
        rows.push(cost.row(of));
    };
    let service = Load::service(views.pace);
    views.look_up();
    tell("wall time, waits, requests, polls, timeline".into(), views.of(&service, Views::wall));
    tell("samples of lines and functions".into(), views.of(&service, Views::samples));
    let (how, cost) = views.call_chains(&service);
    tell(called(how), cost);
    tell("long polls".into(), views.of(&service, Views::long_polls));
    tell("allocations, exact".into(), views.of(&service, Views::allocations));
    tell(
        "an event of the kernel's, as one of the processor's".into(),
        views.of(&service, Views::events),
    );
    let all = views.of(&service, Views::all);
    tell("all but events".into(), all);
    drop(service);
    let plain = Load::plain(views.pace);
    let counted = Counted::begin();
    let sampled = views.of(&plain, Views::allocations_sampled);
    tell("call chains of allocations, of a plain thread".into(), sampled);
    drop((plain, counted));
    let recording = views.recording();
    let recorded = format!("recorded_poll_ns={:.1}", recording[0].figure);
    drop(views);
    if let Some(other) = options.other {
        rows.push(in_other_build(other, options.rounds(), how)?);
    }
    let line = format!("all_views_ratio={:.3}", all.ratio());
    Ok(vec![
        Part { name: "views", line, rows },
        Part { name: "recording", line: recorded, rows: recording },
    ])
}

/// Prints the row of call chains in this build, for [`in_other_build`].
pub(crate) fn print_stacks(rounds: usize) -> Result<()> {
    let views = Views::new(rounds)?;
    let service = Load::service(views.pace);
    views.look_up();
    let (how, cost) = views.call_chains(&service);
    println!("{}", serde_json::to_string(&cost.row(called(how)))?);
    Ok(())
}

/// The row of call chains in another build of this bench, where they are found in another way.
fn in_other_build(other: &Path, rounds: usize, how: Chains) -> Result<Row> {
    let output = Command::new(other)
        .args([STACKS, &rounds.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    let row: Row = serde_json::from_slice(&output.stdout)?;
    if row.of == called(how) {
        return Err(format!("{} finds call chains as this build does", other.display()).into());
    }
    println!("  {}, in {}: {:+.2} ns", row.of, other.display(), row.figure);
    Ok(row)
}

/// How call chains are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chains {
    FramePointers,
    Copies,
}

fn called(how: Chains) -> String {
    let by = match how {
        Chains::FramePointers => "frame pointers",
        Chains::Copies => "copies of stacks",
    };
    format!("CPU stacks, by {by}")
}

impl Views {
    fn new(rounds: usize) -> Result<Views> {
        andweorc::subscriber().init();
        let experimenter = Experimenter::new().ok_or("andweorc is on already")?;
        let sampling = Sampling::start(Symbols::of_this_program()?, Event::default())?;
        slots::off();
        Ok(Views { experimenter, sampling, pace: Pace::measure(), rounds })
    }

    /// Cost of a view, for each item of the load.
    fn of(&self, load: &Load, view: fn(&Views, &mut dyn FnMut())) -> Difference {
        let with = || {
            let mut cost = 0.0;
            view(self, &mut || cost = load.measure());
            cost
        };
        compare_timed(self.rounds, || load.measure(), with)
    }

    /// All that is recorded of wall time.
    fn wall(&self, run: &mut dyn FnMut()) {
        wall::begin_stretch();
        run();
        let (recorded, polls) = wall::end();
        assert!(!recorded.stacks.is_empty() || !polls.kinds.is_empty(), "nothing was recorded");
        wall::forget();
    }

    fn samples(&self, run: &mut dyn FnMut()) {
        self.sampled(|| {
            run();
        });
        assert!(self.sampling.take().samples > 0, "nothing was sampled");
    }

    fn sampled<R>(&self, run: impl FnOnce() -> R) -> R {
        slots::on(Event::default(), COARSE).expect("it was to be had before");
        let result = run();
        slots::off();
        result
    }

    /// Whole call chains. Returns how they were found.
    fn chains(&self, run: &mut dyn FnMut()) -> Chains {
        let record = self.sampled(|| {
            self.sampling.begin_stacks();
            run();
            self.sampling.end_stacks().expect("they were begun")
        });
        assert!(record.samples > 0, "nothing was sampled");
        if 2 * record.unwound > record.samples { Chains::Copies } else { Chains::FramePointers }
    }

    /// Looks up what the load calls, and learns whether that has frame pointers.
    fn look_up(&self) {
        self.chains(&mut || thread::sleep(WARM_UP));
    }

    fn call_chains(&self, load: &Load) -> (Chains, Difference) {
        let how = self.chains(&mut || thread::sleep(LOOK * 10));
        (how, self.of(load, |views, run| _ = views.chains(run)))
    }

    fn long_polls(&self, run: &mut dyn FnMut()) {
        let record = self.experimenter.observe_polls(LONG_POLL, run);
        assert!(record.is_some_and(|record| record.watched_ns > 0), "nobody looked");
    }

    fn allocations(&self, run: &mut dyn FnMut()) {
        let _counted = Counted::begin();
        run();
    }

    /// Where a plain thread allocates: none of the other recordings tells anything of it.
    fn allocations_sampled(&self, run: &mut dyn FnMut()) {
        wall::begin_stretch();
        run();
        wall::forget();
    }

    /// All that a run with samples and andweorc's allocator records while it observes.
    fn all(&self, run: &mut dyn FnMut()) {
        let _counted = Counted::begin();
        self.long_polls(&mut || {
            self.wall(&mut || _ = self.chains(run));
        });
    }

    /// A clock of the kernel's, which overflows as often as any event does and everywhere.
    fn events(&self, run: &mut dyn FnMut()) {
        let (mut counting, refused) =
            Counting::start(&[CountedEvent::CpuClock], None).expect("the signal is to be had");
        assert!(refused.is_empty(), "no event is counted here: {}", refused[0]);
        let (rated, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let record = thread::scope(|scope| {
            let looks = scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    thread::sleep(LOOK);
                    counting.look(None);
                    rated.fetch_or(counting.is_rated(), Ordering::SeqCst);
                }
                counting.close(None)
            });
            let begun = Instant::now();
            while !rated.load(Ordering::SeqCst) && begun.elapsed() < PATIENCE {
                thread::sleep(LOOK);
            }
            run();
            stop.store(true, Ordering::SeqCst);
            looks.join().expect("it does not panic")
        });
        assert!(record.events.iter().all(|event| event.overflows > 0), "{record:?}");
    }

    /// Measures the recording of wall time by polls, wakes, requests and spans alone.
    fn recording(&self) -> Vec<Row> {
        println!("Added by the recording of wall time to");
        let loads: [Alone; 4] = [
            ("a poll, and its wake of its own task", Load::polls),
            ("two polls, each woken by another task", Load::wakes),
            ("a request of one span", || Load::spans(0)),
            ("a request of five spans", || Load::spans(4)),
        ];
        let row = |(of, load): Alone| {
            let cost = self.of(&load(), Views::wall);
            println!("  {of:<58} {cost}");
            cost.row(of.to_owned())
        };
        loads.map(row).into()
    }
}
