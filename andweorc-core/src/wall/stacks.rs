//! The stacks of spans that are told apart, and the wall time of each.

use crate::time::Nanos;
use crate::wait::Cause;
use andweorc_profile::{WallStack, WallWaker};
use std::collections::HashMap;

/// So many stacks are told apart. A row has some hundred bytes in the profile.
pub(super) const MAX_STACKS: usize = 4096;

/// So many targets that end waits of one stack are told apart.
const MAX_WAKERS: usize = 64;

/// The stack of all requests beyond those that are told apart.
const OTHER: u32 = 0;

/// State that a moment of wall time is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WallState {
    /// Being polled.
    Running,
    /// Ready, but not yet polled.
    Queue,
    /// Waiting for this; if for a task, for one that was in the target of this id, 0 where that is
    /// not known.
    Waiting(Cause, u32),
    /// Waiting, and nobody saw for what.
    Unknown,
}

/// Times of one stack, ns. Parts of moments are counted: a moment may be that of several spans.
#[derive(Debug, Default)]
struct Times {
    count: u64,
    held: u64,
    running: f64,
    queue: f64,
    outside: f64,
    timer: f64,
    unknown: f64,
    tasks: Vec<(u32, f64)>,
}

/// The stacks seen so far, by number.
#[derive(Debug)]
pub(super) struct Stacks {
    numbers: HashMap<(Option<u32>, u32), u32>,
    /// Parent and target of each.
    places: Vec<(Option<u32>, Option<u32>)>,
}

impl Stacks {
    pub(super) fn new() -> Stacks {
        Stacks { numbers: HashMap::new(), places: vec![(None, None)] }
    }

    /// The target of a stack; `None` of that of all requests beyond those that are told apart.
    pub(super) fn target(&self, stack: u32) -> Option<u32> {
        self.places.get(stack as usize)?.1
    }

    /// The number of the stack of this target inside of `parent`, if it has one.
    pub(super) fn known(&self, parent: Option<u32>, target: u32) -> Option<u32> {
        self.numbers.get(&(parent, target)).copied()
    }

    /// The number of the stack of this target inside of `parent`. An error, the number of the
    /// stack that its time is counted as, where there are too many.
    pub(super) fn number(&mut self, parent: Option<u32>, target: u32) -> Result<u32, u32> {
        if let Some(number) = self.known(parent, target) {
            return Ok(number);
        }
        if self.places.len() >= MAX_STACKS {
            return Err(parent.unwrap_or(OTHER));
        }
        let number = self.places.len() as u32;
        self.places.push((parent, Some(target)));
        self.numbers.insert((parent, target), number);
        Ok(number)
    }

    /// Rows of the stacks that had any time, and of those around them, each after the one around
    /// it.
    pub(super) fn rows(&self, sums: &Sums) -> Vec<WallStack> {
        let none = Times::default();
        let mut times = vec![&none; self.places.len()];
        let mut kept = vec![false; self.places.len()];
        for (stack, sum) in &sums.rows {
            times[*stack as usize] = sum;
            kept[*stack as usize] = true;
        }
        // Each has a greater number than the one around it.
        for (number, (parent, _)) in self.places.iter().enumerate().rev() {
            if let (true, Some(parent)) = (kept[number], parent) {
                kept[*parent as usize] = true;
            }
        }
        let mut rows: Vec<WallStack> = Vec::new();
        let mut places = vec![0; kept.len()];
        for (number, &(parent, target)) in self.places.iter().enumerate() {
            if kept[number] {
                places[number] = rows.len() as u32;
                let parent = parent.map(|parent| places[parent as usize]);
                rows.push(times[number].row(parent, target));
            }
        }
        rows
    }
}

/// Times of stacks, added up.
#[derive(Debug, Default)]
pub(super) struct Sums {
    rows: HashMap<u32, Times>,
}

impl Sums {
    /// Counts one more span of a stack that ended.
    pub(super) fn count(&mut self, stack: u32) {
        self.rows.entry(stack).or_default().count += 1;
    }

    /// Counts one more poll that has ended with a span of a stack entered.
    pub(super) fn hold(&mut self, stack: u32) {
        self.rows.entry(stack).or_default().held += 1;
    }

    /// Adds `ns` in this state to a stack.
    pub(super) fn add(&mut self, stack: u32, state: WallState, ns: f64) {
        if ns > 0.0 {
            self.rows.entry(stack).or_default().add(state, ns);
        }
    }

    /// Adds what others are, and leaves nothing there.
    pub(super) fn take(&mut self, others: &mut Sums) {
        for (stack, other) in others.rows.drain() {
            let times = self.rows.entry(stack).or_default();
            times.count += other.count;
            times.held += other.held;
            times.running += other.running;
            times.queue += other.queue;
            times.outside += other.outside;
            times.timer += other.timer;
            times.unknown += other.unknown;
            for (by, ns) in other.tasks {
                times.add(WallState::Waiting(Cause::Task, by), ns);
            }
        }
    }

    /// Times of a stack.
    #[cfg(test)]
    pub(super) fn row(&self, stack: u32) -> WallStack {
        self.rows.get(&stack).map_or_else(WallStack::default, |times| times.row(None, None))
    }

    /// All times, ns.
    #[cfg(test)]
    pub(super) fn total(&self) -> f64 {
        let of = |times: &Times| {
            let tasks: f64 = times.tasks.iter().map(|(_, ns)| ns).sum();
            times.running + times.queue + times.outside + times.timer + times.unknown + tasks
        };
        self.rows.values().map(of).sum()
    }

    /// Forgets all times.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }
}

impl Times {
    fn add(&mut self, state: WallState, ns: f64) {
        match state {
            WallState::Running => self.running += ns,
            WallState::Queue => self.queue += ns,
            WallState::Waiting(Cause::Outside, _) => self.outside += ns,
            WallState::Waiting(Cause::Timer, _) => self.timer += ns,
            WallState::Unknown => self.unknown += ns,
            WallState::Waiting(Cause::Task, by) => {
                let by = if self.tasks.len() < MAX_WAKERS { by } else { 0 };
                match self.tasks.iter_mut().find(|(waker, _)| *waker == by) {
                    Some((_, time)) => *time += ns,
                    None => self.tasks.push((by, ns)),
                }
            }
        }
    }

    fn row(&self, parent: Option<u32>, target: Option<u32>) -> WallStack {
        let ns = |time: f64| time.round() as u64;
        let waker =
            |&(by, time): &(u32, f64)| WallWaker { by: (by != 0).then_some(by), ns: ns(time) };
        let mut tasks: Vec<_> = self.tasks.iter().map(waker).filter(|waker| waker.ns > 0).collect();
        tasks.sort_unstable_by_key(|waker| (std::cmp::Reverse(waker.ns), waker.by));
        WallStack {
            parent,
            target,
            count: self.count,
            running_ns: ns(self.running),
            queue_ns: ns(self.queue),
            outside_ns: ns(self.outside),
            timer_ns: ns(self.timer),
            tasks,
            unknown_ns: ns(self.unknown),
            held: self.held,
        }
    }
}

/// A stretch of time as the stacks count it; none where it is negative.
pub(super) fn ns(stretch: Nanos) -> f64 {
    stretch.0.max(0) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_beyond_the_limit_are_counted_as_those_around_them() {
        let (mut stacks, mut sums) = (Stacks::new(), Sums::default());
        let first = stacks.number(None, 1).unwrap();
        let mut beyond = 0;
        for target in 2..2 * MAX_STACKS as u32 {
            let stack = stacks.number(Some(first), target).unwrap_or_else(|around| {
                beyond += 1;
                around
            });
            sums.add(stack, WallState::Running, 1.0);
        }
        sums.add(stacks.number(None, 2).unwrap_err(), WallState::Unknown, 5.0);
        let rows = stacks.rows(&sums);
        assert_eq!(rows.len(), MAX_STACKS);
        assert_eq!((rows[0].target, rows[0].unknown_ns), (None, 5), "the other requests");
        assert_eq!((rows[1].target, rows[1].running_ns), (Some(1), beyond));
        let all: u64 = rows.iter().map(WallStack::total_ns).sum();
        assert_eq!(all, 2 * MAX_STACKS as u64 - 2 + 5);
    }

    #[test]
    fn stacks_without_time_are_left_out_and_those_around_one_with_time_are_there() {
        let (mut stacks, mut sums) = (Stacks::new(), Sums::default());
        stacks.number(None, 7).unwrap();
        let outer = stacks.number(None, 8).unwrap();
        let inner = stacks.number(Some(outer), 9).unwrap();
        sums.add(inner, WallState::Waiting(Cause::Task, 0), 3.0);
        let mut others = Sums::default();
        others.add(inner, WallState::Waiting(Cause::Task, 8), 4.4);
        sums.take(&mut others);
        let rows = stacks.rows(&sums);
        let places: Vec<_> = rows.iter().map(|row| (row.parent, row.target)).collect();
        assert_eq!(places, [(None, Some(8)), (Some(0), Some(9))]);
        let wakers = [WallWaker { by: Some(8), ns: 4 }, WallWaker { by: None, ns: 3 }];
        assert_eq!((&rows[1].tasks[..], rows[1].task_ns()), (&wakers[..], 7));
        assert!(stacks.rows(&others).is_empty());
    }
}
