//! The turns of one program: baselines, experiments, and stretches in which a part is really
//! faster.

use crate::disturbed::Watch;
use crate::machine::{Awake, Watched};
use crate::outside::Outside;
use crate::program::{POINT, Part, Program, Runtime, Stage, sampled};
use crate::programs;
use crate::report::{Report, Row, Scheduling};
use crate::work::Pace;
use andweorc::runtime::BuilderExt;
use andweorc_core::clock;
use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::point::points;
use andweorc_core::sampler::{Event, Found, Sampling};
use andweorc_core::symbols::Symbols;
use andweorc_core::target::{Target, targets};
use andweorc_core::time::{Real, Speedup};
use andweorc_profile::estimate::{Verdict, analyse_ranking};
use andweorc_profile::{ExperimentRecord, Header, Run, TargetKind};
use std::error::Error;
use std::io;
use std::thread::{self, sleep};
use std::time::Duration;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How long the program runs before it is measured.
const WARM_UP: Duration = Duration::from_millis(700);

/// How long the program runs before it is measured, where targets are found by samples.
const OBSERVE: Duration = Duration::from_secs(2);

/// The library's own, and the measured stretch of a short run.
const PHASES: Phases = Phases::from_millis(50, 300, 30);

/// A case has at least so many rounds, whatever the budget: two give no interval worth the name.
const LEAST_ROUNDS: u32 = 3;

/// So many, if the budget has them, before one is believed to be known: to stop at the first narrow
/// interval is to prefer those that came out too narrow. Of three rounds one in five is less than
/// half as wide as it should be, of six one in seventeen (chi-square).
const ROUNDS_TO_KNOW: u32 = 6;

/// How often a disturbed stretch is repeated before it is left out.
const MOST_REPEATS: u32 = 5;

/// How to take turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    pub(crate) pace: Pace,
    pub(crate) budget: Duration,
    /// Only the least and the greatest speedup of each target.
    pub(crate) quick: bool,
    /// With real-time priority, on processors that are kept awake.
    pub(crate) quiet_machine: bool,
    /// Of the runtime; the program runs once for every two.
    pub(crate) workers: usize,
}

/// At 75 % a target that is always busy slows its program fourfold.
const MOST_SLOWDOWN: f64 = 8.0;

/// A target at a speedup.
struct Case {
    target: &'static Target,
    speedup: Speedup,
    part: Part,
}

/// Runs `program` in this process and says what came out. Blocks meanwhile.
pub(crate) fn run(program: &'static Program, turns: &Turns) -> Result<Report, Box<dyn Error>> {
    let experimenter = Experimenter::new()
        .ok_or("another experimenter lives in this process")?
        .with_max_slowdown(MOST_SLOWDOWN);
    let mut outside = Outside::start()?;
    let watch = Watch::new(outside.pid())?;
    tracing_subscriber::registry().with(andweorc::layer()).init();
    let stage = Stage::new(program, turns.pace);
    start(program, &stage, &mut outside, turns.workers)?;
    let (watched, used) = (Watched::begin()?, watch.used());
    let before = targets().iter().map(|target| (target.id(), target.busy_ns())).collect();
    let sampling = sample()?;
    let busy = watched.busy()?;
    let samples = watch.samples_since(used, &before);
    let quiet = turns.quiet_machine;
    let scheduling = if quiet { Scheduling::of(busy) } else { Scheduling::Fair };
    scheduling.set()?;
    let _awake = if quiet { keep_awake() } else { None };
    let found = sampling.as_ref().map(Sampling::take);
    let cases = cases(program, &stage, found.as_ref(), turns.quick)?;
    if let Some(sampling) = &sampling {
        sampling.refine(&cases.iter().map(|case| case.target).collect::<Vec<_>>());
    }
    let mut predicted = empty_run(program);
    predicted.samples.push(samples);
    let mut turner = Turner {
        experimenter,
        sampling,
        watch,
        predicted,
        truth: empty_run(program),
        scheduling,
        repeated: 0,
        spent: Duration::ZERO,
        settle: None,
    };
    let began = clock::now();
    let turns = turner.turn(&cases, turns.budget)?;
    if let Some(found) = turner.sampling.as_ref().map(Sampling::take) {
        eprintln!(
            "{}: {} samples, {} lost, {} held back",
            program.name, found.samples, found.lost, found.throttled
        );
    }
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for Case { target, speedup, part } in &cases {
        match Row::new(target, *speedup, &turner.predicted, &turner.truth) {
            // A line is called by the part that it is.
            Some(row) => rows.push(Row { target: part.name().to_owned(), ..row }),
            None => missing.push(format!("{} {speedup}", target.name())),
        }
    }
    Ok(Report {
        program: program.name.to_owned(),
        rows,
        missing,
        rate: turner.base_rate(),
        busy: busy.processors,
        scheduling,
        turns,
        repeated: turner.repeated,
        settle_s: turner.settle.map(|settle| settle.as_secs_f64()),
        seconds: since(began).as_secs_f64(),
    })
}

/// Starts the program on its runtime, once for every two workers.
fn start(
    program: &Program,
    stage: &Stage,
    outside: &mut Outside,
    workers: usize,
) -> io::Result<()> {
    let start = || (0..workers / 2).try_for_each(|_| (program.start)(stage));
    let mut builder = match program.runtime {
        Runtime::None => return start(),
        Runtime::Workers => tokio::runtime::Builder::new_multi_thread(),
        Runtime::CurrentThread => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.worker_threads(workers).enable_all().enable_profiling().build()?;
    let context = runtime.enter();
    start()?;
    drop(context);
    if let Some(load) = stage.load() {
        outside.send_clients(&load)?;
    }
    // Drives the current-thread runtime; the workers need no one. Ends with the process.
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    Ok(())
}

/// A stretch in which the target was really faster, as an experiment on it to the estimates. They
/// bound an effect by the delay that was owed: so the record tells of one that took much longer,
/// for the same virtual time.
fn as_experiment(mut record: ExperimentRecord, case: &Case) -> ExperimentRecord {
    const LONGER: u64 = 1000;
    let took = record.real_ns;
    (record.real_ns, record.delay_ns) = (took * LONGER, took * (LONGER - 1));
    (record.target, record.speedup) = (Some(case.target.id()), case.speedup.fraction());
    record.cpu_ns = None;
    record
}

/// Keeps processors awake while what it returns lives, where that is to be had.
fn keep_awake() -> Option<Awake> {
    let awake = Awake::keep();
    awake.inspect_err(|error| eprintln!("processors may sleep ({error}): run this as root")).ok()
}

/// Lets the program run, and samples it if its targets are lines and functions, which are so found.
fn sample() -> Result<Option<Sampling>, Box<dyn Error>> {
    if !sampled() {
        sleep(WARM_UP);
        return Ok(None);
    }
    let sampling = Sampling::start(Symbols::of_this_program()?, Event::default())?;
    sleep(OBSERVE);
    Ok(Some(sampling))
}

/// The target of this kind that is `part`, and was busy most. A line is known by the function that
/// it is in.
fn find(kind: TargetKind, part: &Part, sampling: Option<&Found>) -> Option<&'static Target> {
    let mut all: Vec<_> =
        targets().into_iter().filter(|it| it.kind() == kind && it.count() > 0).collect();
    all.sort_by_key(|target| std::cmp::Reverse(target.busy_ns()));
    let is_in = |function: &str| function.rsplit("::").next() == Some(part.function());
    all.into_iter().find(|target| match kind {
        TargetKind::Function => is_in(target.name()),
        TargetKind::Line => sampling.is_some_and(|found| {
            found.lines.keys().any(|place| {
                is_in(&place.function)
                    && target.file() == Some(&place.file)
                    && target.line() == Some(place.line)
            })
        }),
        _ => target.name() == part.name(),
    })
}

fn cases(
    program: &Program,
    stage: &Stage,
    found: Option<&Found>,
    quick: bool,
) -> Result<Vec<Case>, String> {
    if !points().iter().any(|point| point.name() == POINT && point.count() > 0) {
        return Err(format!("`{}` got nothing done while it warmed up", program.name));
    }
    let place =
        programs::timed().chain(programs::unmarked()).position(|it| it.name == program.name);
    let mut cases = Vec::new();
    for (number, aim) in program.targets.iter().enumerate() {
        let part = stage.part(aim.name);
        let kind = match sampled() {
            false => aim.kind,
            // What matters most is the first: a line in every other program, a function in the
            // others.
            true if (place.unwrap_or(0) + number).is_multiple_of(2) => TargetKind::Line,
            true => TargetKind::Function,
        };
        let target = find(kind, &part, found)
            .ok_or_else(|| format!("the {kind:?} `{}` did not run", aim.name))?;
        let last = aim.speedups.len() - 1;
        for (number, &speedup) in aim.speedups.iter().enumerate() {
            if quick && number != 0 && number != last {
                continue;
            }
            let speedup = Speedup::new(speedup).ok_or("a speedup is a fraction from 0 to 1")?;
            cases.push(Case { target, speedup, part: part.clone() });
        }
    }
    Ok(cases)
}

/// Takes the turns, and keeps what came out. The two runs share the baselines.
struct Turner {
    experimenter: Experimenter,
    /// Where targets are sampled.
    sampling: Option<Sampling>,
    watch: Watch,
    /// Scheduling of the program's threads.
    scheduling: Scheduling,
    predicted: Run,
    truth: Run,
    repeated: u32,
    /// Time spent on experiments, with a baseline each.
    spent: Duration,
    /// Time spent on experiments, with a baseline each, when the first target was settled.
    settle: Option<Duration>,
}

impl Turner {
    /// Measures each case [`ROUNDS_TO_KNOW`] times, and then whichever is known the least, until
    /// all are known well enough or the budget is spent. Returns how often in all. By how far
    /// prediction and truth are apart it does not go.
    fn turn(&mut self, cases: &[Case], budget: Duration) -> Result<u32, &'static str> {
        let began = clock::now();
        self.baseline()?;
        let mut turns = 0;
        let has_time = |turns| since(began) * (turns + 1) / turns <= budget;
        for round in 0..ROUNDS_TO_KNOW {
            for (number, case) in cases.iter().enumerate() {
                if round >= LEAST_ROUNDS && !has_time(turns) {
                    return Ok(turns);
                }
                self.both(case, (round as usize + number) % 2 == 1)?;
                turns += 1;
            }
        }
        while has_time(turns) {
            let unknown = |case: &Case| {
                Row::new(case.target, case.speedup, &self.predicted, &self.truth)
                    .map_or(f64::INFINITY, |row| row.unknown())
            };
            let cases = cases.iter().map(|case| (case, unknown(case)));
            let least = cases.max_by(|(_, a), (_, b)| a.total_cmp(b));
            let (case, unknown) = least.ok_or("there is nothing to measure")?;
            if unknown < 1.0 {
                break;
            }
            self.both(case, turns % 2 == 1)?;
            turns += 1;
        }
        Ok(turns)
    }

    /// Prediction and truth of a case. Every other time the truth comes first: a steady drift
    /// cancels.
    fn both(&mut self, case: &Case, truth_first: bool) -> Result<(), &'static str> {
        // Some are there only since the experiment before.
        self.scheduling.set().map_err(|_| "threads got no real-time priority")?;
        for truth in [truth_first, !truth_first] {
            if truth { self.truth(case)? } else { self.predict(case)? }
        }
        Ok(())
    }

    fn predict(&mut self, case: &Case) -> Result<(), &'static str> {
        let began = clock::now();
        let record = self.hold(Some(case.target), case.speedup)?;
        self.predicted.experiments.push(record);
        self.baseline()?;
        self.spent += since(began);
        if self.settle.is_none() {
            let analysis = analyse_ranking(std::slice::from_ref(&self.predicted));
            let settled = |verdict| !matches!(verdict, Verdict::Inconclusive { .. });
            if analysis.targets.iter().any(|target| settled(target.verdict)) {
                self.settle = Some(self.spent);
            }
        }
        Ok(())
    }

    fn truth(&mut self, case: &Case) -> Result<(), &'static str> {
        self.set_learns(false);
        case.part.reduce(case.speedup.fraction());
        let record = self.hold(None, Speedup::ZERO);
        case.part.reduce(0.0);
        self.set_learns(true);
        self.truth.experiments.push(without_cpu(as_experiment(record?, case)));
        self.baseline()
    }

    /// Sets whether samples count in the shares of targets: they don't while the program is really
    /// changed.
    fn set_learns(&self, learns: bool) {
        if let Some(sampling) = &self.sampling {
            sampling.set_learns(learns);
        }
    }

    fn baseline(&mut self) -> Result<(), &'static str> {
        let record = self.hold(None, Speedup::ZERO)?;
        self.truth.experiments.push(without_cpu(record.clone()));
        self.predicted.experiments.push(record);
        Ok(())
    }

    /// Holds one stretch, again when the machine was disturbed.
    fn hold(
        &mut self,
        target: Option<&Target>,
        speedup: Speedup,
    ) -> Result<ExperimentRecord, &'static str> {
        for repeats in 0.. {
            let before = self.watch.used();
            let mut record = self
                .experimenter
                .run(target, speedup, PHASES)
                .record()
                .ok_or("the experiments were stopped")?;
            record.discarded = record.discarded.or_else(|| self.watch.disturbed_since(before));
            if record.discarded.is_none() || repeats == MOST_REPEATS {
                return Ok(record);
            }
            self.repeated += 1;
        }
        unreachable!("the loop ends by returning")
    }

    /// Units of work a second, without any speedup.
    fn base_rate(&self) -> f64 {
        let baselines = || self.truth.experiments.iter().filter(|one| one.target.is_none());
        let ids = || self.truth.points.iter().map(|point| point.id);
        let done = |one: &ExperimentRecord| {
            one.points
                .iter()
                .filter(|it| ids().any(|id| id == it.point))
                .map(|it| it.count)
                .sum::<u64>()
        };
        baselines().map(done).sum::<u64>() as f64 * 1e9
            / baselines().map(|one| one.real_ns).sum::<u64>() as f64
    }
}

/// Takes the CPU time out of a record: the truth has no experiments whose cost would be added
/// back.
fn without_cpu(mut record: ExperimentRecord) -> ExperimentRecord {
    record.cpu_ns = None;
    record
}

/// How long ago that was, by real time: the program's own clock is slower in experiments.
fn since(began: Real) -> Duration {
    (clock::now() - began).to_duration()
}

/// A run of `program` that has no experiment yet: what the estimates ask for beside experiments.
fn empty_run(program: &Program) -> Run {
    let mut run = Run::new(Header::new(program.name));
    run.header.cores = std::thread::available_parallelism().map_or(1, usize::from);
    run.targets = targets().iter().map(|target| target.to_record()).collect();
    let point = points().into_iter().find(|point| point.name() == POINT);
    run.points = point.map(|point| point.to_record(0)).into_iter().collect();
    run
}
