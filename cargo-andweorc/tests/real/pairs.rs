//! How often `ci` raises a false alarm, and how often it catches what is 10 % slower, on real profiles. It takes minutes, and the machine for itself:
//!
//! ```sh
//! PAIRS=8 cargo test -p cargo-andweorc --test real -- --ignored --nocapture pairs
//! ```

use crate::Shop;
use crate::common::stdout;
use std::env;
use std::time::{Duration, Instant};

/// How long each run lasts, and how often each version of a pair is run, in turns.
const SECONDS: &str = "5s";
const RUNS: usize = 2;
/// Pairs of each kind, unless `PAIRS` says.
const PAIRS: usize = 8;
/// No pair is begun after it, unless `PAIRS_SECONDS` says.
const BUDGET: u64 = 600;

#[derive(Default)]
struct Counts {
    pairs: usize,
    alarms: usize,
    unsure: usize,
}

#[test]
#[ignore = "takes minutes, and the machine for itself"]
fn pairs_of_real_profiles_are_judged_right() {
    let number =
        |name: &str, default: usize| env::var(name).map_or(default, |value| value.parse().unwrap());
    let (wanted, seconds) =
        (number("PAIRS", PAIRS), number("PAIRS_SECONDS", BUDGET as usize) as u64);
    let begin = Instant::now();
    let shop = Shop::new("pairs");
    let (mut same, mut slower) = (Counts::default(), Counts::default());
    let mut longest = Duration::ZERO;
    'all: for _ in 0..wanted {
        for (counts, argument) in [(&mut same, None), (&mut slower, Some("slower"))] {
            if begin.elapsed() + longest > Duration::from_secs(seconds) {
                break 'all;
            }
            let pair = Instant::now();
            let code = judge(&shop, argument);
            longest = longest.max(pair.elapsed());
            counts.pairs += 1;
            counts.alarms += usize::from(code == 3);
            counts.unsure += usize::from(code == 4);
        }
    }
    println!(
        "PAIRS aa={} false_alarms={} unsure={} ab={} caught={} unsure={}",
        same.pairs, same.alarms, same.unsure, slower.pairs, slower.alarms, slower.unsure
    );
    assert!(
        same.alarms <= 1 + same.pairs / 20,
        "{} of {} are false alarms",
        same.alarms,
        same.pairs
    );
    assert!(slower.alarms * 10 >= slower.pairs * 8, "less than eight of ten are caught");
}

/// The exit code of `ci` on a pair of which B is started with this argument.
fn judge(shop: &Shop, b: Option<&str>) -> i32 {
    let folder = shop.profiles().join("runs");
    std::fs::remove_dir_all(&folder).ok();
    for i in 0..RUNS {
        // A B B A: whatever grows with time falls on both alike.
        let order = if i % 2 == 0 { [("a", None), ("b", b)] } else { [("b", b), ("a", None)] };
        for (side, argument) in order {
            let out = folder.join(side).join(format!("{i}.jsonl"));
            let arguments: Vec<&str> = argument.into_iter().collect();
            shop.run(SECONDS, "release", &["-q", "--out", out.to_str().unwrap()], &arguments);
        }
    }
    let [a, b] = ["a", "b"].map(|side| folder.join(side).to_str().unwrap().to_owned());
    let output = shop.command(&["ci", &a, &b]).output().unwrap();
    let text = stdout(&output);
    println!(
        "{}",
        text.lines().filter(|line| line.contains("sold")).collect::<Vec<_>>().join("; ")
    );
    output.status.code().unwrap()
}
