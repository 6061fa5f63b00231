//! Long polls that were found, by kind of task and place.

use super::kernel::name_of_call;
use crate::symbols::{NamedFrame, Symbols};
use crate::time::Nanos;
use andweorc_profile::{LongPoll, plain};
use std::collections::HashMap;

/// So many places are told apart, as call chains. Each has up to half a kilobyte.
const MAX_PLACES: usize = 512;

/// The function by which a task hands its worker over: others go on without it.
const HANDS_OVER: &str = "block_in_place";

/// Where a poll was found: of which kind of task, its call chain, and the system call that it slept
/// in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Found {
    pub(super) target: u32,
    pub(super) chain: Vec<u64>,
    pub(super) syscall: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    count: u64,
    total: Nanos,
    longest: Nanos,
}

/// Long polls by place.
#[derive(Debug, Default)]
pub(super) struct Places {
    times: HashMap<Found, Times>,
    merged: u64,
}

impl Places {
    /// Adds a poll that was so long.
    pub(super) fn add(&mut self, found: Found, length: Nanos) {
        if self.times.len() >= MAX_PLACES && !self.times.contains_key(&found) {
            self.merged += 1;
            return;
        }
        let times = self.times.entry(found).or_default();
        times.count += 1;
        times.total += length;
        times.longest = times.longest.max(length);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Rows of the profile, how many polls are in none of them, and how many are left out, since
    /// their tasks had handed their worker over. Without symbols no place is known.
    pub(super) fn into_rows(self, mut symbols: Option<Symbols>) -> (Vec<LongPoll>, u64, u64) {
        let mut frames_at = |address| symbols.as_mut().map(|it| it.frames_at(address));
        rows(self.times, |address| frames_at(address).unwrap_or_default(), self.merged)
    }
}

fn rows(
    times: HashMap<Found, Times>,
    mut frames_at: impl FnMut(u64) -> Vec<NamedFrame>,
    merged: u64,
) -> (Vec<LongPoll>, u64, u64) {
    let mut rows: Vec<LongPoll> = Vec::new();
    let mut handed_over = 0;
    for (found, times) in times {
        let frames: Vec<NamedFrame> =
            found.chain.iter().flat_map(|&address| frames_at(address)).collect();
        if frames.iter().any(|frame| frame.function.ends_with(HANDS_OVER)) {
            handed_over += times.count;
            continue;
        }
        let ns = |time: Nanos| u64::try_from(time.0).unwrap_or(0);
        let place = place(&frames);
        let row = LongPoll {
            target: found.target,
            count: times.count,
            asleep: if found.syscall.is_some() { times.count } else { 0 },
            total_ns: ns(times.total),
            longest_ns: ns(times.longest),
            syscall: found.syscall.map(name_of_call),
            ..place
        };
        let key = |it: &LongPoll| {
            let it = it.clone();
            (it.target, it.function, it.file, it.line, it.call, it.syscall)
        };
        match rows.iter_mut().find(|known| key(known) == key(&row)) {
            None => rows.push(row),
            Some(known) => {
                known.count += row.count;
                known.asleep += row.asleep;
                known.total_ns += row.total_ns;
                known.longest_ns = known.longest_ns.max(row.longest_ns);
            }
        }
    }
    rows.sort_by_key(|row| (std::cmp::Reverse(row.total_ns), row.target, row.line));
    (rows, merged, handed_over)
}

/// The innermost frame in scope, and what it had called.
fn place(frames: &[NamedFrame]) -> LongPoll {
    let own = frames.iter().position(|frame| frame.is_in_scope);
    let call = match own {
        Some(own) => frames[..own].last(),
        None => frames.first(),
    };
    let cut = |name: &String| plain::cut_name(name).into_owned();
    let own = own.map(|own| &frames[own]);
    LongPoll {
        function: own.map(|frame| cut(&frame.function)),
        file: own.and_then(|frame| frame.file.as_ref()).map(cut),
        line: own.and_then(|frame| frame.line),
        call: call.map(|frame| cut(&frame.function)),
        ..LongPoll::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, line: u32, is_in_scope: bool) -> NamedFrame {
        let file = Some("src/shop.rs".to_owned());
        NamedFrame { function: function.to_owned(), file, line: Some(line), is_in_scope }
    }

    /// The frames at an address: libc, std, two lines of a function, tokio, and handing over.
    fn frames_at(address: u64) -> Vec<NamedFrame> {
        match address {
            1 => vec![frame("clock_nanosleep", 0, false)],
            2 => vec![frame("std::thread::sleep", 9, false)],
            3 => vec![frame("shop::pause", 40, true), frame("shop::render", 50, true)],
            4 => vec![frame("tokio::runtime::poll", 1, false)],
            5 => vec![frame("tokio::task::blocking::block_in_place", 1, false)],
            _ => vec![],
        }
    }

    fn found(chain: &[u64], syscall: Option<i64>) -> Found {
        Found { target: 7, chain: chain.to_vec(), syscall }
    }

    #[test]
    fn a_place_is_the_innermost_frame_in_scope_with_what_it_called() {
        let mut places = Places::default();
        let slept = Some(libc::SYS_clock_nanosleep);
        places.add(found(&[1, 2, 3, 4], slept), Nanos(50));
        // Another chain to the same place, and a third that is longer.
        places.add(found(&[1, 2, 3], slept), Nanos(70));
        places.add(found(&[3, 4], None), Nanos(30));
        places.add(found(&[4], None), Nanos(20));
        places.add(found(&[1, 2, 3, 5, 4], slept), Nanos(90));
        let (rows, merged, handed_over) = rows(places.times, frames_at, places.merged);
        let shown: Vec<_> = rows
            .iter()
            .map(|row| (row.function.as_deref(), row.line, row.call.as_deref(), row.count))
            .collect();
        let pause = Some("shop::pause");
        assert_eq!(
            shown,
            [
                (pause, Some(40), Some("std::thread::sleep"), 2),
                (pause, Some(40), None, 1),
                (None, None, Some("tokio::runtime::poll"), 1),
            ]
        );
        let first = &rows[0];
        assert_eq!((first.total_ns, first.longest_ns, first.asleep), (120, 70, 2));
        assert_eq!(first.syscall.as_deref(), Some("clock_nanosleep"));
        assert_eq!((rows[1].asleep, merged, handed_over), (0, 0, 1));
    }

    #[test]
    fn places_beyond_the_limit_are_counted() {
        let mut places = Places::default();
        for address in 0..MAX_PLACES as u64 + 3 {
            places.add(found(&[address], None), Nanos(1));
        }
        places.add(found(&[0], None), Nanos(1));
        assert_eq!((places.times.len(), places.merged), (MAX_PLACES, 3));
        assert!(!places.is_empty());
    }
}
