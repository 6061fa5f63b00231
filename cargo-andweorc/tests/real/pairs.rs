//! How often `ci` raises a false alarm, and how often it catches what is 10 % slower, on real
//! profiles. It takes minutes, and the machine for itself:
//!
//! ```sh
//! PAIRS=8 cargo test -p cargo-andweorc --test real -- --ignored --nocapture pairs
//! ```

use crate::Shop;
use crate::common::stdout;
use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long each run lasts in seconds, and how often each version of a pair is run, in turns,
/// unless `SECONDS` and `RUNS` say.
const SECONDS: usize = 10;
const RUNS: usize = 3;
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

fn number(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |value| value.parse().unwrap())
}

#[test]
#[ignore = "takes minutes, and the machine for itself"]
fn pairs_of_real_profiles_are_judged_right() {
    let (wanted, seconds) =
        (number("PAIRS", PAIRS), number("PAIRS_SECONDS", BUDGET as usize) as u64);
    let begin = Instant::now();
    let shop = Shop::new("pairs");
    let (mut same, mut slower) = (Counts::default(), Counts::default());
    let mut longest = Duration::ZERO;
    'all: for i in 0..wanted {
        for (counts, name, argument) in
            [(&mut same, "same", None), (&mut slower, "slower", Some("slower"))]
        {
            if begin.elapsed() + longest > Duration::from_secs(seconds) {
                break 'all;
            }
            let pair = Instant::now();
            let code = judge(&shop, &format!("{name}-{i}"), argument);
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

/// The exit code of `ci` on a pair of this name, of which B is started with this argument.
fn judge(shop: &Shop, name: &str, b: Option<&str>) -> i32 {
    let folder = shop.profiles().join("runs").join(name);
    let seconds = format!("{}s", number("SECONDS", SECONDS));
    for i in 0..number("RUNS", RUNS) {
        // A B B A: whatever grows with time falls on both alike.
        let order = if i % 2 == 0 { [("a", None), ("b", b)] } else { [("b", b), ("a", None)] };
        for (side, argument) in order {
            let out = folder.join(side).join(format!("{i}.jsonl"));
            let arguments: Vec<&str> = argument.into_iter().collect();
            shop.run(&seconds, "release", &["-q", "--out", out.to_str().unwrap()], &arguments);
        }
    }
    let [a, b] = ["a", "b"].map(|side| folder.join(side).to_str().unwrap().to_owned());
    let output = shop.command(&["ci", &a, &b]).output().unwrap();
    let text = stdout(&output);
    let outcomes = text.lines().skip_while(|line| *line != "Outcome").skip(1);
    let code = output.status.code().unwrap();
    println!("{name}: exit code {code}");
    outcomes.take_while(|line| !line.is_empty()).for_each(|line| println!("{line}"));
    code
}

/// The slowdown that is to be caught is there: measured without a profiler, in turns.
#[test]
#[ignore = "takes half a minute, and the machine for itself"]
fn the_slower_shop_sells_a_tenth_less() {
    let shop = Shop::new("pairs");
    shop.run("1s", "release", &["-q"], &[]);
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..number("RUNS", RUNS) {
        for (rates, argument) in rates.iter_mut().zip([None, Some("slower")]) {
            rates.push(rate(&shop, argument));
        }
    }
    let [a, b] = rates.each_ref().map(|rates| rates.iter().sum::<f64>());
    println!("RATES a={:.0?} b={:.0?} ratio={:.3}", rates[0], rates[1], b / a);
    assert!((b / a - 0.9).abs() <= 0.02, "{}", b / a);
}

/// Orders per second that a shop started with this argument sells.
fn rate(shop: &Shop, argument: Option<&str>) -> f64 {
    let program = shop.profiles().join("build/release/shop");
    let port = shop.port.to_string();
    let mut serving = Command::new(&program)
        .args(["serve", &port])
        .args(argument)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(serving.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let output = Command::new(&program).args(["load", &port, "3"]).output().unwrap();
    serving.kill().unwrap();
    serving.wait().unwrap();
    stdout(&output).trim().parse().unwrap()
}
