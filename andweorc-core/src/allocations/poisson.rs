//! Which allocations are sampled: a Poisson process over the bytes that a thread allocates.
//!
//! Each byte is as likely as any other to be the one of a sample, whatever sizes follow each other.
//! A block of `size` bytes is sampled with the probability `1 - exp(-size / INTERVAL)`, and stands
//! for one over that many blocks of its size.

/// Bytes from one sample to the next, on average.
pub(super) const INTERVAL: f64 = 524_288.0;

/// Draws the bytes until the next sample, and the state for the draw after it, from a state that is
/// not 0.
pub(super) fn draw(state: u64) -> (u64, i64) {
    // Marsaglia's xorshift of 64 bits.
    let state = state ^ state << 13;
    let state = state ^ state >> 7;
    let state = state ^ state << 17;
    // The highest 53 bits, so that it is in ]0, 1].
    let part = ((state >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (state, (-part.ln() * INTERVAL) as i64)
}

/// The state that a thread of this number begins with.
pub(super) fn seed(number: u32) -> u64 {
    // The finalizer of splitmix64 of a number that is not 0, which maps nothing but 0 to 0.
    let mut state = (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}

/// Parts of a block that blocks are summed up in: a sample stands for no whole number of them.
pub(super) const PARTS: u64 = 1024;

/// Bytes, and [parts](PARTS) of blocks, that a sampled block of this size stands for.
pub(super) fn weight(size: usize) -> [u64; 2] {
    let size = size.max(1) as f64;
    let many = 1.0 / -(-size / INTERVAL).exp_m1();
    [(size * many).round() as u64, (PARTS as f64 * many).round() as u64]
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_for_what_was_allocated_whatever_the_sizes() {
        // Small blocks, blocks of about the interval, and blocks far above it.
        let (mut state, mut left) = (seed(7), 0);
        let sizes = [16, 4 << 10, 600 << 10, 8 << 20];
        let (mut all, mut told) = ([[0_u64; 2]; 4], [[0_u64; 2]; 4]);
        for at in 0..400_000_usize {
            // Blocks of each kind have about as many bytes in all.
            let kind = match at % 8192 {
                0 => 3,
                it if it % 512 == 0 => 2,
                it if it % 4 == 0 => 1,
                _ => 0,
            };
            let size = sizes[kind];
            for (sum, more) in all[kind].iter_mut().zip([size as u64, PARTS]) {
                *sum += more;
            }
            left -= size as i64;
            if left < 0 {
                (state, left) = draw(state);
                for (sum, more) in told[kind].iter_mut().zip(weight(size)) {
                    *sum += more;
                }
            }
        }
        // Of the smallest there are 4.8 MB, of which nine samples tell: nothing is said of them.
        for (all, told) in all.iter().zip(told).skip(1) {
            for (all, told) in all.iter().zip(told) {
                assert!(told.abs_diff(*all) < all / 5, "{told} of {all}");
            }
        }
    }

    #[test]
    fn threads_draw_differently_and_never_nothing() {
        let first: Vec<i64> = (0..100).map(|number| draw(seed(number)).1).collect();
        assert!(first.windows(2).all(|two| two[0] != two[1]));
        assert!((0..1000).all(|number| seed(number) != 0));
    }

    #[test]
    fn large_block_stands_for_itself_and_a_small_one_for_many() {
        assert_eq!(weight(64 << 20), [64 << 20, PARTS]);
        let [bytes, many] = weight(64);
        assert!(
            bytes.abs_diff(524_288) < 100 && many.abs_diff(8_192 * PARTS) <= PARTS,
            "{bytes} {many}"
        );
    }
}
