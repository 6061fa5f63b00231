//! Sampling of lines and functions, for a run that has such targets or nothing else to test.

use super::journal::Journal;
use crate::experiment::choose::{names, want_functions_alone};
use crate::sampler::{Found, Sampling};
use crate::settings::Settings;
use crate::symbols::{SymbolError, Symbols};
use crate::target::Target;
use andweorc_profile::StacksRecord;
use andweorc_sampling::descriptors;
use andweorc_sampling::slots::Shortfall;

/// Samples of a run. None are taken until [`start`](Samples::start).
#[derive(Default)]
pub(super) struct Samples {
    sampling: Option<Sampling>,
    asked: bool,
    taken: Found,
}

impl Samples {
    /// Samples that are taken already.
    pub(super) fn of(sampling: Sampling) -> Samples {
        Samples { sampling: Some(sampling), asked: true, taken: Found::default() }
    }

    /// Begins to sample, or notes why not. Does so once: what was refused is not asked for again.
    pub(super) fn start(&mut self, settings: &Settings, journal: &mut Journal) {
        if std::mem::replace(&mut self.asked, true) {
            return;
        }
        let started =
            Symbols::of_this_program().map_err(|error| error.to_string()).and_then(|symbols| {
                let symbols = symbols.with_scope(settings.scope.clone());
                Sampling::start(symbols, settings.event).map_err(|error| error.to_string())
            });
        match started {
            Ok(sampling) => {
                if want_functions_alone(&settings.targets) {
                    sampling.count_functions_alone();
                }
                self.sampling = Some(sampling);
            }
            Err(why) => journal.note(why),
        }
    }

    /// Whether samples were asked for, taken or not.
    pub(super) fn is_asked(&self) -> bool {
        self.asked
    }

    /// Whether samples are taken.
    pub(super) fn is_on(&self) -> bool {
        self.sampling.is_some()
    }

    /// Whether samples were taken and are not any more.
    pub(super) fn is_over(&self) -> bool {
        self.sampling.as_ref().is_some_and(Sampling::is_over)
    }

    /// Sampling, while samples are taken.
    pub(super) fn sampling(&self) -> Option<&Sampling> {
        self.sampling.as_ref()
    }

    /// Records whole call chains from now on, if samples are taken.
    pub(super) fn begin_stacks(&self) {
        self.sampling.iter().for_each(Sampling::begin_stacks);
    }

    /// Ends that. Returns the call chains since it began, in a stretch of `real_ns` in which the
    /// program used `cpu_ns`; `None` where there were no samples.
    pub(super) fn end_stacks(&self, real_ns: u64, cpu_ns: u64) -> Option<StacksRecord> {
        let sampling = self.sampling.as_ref()?;
        let mut record = sampling.end_stacks().filter(|record| record.samples > 0)?;
        (record.real_ns, record.cpu_ns) = (real_ns, cpu_ns);
        record.source = sampling.kind().to_string();
        Some(record)
    }

    /// Takes note of how much was sampled up to now.
    pub(super) fn take(&mut self) -> Found {
        let found = self.sampling.as_ref().map(Sampling::take).unwrap_or_default();
        self.taken.samples += found.samples;
        self.taken.lost += found.lost;
        self.taken.throttled += found.throttled;
        found
    }

    /// Takes note of how much was sampled up to now, and where: while no experiment is held, in
    /// which only some of the lines are seen.
    pub(super) fn take_lines(&mut self) {
        for (line, samples) in self.take().lines {
            *self.taken.lines.entry(line).or_default() += samples;
        }
    }

    /// All that was taken note of.
    pub(super) fn into_taken(self) -> Found {
        self.taken
    }

    /// How many were taken so far.
    pub(super) fn count(&self) -> u64 {
        self.taken.samples
    }

    /// How many were lost, and held back by the kernel, so far.
    pub(super) fn lost(&self) -> u64 {
        self.taken.lost + self.taken.throttled
    }

    /// Name in the profile of what targets are timed by.
    pub(super) fn source(&self) -> String {
        let kind = self.sampling.as_ref().map(|sampling| sampling.kind().to_string());
        kind.unwrap_or_else(|| "timed".to_owned())
    }

    /// Has CPU timers take the samples from now on, where perf events do that are bound to the
    /// kernel's timers. Returns whether they did.
    pub(super) fn use_timers(&mut self) -> bool {
        self.sampling.as_mut().is_some_and(Sampling::use_timers)
    }

    /// Samples as finely as experiments on these targets ask for.
    pub(super) fn refine(&self, targets: &[&Target]) {
        if let Some(sampling) = &self.sampling {
            sampling.refine(targets);
        }
    }

    /// The reason why samples are not charged to lines, and inlined functions not seen.
    pub(super) fn lack(&self) -> Option<SymbolError> {
        self.sampling.as_ref().and_then(|sampling| sampling.lines().err())
    }

    /// Notes which shared objects were sampled and can't be charged.
    pub(super) fn note_objects_without_lines(&self, journal: &mut Journal) {
        let objects = self.sampling.as_ref().map(Sampling::objects_without_lines);
        let objects = objects.unwrap_or_default();
        let objects: Vec<_> = objects.iter().map(|path| path.to_string_lossy()).collect();
        if !objects.is_empty() {
            let objects = names(objects.iter().map(|path| &**path));
            journal.note(format!(
                "samples were in shared objects of which no lines are known: {objects}. Build them with `debug = \"line-tables-only\"` and without \
                 `strip`, and leave their files as they are while they are loaded"
            ));
        }
    }

    /// Notes what took the samples, and what of them was lost.
    pub(super) fn note_summary(&mut self, journal: &mut Journal) {
        self.take();
        let Some(sampling) = &self.sampling else { return };
        let (kind, refused) = (sampling.kind(), sampling.refused());
        let Shortfall { by_timer, deaf } = sampling.shortfall();
        let Found { samples, lost, throttled, .. } = self.taken;
        journal.note(format!(
            "lines and functions were sampled by {kind}: {samples} samples, {lost} lost, held back by the kernel {throttled} times"
        ));
        if let Some(refused) = refused {
            journal.note(format!("not all threads could be sampled: {refused}"));
        }
        if by_timer > 0 {
            journal.note(format!(
                "{by_timer} threads began to be sampled by the CPU timer, a sample in 4 ms most often: andweorc opens no more files for threads than a \
                 quarter of what the program may have, {}; raise the limit with `ulimit -n`",
                descriptors::most()
            ));
        }
        if deaf > 0 {
            journal.note(format!(
                "{deaf} threads block SIGURG, by which threads are sampled and told to pay: their lines are not seen, and they pay at the \
                 ends of polls and spans alone"
            ));
        }
    }
}
