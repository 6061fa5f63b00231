//! The truth: what really happens when a part of a service gets cheaper, beside the prediction.
//! Nothing is profiled meanwhile. The services as they are and those with a part that is really
//! cheaper take turns, each time as new processes, so that whatever else changes on the machine
//! meets all alike.

use crate::Result;
use crate::change::{Change, Changes};
use crate::figures::Figures;
use crate::parts::Case;
use crate::places::Places;
use crate::predict::{self, Built};
use crate::processes::{Load, Processes};
use crate::table::{self, Row};
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long new processes are under load before they are measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// How long each turn is measured.
const STRETCH: Duration = Duration::from_secs(2);

/// So many rounds there are at least.
const MIN_ROUNDS: usize = 3;

/// How all is measured.
#[derive(Debug)]
pub(crate) struct Setup {
    /// How long the services are profiled, and how long each version is measured for the truth.
    pub(crate) duration: Duration,
    /// How many customers there are.
    pub(crate) connections: usize,
    pub(crate) places: Places,
    /// Where the coordinator listens.
    pub(crate) listen: Option<SocketAddr>,
    /// Hash rounds per millisecond.
    pub(crate) pace: u32,
}

/// Figures of one turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// Predicts what each case would bring, measures what it does, and prints both.
pub(crate) fn compare(setup: &Setup, cases: &[Case]) -> Result<()> {
    let built = Built::beside_this()?;
    let analysis = predict::run(setup, &built, cases)?;
    let turn = WARM_UP + STRETCH;
    let rounds = (setup.duration.as_secs_f64() / turn.as_secs_f64()) as usize;
    let rounds = rounds.max(MIN_ROUNDS);
    println!(
        "Now the truth, without andweorc: {rounds} rounds, about {:.0} s",
        (turn * (rounds * (cases.len() + 1)) as u32).as_secs_f64()
    );
    let versions = measure(setup, &built, cases, rounds)?;
    let (unchanged, cheaper) = versions.split_first().expect("one version is unchanged");
    let rows: Vec<Row> = cases
        .iter()
        .zip(cheaper)
        .map(|(case, turns)| Row {
            case: *case,
            predicted: predict::of(case, &analysis),
            truth: changes(unchanged, turns),
        })
        .collect();
    table::print(unchanged, &rows);
    let unknown = rows.iter().filter(|row| row.predicted.is_none()).count();
    if unknown > 0 {
        return Err(format!("{unknown} of the parts were not tested often enough").into());
    }
    Ok(())
}

/// The turns of the services as they are, and of each case, in as many rounds.
fn measure(setup: &Setup, built: &Built, cases: &[Case], rounds: usize) -> Result<Vec<Vec<Turn>>> {
    let versions: Vec<Option<&Case>> = [None].into_iter().chain(cases.iter().map(Some)).collect();
    let mut turns = vec![Vec::with_capacity(rounds); versions.len()];
    for round in 0..rounds {
        // Each round begins with another version: a steady drift cancels.
        for at in 0..versions.len() {
            let version = (round + at) % versions.len();
            turns[version].push(take_turn(setup, built, versions[version])?);
        }
    }
    Ok(turns)
}

fn take_turn(setup: &Setup, built: &Built, case: Option<&Case>) -> Result<Turn> {
    let services = Processes::start_unprofiled(&setup.places, &built.program, setup.pace, case)?;
    let load = Load::start(services.gateway, setup.connections)?;
    sleep(WARM_UP);
    Figures::of(services.gateway)?;
    let start = Instant::now();
    sleep(STRETCH);
    let figures = Figures::of(services.gateway)?;
    let seconds = start.elapsed().as_secs_f64();
    drop(load);
    if figures.count == 0 {
        return Err("the gateway did no checkouts".into());
    }
    Ok(Turn {
        per_second: figures.count as f64 / seconds,
        p50_ms: figures.p50_us as f64 / 1e3,
        p99_ms: figures.p99_us as f64 / 1e3,
    })
}

fn changes(unchanged: &[Turn], cheaper: &[Turn]) -> Changes {
    let change = |of: fn(&Turn) -> f64| {
        let pairs = unchanged.iter().zip(cheaper);
        Change::of(&pairs.map(|(before, after)| (of(after) / of(before)).ln()).collect::<Vec<_>>())
    };
    Changes {
        throughput: change(|turn| turn.per_second),
        p50: change(|turn| turn.p50_ms),
        p99: change(|turn| turn.p99_ms),
    }
}
