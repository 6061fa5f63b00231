//! Parts as functions of one hot line each, for targets that are sampled: nothing marks them, and
//! only samples tell what runs.

use std::hint::black_box;

/// A function that does as many rounds of `work::hash` as it is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hot {
    /// Its name, without the path.
    pub(crate) name: &'static str,
    pub(crate) run: fn(u32),
}

/// One for each part of a program, by its place among them. They differ in a constant, or the
/// compiler makes one of them.
pub(crate) const HOT: [Hot; 5] = [
    Hot { name: "first", run: first },
    Hot { name: "second", run: second },
    Hot { name: "third", run: third },
    Hot { name: "fourth", run: fourth },
    Hot { name: "fifth", run: fifth },
];

#[inline(never)]
#[rustfmt::skip]
fn first(rounds: u32) {
    let mut x = black_box(u64::from(rounds) + 1);
    for _ in 0..rounds { x = x.wrapping_add(0x9e37_79b9_7f4a_7c15); x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9); x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb); }
    black_box(x);
}

#[inline(never)]
#[rustfmt::skip]
fn second(rounds: u32) {
    let mut x = black_box(u64::from(rounds) + 2);
    for _ in 0..rounds { x = x.wrapping_add(0x9e37_79b9_7f4a_7c15); x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9); x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb); }
    black_box(x);
}

#[inline(never)]
#[rustfmt::skip]
fn third(rounds: u32) {
    let mut x = black_box(u64::from(rounds) + 3);
    for _ in 0..rounds { x = x.wrapping_add(0x9e37_79b9_7f4a_7c15); x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9); x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb); }
    black_box(x);
}

#[inline(never)]
#[rustfmt::skip]
fn fourth(rounds: u32) {
    let mut x = black_box(u64::from(rounds) + 4);
    for _ in 0..rounds { x = x.wrapping_add(0x9e37_79b9_7f4a_7c15); x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9); x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb); }
    black_box(x);
}

#[inline(never)]
#[rustfmt::skip]
fn fifth(rounds: u32) {
    let mut x = black_box(u64::from(rounds) + 5);
    for _ in 0..rounds { x = x.wrapping_add(0x9e37_79b9_7f4a_7c15); x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9); x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb); }
    black_box(x);
}
