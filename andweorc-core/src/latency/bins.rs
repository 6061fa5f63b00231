//! A histogram of latencies that holds only what is in it, and gets coarser before it gets large.
//!
//! A bin is a latency to its first bits, as a floating-point number has them: so many for each
//! octave, 1,024 at first. Where a histogram has more than [`MAX_BINS`] bins, the two that share
//! all bits but the last become one, and so on down to 64 an octave: what a bin is told as, its
//! middle, is then within 0.8 % of each latency in it. One or two octaves, as most points have, are
//! told to
//! 0.1 %. When all histograms together hold more than [`MAX_PRECISE_BYTES`], those that grow become
//! coarse earlier.

use std::iter;

/// Bits of a latency after its first that tell its bin.
const BITS: u32 = 10;

/// Of these, how many may be left off.
const MAX_COARSENING: u32 = 4;

/// Bins of a histogram beyond which it gets coarser.
const MAX_BINS: usize = 1024;

/// Bins of a histogram beyond which it gets coarser, where all histograms hold
/// [`MAX_PRECISE_BYTES`].
const MAX_BINS_OF_MANY: usize = 128;

/// Bins of a histogram of which precision matters less, beyond which it gets coarser.
const MAX_COARSE_BINS: usize = 64;

/// Much: memory of all histograms, bytes. What was precise before remains so.
const MAX_PRECISE_BYTES: usize = 8 << 20;

/// A latency, as precisely as anything is kept: its octave, and its first bits within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(pub(super) u16);

const _: () = assert!(u64::BITS << BITS == 1 << u16::BITS, "all octaves have a place in a key");

impl Key {
    /// None is shorter than 1 ns.
    #[inline]
    pub(crate) fn of(ns: u64) -> Key {
        let ns = ns.max(1);
        let octave = ns.ilog2();
        let first = if octave < BITS { ns << (BITS - octave) } else { ns >> (octave - BITS) };
        Key((octave << BITS) as u16 | (first as u16 & ((1 << BITS) - 1)))
    }

    /// The shortest latency with this key, or with a later one where it has none.
    fn shortest(self) -> u64 {
        let octave = u32::from(self.0) >> BITS;
        let first = u64::from(self.0) & ((1 << BITS) - 1) | 1 << BITS;
        if octave < BITS { first.div_ceil(1 << (BITS - octave)) } else { first << (octave - BITS) }
    }
}

/// Packed: there may be a million.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(2))]
struct Bin {
    /// A [`Key`] without its last bits.
    key: u16,
    /// How many latencies; no more than it can count.
    count: u32,
}

/// A histogram.
#[derive(Debug, Default)]
pub(crate) struct Bins {
    /// By rising keys, none of them empty.
    bins: Vec<Bin>,
    /// How many bits of the keys are left off.
    coarse: u32,
}

impl Bins {
    /// Adds latencies, in rising order, where all histograms hold so many bytes.
    pub(super) fn add(&mut self, keys: impl Iterator<Item = Key>, held_by_all: usize) {
        let much = held_by_all > MAX_PRECISE_BYTES;
        self.add_within(keys, if much { MAX_BINS_OF_MANY } else { MAX_BINS });
    }

    /// Adds one, where precision matters less than memory.
    pub(crate) fn add_coarse(&mut self, key: Key) {
        self.add_within(iter::once(key), MAX_COARSE_BINS);
    }

    /// Adds some in rising order, and gets coarser rather than to have more than `most` bins.
    fn add_within(&mut self, keys: impl Iterator<Item = Key>, most: usize) {
        // Where the last one was, and the next ones are from there on.
        let mut from = 0;
        for key in keys {
            loop {
                let short = key.0 >> self.coarse;
                match self.find(from, short) {
                    Ok(at) => {
                        let bin = &mut self.bins[at];
                        bin.count = bin.count.saturating_add(1);
                        from = at;
                    }
                    Err(_) if self.bins.len() >= most && self.coarse < MAX_COARSENING => {
                        self.coarsen();
                        from = 0;
                        continue;
                    }
                    Err(at) => {
                        self.insert(at, Bin { key: short, count: 1 });
                        from = at;
                    }
                }
                break;
            }
        }
    }

    /// Where this key is from here on, or where it belongs. Most often it is near.
    #[inline]
    fn find(&self, from: usize, key: u16) -> Result<usize, usize> {
        const NEAR: usize = 8;
        let bins = &self.bins[from..];
        let near = &bins[..bins.len().min(NEAR)];
        let found = match near.iter().position(|bin| bin.key >= key) {
            Some(at) if near[at].key == key => Ok(at),
            Some(at) => Err(at),
            None => bins[near.len()..]
                .binary_search_by_key(&key, |bin| bin.key)
                .map(|at| at + near.len())
                .map_err(|at| at + near.len()),
        };
        found.map(|at| at + from).map_err(|at| at + from)
    }

    #[cold]
    fn insert(&mut self, at: usize, bin: Bin) {
        self.bins.insert(at, bin);
    }

    #[cold]
    fn coarsen(&mut self) {
        self.coarse += 1;
        self.bins.iter_mut().for_each(|bin| bin.key >>= 1);
        self.bins.dedup_by(|bin, before| {
            let same = bin.key == before.key;
            if same {
                before.count = before.count.saturating_add(bin.count);
            }
            same
        });
    }

    /// Its memory, bytes.
    pub(super) fn held(&self) -> usize {
        self.bins.capacity() * size_of::<Bin>()
    }

    /// Latencies as (ns, count) pairs in rising order: the middle of each bin.
    pub(crate) fn pairs(&self) -> Vec<(u64, u64)> {
        let middle = |short: u16| {
            let first = short << self.coarse;
            let last = first | ((1 << self.coarse) - 1);
            let longest = last.checked_add(1).map_or(u64::MAX, |next| Key(next).shortest() - 1);
            let shortest = Key(first).shortest();
            shortest + (longest - shortest) / 2
        };
        self.bins.iter().map(|bin| (middle(bin.key), u64::from(bin.count))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A histogram of these latencies that has few bins.
    fn of(latencies: &[u64], most: usize) -> Bins {
        let mut bins = Bins::default();
        for some in latencies.chunks(100) {
            let mut keys: Vec<Key> = some.iter().map(|&ns| Key::of(ns)).collect();
            keys.sort_unstable();
            bins.add_within(keys.into_iter(), most);
        }
        bins
    }

    fn quantile(pairs: &[(u64, u64)], q: f64) -> u64 {
        let all: u64 = pairs.iter().map(|&(_, count)| count).sum();
        let rank = (q * all as f64).ceil() as u64;
        let mut seen = 0;
        let at = pairs.iter().find(|&&(_, count)| {
            seen += count;
            seen >= rank
        });
        at.expect("not empty").0
    }

    /// Relative.
    fn error(told: u64, truth: u64) -> f64 {
        (told as f64 - truth as f64).abs() / truth as f64
    }

    #[test]
    fn every_latency_has_a_key_that_tells_it() {
        for bits in 0..64 {
            for ns in [u64::MAX >> bits, 1 << bits, 0x9e37_79b9_7f4a_7c15 >> bits] {
                let (key, ns) = (Key::of(ns), ns.max(1));
                assert!(key.shortest() <= ns, "{ns}");
                let next = key.0.checked_add(1).map(|next| Key(next).shortest());
                assert!(next.is_none_or(|next| ns < next), "{ns}");
                let [(told, 1)] = of(&[ns], MAX_BINS).pairs()[..] else { panic!("{ns}") };
                assert!(error(told, ns) < 0.000_5, "{ns} is told as {told}");
            }
        }
        assert_eq!(Key::of(0), Key::of(1));
        assert_eq!(of(&[1, 2, 3, 1_023], MAX_BINS).pairs(), [(1, 1), (2, 1), (3, 1), (1_023, 1)]);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_a_hundredth_however_many_there_are(
            // From 1 ns to 100 s, evenly in their logarithms, over few octaves or many.
            logarithms in prop::collection::vec(0.0..1.0_f64, 1..3_000),
            from in 0.0..20.0_f64,
            octaves in 0.0..17.0_f64,
            most in 1_usize..MAX_BINS,
        ) {
            let mut latencies: Vec<u64> =
                logarithms.iter().map(|log| (from + octaves * log).exp2() as u64).collect();
            let bins = of(&latencies, most);
            prop_assert!(bins.bins.len() <= most.max(64 * (octaves as usize + 2)));
            let pairs = bins.pairs();
            prop_assert!(pairs.is_sorted());
            latencies.sort_unstable();
            prop_assert_eq!(pairs.iter().map(|&(_, count)| count).sum::<u64>(), latencies.len() as u64);
            for q in [0.5, 0.9, 0.99] {
                let truth = latencies[(q * latencies.len() as f64).ceil() as usize - 1];
                let told = quantile(&pairs, q);
                prop_assert!(error(told, truth) < 0.008, "{} is told as {}", truth, told);
            }
        }
    }

    #[test]
    fn few_octaves_are_told_more_precisely() {
        // 100,000 between 1 and 2 ms.
        let latencies: Vec<u64> = (0..100_000).map(|i| 1_000_000 + 10 * i).collect();
        let bins = of(&latencies, MAX_BINS);
        assert!(bins.bins.len() <= MAX_BINS && bins.coarse <= 1, "{}", bins.coarse);
        let mean = |pairs: &[(u64, u64)]| {
            pairs.iter().map(|&(ns, count)| ns * count).sum::<u64>() / latencies.len() as u64
        };
        let pairs = bins.pairs();
        assert!(error(mean(&pairs), 1_500_000) < 0.000_1, "{}", mean(&pairs));
        assert!(error(quantile(&pairs, 0.99), 1_990_000) < 0.001);
    }
}
