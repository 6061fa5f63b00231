//! Chains of code without frame pointers, found by the tables that it has for panics.

use andweorc_sampling::queue::Sample;
use andweorc_sampling::stack_copy::ChainEnd;

/// Samples after which it is known whether code has frame pointers.
const LOOKS: u32 = 64;

/// Code has none if the chains of so many of these are lost: one in sixteen.
const LOST: u32 = 4;

/// Whether the code that runs has frame pointers, by what both ways to find a chain told.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sampler) struct FramePointers {
    looks: u32,
    lost: u32,
}

impl FramePointers {
    /// Whether stacks are to be copied: until it is known that frame pointers lead on.
    pub(in crate::sampler) fn may_be_missing(&self) -> bool {
        self.looks < LOOKS || self.lost >= LOST
    }

    /// The sample with the chain of its stack, which was `unwound`. `None` where that came to less
    /// than its frame pointers do.
    pub(in crate::sampler) fn choose(
        &mut self,
        sample: &Sample,
        (chain, end): (Vec<u64>, ChainEnd),
    ) -> Option<Sample> {
        let by_pointers = sample.chain().len();
        if self.looks < LOOKS {
            self.looks += 1;
            self.lost += u32::from(2 * by_pointers < chain.len());
        }
        let is_less = end == ChainEnd::Lost && chain.len() < by_pointers;
        (!is_less).then(|| sample.unwound(chain, end == ChainEnd::CutOff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::COARSE;

    fn choose(pointers: &mut FramePointers, length: usize, unwound: usize, end: ChainEnd) -> usize {
        let sample = Sample::new(0, COARSE, &vec![1; length]);
        let chosen = pointers.choose(&sample, (vec![2; unwound], end));
        chosen.map_or(0, |chosen| {
            assert!(chosen.is_unwound() && chosen.is_full() == (end == ChainEnd::CutOff));
            chosen.chain().len()
        })
    }

    #[test]
    fn stacks_are_copied_until_frame_pointers_are_seen_to_lead_on() {
        let (mut with, mut without) = (FramePointers::default(), FramePointers::default());
        for n in 0..LOOKS {
            assert!(with.may_be_missing() && without.may_be_missing());
            choose(&mut with, 20, 21, ChainEnd::Start);
            // Most of it is in a library that has them.
            let length = if n % 16 == 0 { 2 } else { 20 };
            choose(&mut without, length, 21, ChainEnd::Start);
        }
        assert!(!with.may_be_missing() && without.may_be_missing());
    }

    #[test]
    fn chain_that_tables_lose_is_that_of_frame_pointers_if_that_is_longer() {
        let pointers = &mut FramePointers::default();
        assert_eq!(choose(pointers, 9, 5, ChainEnd::Start), 5, "pointers led astray");
        assert_eq!(choose(pointers, 9, 5, ChainEnd::CutOff), 5);
        assert_eq!(choose(pointers, 9, 5, ChainEnd::Lost), 0);
        assert_eq!(choose(pointers, 2, 5, ChainEnd::Lost), 5);
    }
}
