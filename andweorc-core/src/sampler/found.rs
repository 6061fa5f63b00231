//! Results of sampling: how hot each line and function is, and how large its share is of each
//! context.

use crate::sampler::events::EventCounts;
use crate::sampler::site_timeline::{self, Steps};
use crate::sampler::stacks::{FramePointers, Stacks};
use crate::sampler::target_fraction::{self, Seen};
use crate::sampler::threads;
use crate::target::{Target, target, targets};
use crate::time::Nanos;
use andweorc_profile::{StacksRecord, TargetKind};
use andweorc_sampling::addresses::{Addresses, Verdict};
use andweorc_sampling::queue::Sample;
use andweorc_sampling::slots;
use andweorc_sampling::symbols::{Place, SymbolError, Symbols};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Results of sampling since the last time.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Samples of each line in scope.
    pub lines: HashMap<Place, u64>,
    /// Samples in all.
    pub samples: u64,
    /// Samples that were lost: the kernel took them, but nobody could look.
    pub lost: u64,
    /// How often the kernel held samples back.
    pub throttled: u64,
}

/// Frames in scope at an address.
#[derive(Default)]
struct Frames {
    /// The line of the innermost frame, and where that is.
    line: Option<(&'static Target, Place)>,
    /// The functions, innermost first; none where nothing is in scope.
    functions: Vec<&'static Target>,
}

impl Frames {
    fn verdict(&self, target: &Target) -> Verdict {
        let is = |it: &Target| it.id() == target.id();
        let is_inside = match target.kind() {
            TargetKind::Line => self.line.as_ref().is_some_and(|(line, _)| is(line)),
            TargetKind::FunctionSelf => {
                self.functions.first().is_some_and(|it| it.name() == target.name())
            }
            _ => self.functions.iter().any(|it| is(it)),
        };
        match (is_inside, target.kind()) {
            (true, _) => Verdict::Inside,
            // A sample is charged inclusively to the functions of all frames in scope, and else to
            // the innermost one.
            (false, TargetKind::Function) => Verdict::Callers,
            (false, _) if self.functions.is_empty() => Verdict::Callers,
            (false, _) => Verdict::Outside,
        }
    }
}

/// Resolves samples.
pub(super) struct Finder {
    symbols: Symbols,
    table: &'static Addresses,
    known: HashMap<u64, Frames>,
    /// Whether functions are counted exclusively too.
    alone: bool,
    /// The target of the running experiment, if it is sampled.
    aimed: Option<u32>,
    found: Found,
    told: slots::Tally,
    learns: bool,
    /// Samples of each context with the time that they stand for, and samples of each target in it,
    /// all told.
    contexts: HashMap<u32, (u64, Nanos)>,
    inside: HashMap<(u32, u32), u64>,
    /// Whole call chains while they are recorded, and what was told before.
    stacks: Option<(Stacks, slots::Tally)>,
    /// Events by target while they are counted.
    events: Option<EventCounts>,
    frame_pointers: FramePointers,
}

impl std::fmt::Debug for Finder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finder").field("found", &self.found).finish_non_exhaustive()
    }
}

impl Finder {
    pub(super) fn new(symbols: Symbols, table: &'static Addresses) -> Finder {
        target_fraction::forget_visits();
        // Judged for the targets of another one, and maybe of code that has been unloaded since.
        table.forget();
        Finder {
            symbols,
            table,
            known: HashMap::new(),
            alone: false,
            aimed: None,
            found: Found::default(),
            told: slots::tally(),
            learns: true,
            contexts: HashMap::new(),
            inside: HashMap::new(),
            stacks: None,
            events: None,
            frame_pointers: FramePointers::default(),
        }
    }

    /// Records whole call chains from now on, and forgets those that were recorded.
    pub(super) fn begin_stacks(&mut self) {
        self.drain();
        self.stacks = Some((Stacks::default(), slots::tally()));
        slots::keep_long_chains(true);
        slots::copy_stacks(self.frame_pointers.may_be_missing());
    }

    /// Ends the recording of whole call chains. Returns those since it began, of which the times of
    /// the program are not known here; `None` where it did not.
    pub(super) fn end_stacks(&mut self) -> Option<StacksRecord> {
        self.drain();
        let ended = self.stacks.take();
        slots::keep_long_chains(false);
        slots::copy_stacks(false);
        let (stacks, before) = ended?;
        let mut record = stacks.into_record();
        record.lost = slots::tally().lost - before.lost;
        Some(record)
    }

    /// Has overflows of counters counted from now on.
    pub(super) fn begin_events(&mut self) {
        self.drain();
        self.events = Some(EventCounts::default());
    }

    /// Ends that. Returns those since it began.
    pub(super) fn end_events(&mut self) -> EventCounts {
        self.drain();
        self.events.take().unwrap_or_default()
    }

    pub(super) fn set_learns(&mut self, learns: bool) {
        self.drain();
        self.learns = learns;
        target_fraction::set_learns(learns);
    }

    pub(super) fn count_functions_alone(&mut self) {
        self.alone = true;
    }

    /// BeforeWake as if so many samples of 1 ms had been taken in `context`, and so many of them
    /// inside of each target.
    #[cfg(test)]
    pub(super) fn saw(&mut self, context: u32, samples: u64, inside: &[(&Target, u64)]) {
        self.contexts.insert(context, (samples, Nanos::from_millis(samples as i64)));
        self.inside.extend(inside.iter().map(|(target, times)| ((context, target.id()), *times)));
    }

    /// Whether samples can be charged to lines.
    pub(super) fn lines(&self) -> Result<(), SymbolError> {
        self.symbols.lines()
    }

    /// The sampled shared objects that have no lines.
    pub(super) fn objects_without_lines(&self) -> Vec<PathBuf> {
        self.symbols.objects_without_lines()
    }

    /// Resolves what was sampled.
    pub(super) fn drain(&mut self) {
        let changed = self.symbols.refresh();
        self.forget(&changed);
        slots::drain(|sample, thread| {
            if sample.overflow.is_some() {
                self.count_events(sample, &changed);
                return;
            }
            if let Some((stacks, _)) = &mut self.stacks {
                // Tables of code that came and went meanwhile may not be those of the sample.
                let stack = sample.stack.as_ref().filter(|_| changed.is_empty());
                let unwound = stack.and_then(|stack| {
                    let unwound = self.symbols.unwind(stack);
                    self.frame_pointers.choose(sample, unwound)
                });
                let gone = |address| changed.iter().any(|code| code.contains(&address));
                let symbols = &mut self.symbols;
                let look_up = |address| match gone(address) {
                    true => Arc::from([]),
                    false => symbols.frames(address),
                };
                stacks.count(unwound.as_ref().unwrap_or(sample), thread, look_up);
            }
            self.count(sample, &changed);
        });
        if self.stacks.is_some() {
            slots::copy_stacks(self.frame_pointers.may_be_missing());
        }
    }

    /// Forgets what is known of addresses in these ranges, whose code was loaded or unloaded.
    fn forget(&mut self, changed: &[Range<u64>]) {
        if !changed.is_empty() {
            if let Some((stacks, _)) = &mut self.stacks {
                stacks.forget(changed);
            }
            let table = self.table;
            self.known.retain(|&address, _| {
                let stays = !changed.iter().any(|code| code.contains(&address));
                stays || !table.set(address, Verdict::Unknown)
            });
        }
    }

    pub(super) fn take(&mut self) -> Found {
        self.drain();
        let tally = slots::tally();
        let mut found = std::mem::take(&mut self.found);
        found.lost = tally.lost - self.told.lost;
        found.throttled = tally.throttled - self.told.throttled;
        self.told = tally;
        found
    }

    /// Counts a sample. Of addresses in `changed` nobody knows whether it saw the code that is
    /// there now or what was there before: their time is that of their callers.
    fn count(&mut self, sample: &Sample, changed: &[Range<u64>]) {
        let Finder { symbols, table, known, alone, found, learns, contexts, inside, .. } = self;
        found.samples += 1;
        if *learns {
            let (samples, time) = contexts.entry(sample.context).or_default();
            *samples += 1;
            *time += sample.ran;
        }
        let mut judge = |address| frames_judged(symbols, table, self.aimed, address);
        let mut line = None;
        let mut functions: Vec<&'static Target> = Vec::new();
        // How many of them are at the innermost address in scope: one function of machine code,
        // with what was inlined into it.
        let mut inlined = 0;
        for &address in sample.innermost() {
            if changed.iter().any(|code| code.contains(&address)) {
                continue;
            }
            let frames = known.entry(address).or_insert_with(|| judge(address));
            if functions.is_empty() {
                line.clone_from(&frames.line);
                inlined = frames.functions.len();
            }
            for function in &frames.functions {
                // Recursion: the function is in it once.
                if !functions.iter().any(|it| it.id() == function.id()) {
                    functions.push(function);
                }
            }
        }
        let mut hit = |target: &'static Target, own| {
            target.record(sample.ran, own);
            if *learns {
                *inside.entry((sample.context, target.id())).or_default() += 1;
            }
        };
        if let Some((line, place)) = line {
            hit(line, sample.ran);
            *found.lines.entry(place).or_default() += 1;
        }
        if let Some(innermost) = functions.first().filter(|_| *alone) {
            hit(target(TargetKind::FunctionSelf, innermost.name(), None, None), sample.ran);
        }
        for (depth, function) in functions.into_iter().enumerate() {
            hit(function, if is_own(depth, inlined) { sample.ran } else { Nanos::ZERO });
        }
    }

    /// Counts the overflow of a counter, if that is asked for, as that of the innermost function in
    /// scope.
    fn count_events(&mut self, sample: &Sample, changed: &[Range<u64>]) {
        let Finder { symbols, table, known, aimed, events, .. } = self;
        let Some(events) = events else { return };
        let is_known = |address: &&u64| !changed.iter().any(|code| code.contains(address));
        let function = sample.innermost().iter().filter(is_known).find_map(|&address| {
            let judge = || frames_judged(symbols, table, *aimed, address);
            known.entry(address).or_insert_with(judge).functions.first().copied()
        });
        events.count(sample, function.map(Target::id));
    }

    /// An experiment on `target` begins.
    pub(super) fn aim(&mut self, target: &'_ Target) {
        self.drain();
        self.aimed = Some(target.id());
        for (&address, frames) in &self.known {
            self.table.set(address, frames.verdict(target));
        }
        self.learn_courses(target);
        let shares = self.contexts.keys().filter_map(|&context| {
            let (_, share) = self.seen(context, target);
            Some((context, share?))
        });
        target_fraction::begin(shares);
    }

    /// How often a sample of `context` was inside of `target`, and the share that the context has
    /// of it, if it is to be credited so.
    fn seen(&self, context: u32, target: &Target) -> (u64, Option<u32>) {
        let inside = self.inside.get(&(context, target.id())).copied().unwrap_or(0);
        let (samples, time) = self.contexts.get(&context).copied().unwrap_or_default();
        let visits = target_fraction::visits(context);
        (inside, Seen { samples, inside, time, visits }.share().filter(|_| visits > 0))
    }

    /// Which part of the samples inside of `target` was in contexts without a share: there the
    /// samples themselves are the credit.
    pub(super) fn by_samples(&mut self, target: &Target) -> f64 {
        self.drain();
        let (mut all, mut alone) = (0, 0);
        for &context in self.contexts.keys() {
            let (inside, share) = self.seen(context, target);
            all += inside;
            alone += if share.is_none() { inside } else { 0 };
        }
        alone as f64 / all.max(1) as f64
    }

    /// Tells the timelines of all threads what was seen of them, and forgets those of threads that
    /// are gone.
    fn learn_courses(&mut self, target: &Target) {
        let mut seen: HashMap<u32, Steps> = HashMap::new();
        for (&context, &(samples, time)) in &self.contexts {
            if let Some((timeline, step)) = site_timeline::of(context) {
                let inside = self.inside.get(&(context, target.id())).copied().unwrap_or(0);
                let steps = seen.entry(timeline).or_default();
                steps.add(step, Seen { samples, inside, time, visits: 0 });
            }
        }
        threads::each_timeline(|timeline| timeline.learn(seen.remove(&timeline.id()).as_ref()));
        if !seen.is_empty() {
            let gone =
                |context| site_timeline::of(context).is_some_and(|(it, _)| seen.contains_key(&it));
            self.contexts.retain(|&context, _| !gone(context));
            self.inside.retain(|&(context, _), _| !gone(context));
        }
    }
}

/// Whether the time of a sample is a function's own, of `inlined` functions at the innermost
/// address in scope and others that called them, by its number from the inside: it is that of the
/// innermost one, and of the two that would be seen if this had not been inlined: its caller, and
/// the one that all of it was inlined into. What lies between these are more wrappers than anyone
/// can look at.
fn is_own(depth: usize, inlined: usize) -> bool {
    depth == 0 || depth < inlined && (depth == 1 || depth + 1 == inlined)
}

/// The frames at an address, of which the handler is told whether the target of this id is there.
fn frames_judged(
    symbols: &mut Symbols,
    table: &Addresses,
    aimed: Option<u32>,
    address: u64,
) -> Frames {
    let frames = frames_at(symbols, address);
    let aimed = targets().into_iter().find(|it| Some(it.id()) == aimed);
    let verdict = aimed.map_or(Verdict::Callers, |target| frames.verdict(target));
    table.set(address, verdict);
    frames
}

fn frames_at(symbols: &mut Symbols, address: u64) -> Frames {
    let Some(charged) = symbols.resolve(&[address]) else { return Frames::default() };
    let line = charged.line.map(|place| (line_target(&place), Place::clone(&place)));
    let function = |name: &Arc<str>| target(TargetKind::Function, name, None, None);
    Frames { line, functions: charged.functions.iter().map(function).collect() }
}

/// The target of a line.
pub(crate) fn line_target(place: &Place) -> &'static Target {
    let name = format!("{}:{}", place.file, place.line);
    target(TargetKind::Line, &name, Some(&place.file), Some(place.line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::choose::TargetTimes;
    use crate::sampler::tests::SAMPLINGS;
    use crate::sampler::{COARSE, lock};
    use std::collections::BTreeSet;
    use tests_support::{Plugin, build_program, code_of, kept};

    /// With a table of its own.
    fn finder(symbols: Symbols) -> Finder {
        Finder::new(symbols, kept(Addresses::default()))
    }

    fn open(folder: &std::path::Path) -> Symbols {
        Symbols::of_program(&folder.join("shop")).unwrap()
    }

    fn function(name: &str) -> &'static Target {
        target(TargetKind::Function, name, None, None)
    }

    #[test]
    fn verdict_on_unloaded_code_is_forgotten() {
        let _alone = lock(&SAMPLINGS);
        let build = |name| Plugin::build(name, Plugin::STOCK, &["-Cdebuginfo=2"]).unwrap();
        let (gone, next) = (build("gone"), build("next"));
        let mut finder = finder(Symbols::of_this_program().unwrap());
        let (target, table) = (function("gone::stock::update"), finder.table);
        finder.aimed = Some(target.id());
        let loaded = gone.load();
        let inside = loaded.inside();
        let sample = Sample::new(0, COARSE, &[inside]);
        let hits = || [target.count(), function("next::stock::update").count()];
        finder.drain();
        let busy = target.busy_ns();
        finder.count(&Sample::new(0, Nanos::from_millis(4), &[inside]), &[]);
        assert_eq!((hits(), table.judge(&[inside])), ([1, 0], Some(true)));
        assert_eq!(target.busy_ns() - busy, 4_000_000, "the time that the sample stands for");
        drop(loaded);
        let loaded = next.load();
        let is_there = loaded.inside() == inside;
        finder.drain();
        assert_eq!(table.judge(&[inside]), None, "other code may be there");
        finder.count(&sample, &[]);
        assert_eq!(hits(), [1, u64::from(is_there)]);
        assert_eq!(table.judge(&[inside]), Some(false));
        // A sample that was taken around that time may have seen the one or the other.
        let changed = inside..inside + 1;
        finder.count(&sample, std::slice::from_ref(&changed));
        assert_eq!(hits(), [1, u64::from(is_there)]);
        drop(loaded);
    }

    #[test]
    fn a_new_finder_trusts_no_judgement_of_another_one() {
        let _alone = lock(&SAMPLINGS);
        let table = kept(Addresses::default());
        table.set(10, Verdict::Inside);
        Finder::new(Symbols::of_this_program().unwrap(), table);
        assert_eq!(table.judge(&[10]), None);
    }

    /// A helper that is inlined into two functions.
    const INLINED: &str = r#"
pub mod stand {
    #[inline(always)]
    fn digest(mut x: u64, mut rounds: u64) -> u64 {
        while rounds > 0 {
            x ^= (x << 7) ^ rounds;
            rounds -= 1;
        }
        x
    }
    #[inline(never)]
    pub fn parse(rounds: u64) -> u64 {
        digest(rounds | 1, rounds)
    }
    #[inline(never)]
    pub fn render(rounds: u64) -> u64 {
        digest(rounds | 2, rounds) + 1
    }
}
fn main() {
    let rounds = std::hint::black_box(9);
    println!("{} {}", stand::parse(rounds), stand::render(rounds));
}
"#;

    /// The targets that `wanted` stands for when the inlined code was sampled in the program at
    /// `folder`, at these addresses.
    fn chosen(folder: &std::path::Path, sampled: &[u64], wanted: &str) -> BTreeSet<String> {
        let mut finder = finder(open(folder));
        finder.count_functions_alone();
        let before = TargetTimes::read();
        sampled.iter().for_each(|&address| finder.count(&Sample::new(0, COARSE, &[address]), &[]));
        let cpu_ns = sampled.len() as u64 * COARSE.0 as u64;
        let (targets, _) =
            TargetTimes::read().choose_targets(&before, [cpu_ns; 2], &[wanted.to_owned()], 8);
        let names = targets.iter().map(|it| it.name().to_owned());
        names.filter(|it| it.starts_with("shop::") || it.starts_with("src/main.rs")).collect()
    }

    #[test]
    fn callers_of_an_inlined_helper_are_targets_in_each_build() {
        let _alone = lock(&SAMPLINGS);
        let (lines, symbols) = ("-Cdebuginfo=line-tables-only", "-Cdebuginfo=0");
        let [with_lines, with_symbols, stripped] =
            [[lines, "-Cstrip=none"], [symbols, "-Cstrip=debuginfo"], [lines, "-Cstrip=symbols"]]
                .map(|flags| build_program(INLINED, &flags));
        let [with_lines, with_symbols, stripped] =
            [&with_lines, &with_symbols, &stripped].map(|it| it.path());
        // The helper's place in each of them. The code is the same in all builds, wherever it
        // lies.
        let (mut here, mut there) = (Vec::new(), Vec::new());
        let mut found = open(with_lines);
        for part in ["parse", "render"] {
            let [one, other] = [with_lines, with_symbols].map(|it| code_of(&it.join("shop"), part));
            assert_eq!(one.len(), other.len(), "{part}");
            for (&address, &same) in one.iter().zip(&other) {
                if found.resolve(&[address]).is_some_and(|it| it.function.ends_with("digest")) {
                    here.push(address);
                    there.push(same);
                }
            }
        }
        assert!(here.len() > 20, "{here:x?}");
        let of = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<BTreeSet<_>>();
        // `mod stand { .. }` is no file, which is all that line tables know of an inlined function.
        let (callers, helper) = (["shop::stand::parse", "shop::stand::render"], "shop::digest");
        let all = of(&[helper, callers[0], callers[1]]);
        assert_eq!(chosen(with_lines, &here, "functions"), all);
        assert_eq!(chosen(with_lines, &here, "functions-self"), of(&[helper]));
        let lines = chosen(with_lines, &here, "lines");
        assert!(
            !lines.is_empty() && lines.iter().all(|it| it.starts_with("src/main.rs")),
            "{lines:?}"
        );
        assert_eq!(chosen(with_symbols, &there, "functions"), of(&callers));
        assert_eq!(chosen(with_symbols, &there, "functions-self"), of(&callers));
        assert_eq!(chosen(with_symbols, &there, "lines"), of(&[]));
        assert!(matches!(open(with_symbols).lines(), Err(SymbolError::NoLines)));
        for wanted in ["functions", "functions-self", "lines"] {
            assert_eq!(chosen(stripped, &there, wanted), of(&[]));
        }
        assert!(matches!(open(stripped).lines(), Err(SymbolError::Stripped)));
    }

    #[test]
    fn a_function_alone_is_that_of_the_innermost_frame() {
        let [leaf, around, other] =
            ["leaf", "around", "other"].map(|name| target(TargetKind::Function, name, None, None));
        let alone = |of: &Target| target(TargetKind::FunctionSelf, of.name(), None, None);
        let frames = Frames { line: None, functions: vec![leaf, around] };
        let verdicts = |target: &Target| [frames.verdict(target), frames.verdict(alone(target))];
        assert_eq!(verdicts(leaf), [Verdict::Inside, Verdict::Inside]);
        assert_eq!(verdicts(around), [Verdict::Inside, Verdict::Outside]);
        assert_eq!(verdicts(other), [Verdict::Callers, Verdict::Outside]);
        let foreign = Frames::default();
        assert_eq!(foreign.verdict(alone(leaf)), Verdict::Callers, "who called it decides");
    }

    #[test]
    fn inlined_function_time_is_also_its_callers_own_time() {
        let own = |inlined| (0..6).filter(|&depth| is_own(depth, inlined)).collect::<Vec<_>>();
        assert_eq!(own(1), [0], "nothing is inlined");
        assert_eq!(own(2), [0, 1]);
        assert_eq!(own(3), [0, 1, 2]);
        assert_eq!(own(5), [0, 1, 4]);
    }
}
