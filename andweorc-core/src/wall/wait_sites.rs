//! Where tasks wait for each other: the call chains of polls that left a clone of the task's waker
//! somewhere, for a sampled part of the waits.
//!
//! A lock, a semaphore or a channel clones the waker in its own poll, below the line that waits. So
//! the chain that is taken in the clone has both. It is kept until the task is polled again: if
//! another task ended the wait, its length is credited to the chain.
//!
//! | module | job |
//! |---|---|
//! | `pace` | which waits are sampled |
//! | `names` | the primitive and the line of a chain |

mod names;
mod pace;

pub(super) use pace::Pace;

use super::by_task::ByTask;
use crate::symbols::Symbols;
use crate::time::{Nanos, Real};
use andweorc_profile::{WaitSite, WaitSites};
use andweorc_sampling::own_chain::own_chain;
use std::collections::HashMap;

/// Frames that are kept of a chain: those of andweorc and of the primitive take some.
const DEPTH: usize = 48;

/// Wakers that a poll may leave for one wait, as `select!` does; of more the site is not known.
const MAX_CHAINS: usize = 4;

/// Sites that are told apart, as call chains: half a kilobyte for most of them.
const MAX_SITES: usize = 2048;

/// Pairs of a site and a waker that are told apart.
const MAX_SUMS: usize = 8192;

/// Bits of a word that say how many waits a sample stands for, as a power of 2.
const SHIFT_BITS: u32 = 5;

/// The site of the wait that each task is in, where it was sampled: its number in [`Sites`], and
/// the power of 2.
static WAITS: ByTask = ByTask::new();

/// The wait that a poll begins, as far as its clones of the task's waker tell.
#[derive(Debug, Default)]
pub(super) enum Begun {
    /// No waker was cloned: the task waits on where it waited before, which is this word.
    Before(u32),
    /// One was, and the wait is not sampled.
    #[default]
    Unsampled,
    /// One was, and this is the wait.
    Sampled { shift: u32, site: Site },
}

/// Where a task waits: the innermost target that is open there, and the chains of the clones of its
/// waker. Without any the site is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Site {
    waiter: u32,
    chains: Vec<Vec<u64>>,
}

impl Begun {
    /// Takes the site of the wait that a task was in, which is polled now.
    pub(super) fn take(task: usize) -> Begun {
        Begun::Before(WAITS.take(task))
    }

    /// The word of the wait that has ended.
    pub(super) fn before(&self) -> u32 {
        match self {
            Begun::Before(word) => *word,
            _ => 0,
        }
    }

    /// The waker is cloned in a poll that began at `polled`, with this target open.
    pub(super) fn cloned(&mut self, pace: &mut Pace, polled: Real, waiter: u32) {
        if let Begun::Before(_) = self {
            *self = match pace.draw(polled) {
                None => Begun::Unsampled,
                Some(shift) => {
                    Begun::Sampled { shift, site: Site { waiter, chains: vec![chain()] } }
                }
            };
        } else if let Begun::Sampled { site, .. } = self {
            match site.chains.len() {
                0 => {}
                MAX_CHAINS => site.chains.clear(),
                _ => site.chains.push(chain()),
            }
        }
    }

    /// The poll is over, and the task waits.
    pub(super) fn keep(self, task: usize, sites: impl FnOnce(Site) -> Option<u32>) {
        let word = match self {
            Begun::Before(word) => word,
            Begun::Unsampled => 0,
            Begun::Sampled { shift, site } => {
                sites(site).map_or(0, |number| number << SHIFT_BITS | shift)
            }
        };
        if word != 0 {
            WAITS.put(task, word);
        }
    }
}

/// The call chain of the calling thread.
fn chain() -> Vec<u64> {
    let mut chain = [0; DEPTH];
    let length = own_chain(&mut chain);
    chain[..length].to_vec()
}

/// Waits of one site that one target ended.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ns: u64,
    samples: u64,
}

/// The sites, which keep their numbers from one recording to the next, and the waits there.
#[derive(Debug, Default)]
pub(super) struct Sites {
    numbers: HashMap<Site, u32>,
    sites: Vec<Site>,
    sums: HashMap<(u32, u32), Sum>,
    merged: u64,
}

impl Sites {
    /// The number of a site, from 1 on; `None` where there are too many.
    pub(super) fn number(&mut self, site: Site) -> Option<u32> {
        if let Some(&number) = self.numbers.get(&site) {
            return Some(number);
        }
        if self.sites.len() >= MAX_SITES {
            self.merged += 1;
            return None;
        }
        self.sites.push(site.clone());
        let number = self.sites.len() as u32;
        self.numbers.insert(site, number);
        Some(number)
    }

    /// Credits a wait of a site, as its word says, which the target `by` ended; 0 where that is not
    /// known.
    pub(super) fn add(&mut self, word: u32, by: u32, length: Nanos) {
        let key = (word >> SHIFT_BITS, by);
        if self.sums.len() >= MAX_SUMS && !self.sums.contains_key(&key) {
            self.merged += 1;
            return;
        }
        let sum = self.sums.entry(key).or_default();
        let ns = u64::try_from(length.0).unwrap_or(0);
        sum.ns = sum.ns.saturating_add(ns << (word & ((1 << SHIFT_BITS) - 1)));
        sum.samples += 1;
    }

    /// Forgets all waits.
    pub(super) fn clear(&mut self) {
        self.sums.clear();
        self.merged = 0;
    }

    /// Takes the waits.
    pub(super) fn take(&mut self) -> Taken {
        let at = |number: u32| self.sites[number as usize - 1].clone();
        let waits = self.sums.drain().map(|((site, by), sum)| (at(site), by, sum)).collect();
        let taken = Taken { waits, merged: self.merged };
        self.clear();
        taken
    }
}

/// The waits of a recording.
#[derive(Debug, Default)]
pub(super) struct Taken {
    waits: Vec<(Site, u32, Sum)>,
    merged: u64,
}

impl Taken {
    /// Their record, but for what was not sampled. `open` opens the symbols of the program, without
    /// which no site has a name.
    pub(super) fn record(self, open: impl FnOnce() -> Option<Symbols>) -> WaitSites {
        let mut symbols = if self.waits.is_empty() { None } else { open() };
        let mut known = HashMap::new();
        let mut sites: HashMap<WaitSite, Sum> = HashMap::new();
        for (site, by, sum) in self.waits {
            let frames = |chain: &Vec<u64>| {
                let mut all = Vec::new();
                for &address in chain {
                    let frames = known.entry(address).or_insert_with(|| {
                        symbols.as_mut().map_or_else(Vec::new, |it| it.frames_at(address))
                    });
                    all.extend(frames.iter().cloned());
                }
                all
            };
            let chains: Vec<_> = site.chains.iter().map(frames).collect();
            let id = |id: u32| (id != 0).then_some(id);
            let named = names::site(&chains);
            let row = WaitSite { waiter: id(site.waiter), by: id(by), ..named };
            let all = sites.entry(row).or_default();
            all.ns = all.ns.saturating_add(sum.ns);
            all.samples += sum.samples;
        }
        let row =
            |(site, sum): (WaitSite, Sum)| WaitSite { ns: sum.ns, samples: sum.samples, ..site };
        let mut sites: Vec<WaitSite> = sites.into_iter().map(row).collect();
        sites.sort_unstable_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.cmp(b)));
        WaitSites { sites, merged: self.merged, unsampled: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(waiter: u32, address: u64) -> Site {
        Site { waiter, chains: vec![vec![address]] }
    }

    #[test]
    fn sample_of_a_part_stands_for_the_waits_that_were_left_out() {
        let mut sites = Sites::default();
        let number = sites.number(site(7, 1)).unwrap();
        assert_eq!(sites.number(site(7, 1)), Some(number));
        sites.add(number << SHIFT_BITS | 3, 9, Nanos(100));
        sites.add(number << SHIFT_BITS, 9, Nanos(50));
        let record = sites.take().record(|| None);
        let [row] = &record.sites[..] else { panic!("{record:?}") };
        assert_eq!((row.waiter, row.by, row.ns, row.samples), (Some(7), Some(9), 850, 2));
        assert_eq!((row.call.as_deref(), record.merged), (None, 0));
        assert!(sites.take().record(|| None).sites.is_empty(), "it was taken");
    }

    #[test]
    fn sites_beyond_the_limit_are_counted() {
        let mut sites = Sites::default();
        let numbers = (0..MAX_SITES as u64 + 3).filter_map(|at| sites.number(site(1, at)));
        assert_eq!(numbers.count(), MAX_SITES);
        assert_eq!(sites.take().record(|| None).merged, 3);
    }

    #[test]
    fn poll_without_a_clone_goes_on_with_the_wait_before() {
        let task = 0x7001_0040;
        Begun::Before(77).keep(task, |_| None);
        let begun = Begun::take(task);
        assert_eq!(begun.before(), 77);
        begun.keep(task, |_| None);
        assert_eq!(Begun::take(task).before(), 77);
        Begun::Unsampled.keep(task, |_| None);
        assert_eq!(Begun::take(task).before(), 0);
    }

    #[test]
    fn wait_with_more_clones_than_are_kept_has_no_site() {
        let (mut pace, mut begun) = (Pace::default(), Begun::Before(0));
        for clones in 1..=MAX_CHAINS + 2 {
            begun.cloned(&mut pace, Real(0), 5);
            let Begun::Sampled { shift: 0, site } = &begun else { panic!("{begun:?}") };
            assert_eq!(site.chains.len(), if clones > MAX_CHAINS { 0 } else { clones });
        }
    }
}
