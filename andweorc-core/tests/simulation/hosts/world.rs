//! Several hosts, each with a program and a ledger of its own, and the network between them.

use crate::engine::{Engine, MOST_EVENTS, Outcome, Setup};
use crate::hosts::message::Sent;
use crate::measure::{Case, Comparison};
use crate::program::{Cost, Program, Tag, Target};
use crate::rules::{Messages, Rules};
use andweorc_core::ledger::{Ledger, Stamp};
use andweorc_core::time::{Nanos, Real, Speedup};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::BinaryHeap;

/// Number of the experiment, on all hosts.
const EXPERIMENT: u32 = 1;

/// So often all hosts are told the greatest D of all, where that is the rule.
const TOLD_EVERY: Nanos = Nanos::from_millis(1);

/// Services on hosts of their own. The point is at the first.
#[derive(Clone, Debug)]
pub(crate) struct System {
    pub(crate) name: Tag,
    pub(crate) hosts: Vec<Program>,
    /// How long a message takes.
    pub(crate) network: Cost,
    /// Links that differ, from one host to another and back.
    pub(crate) links: Vec<((usize, usize), Cost)>,
    /// Hosts that take part in no experiment.
    pub(crate) aside: Vec<usize>,
    pub(crate) targets: Vec<Target>,
    pub(crate) seeds: u64,
}

impl System {
    fn link(&self, from: usize, to: usize) -> Cost {
        let is = |&&(link, _): &&((usize, usize), Cost)| link == (from.min(to), from.max(to));
        self.links.iter().find(is).map_or(self.network, |&(_, cost)| cost)
    }
}

struct World<'a> {
    system: &'a System,
    engines: Vec<Engine<'a>>,
    rules: Rules,
    rng: fastrand::Rng,
    flight: BinaryHeap<Reverse<(Real, u64, usize)>>,
    sent: Vec<Sent>,
    /// When the last message came over each link, which keeps their order.
    last: BTreeMap<(usize, usize), Real>,
    begun: bool,
    told: Real,
}

impl World<'_> {
    fn run(mut self) -> Result<Outcome, String> {
        for _ in 0..MOST_EVENTS / 8 {
            self.settle();
            if let Some(why) = self.engines.iter_mut().find_map(|engine| engine.failed.take()) {
                return Err(format!("{}: {why}", self.system.name));
            }
            if let Some(outcome) = self.engines[0].measured() {
                return Ok(outcome);
            }
            let arrival = self.flight.peek().map(|Reverse((when, ..))| *when);
            let next = self.engines.iter().filter_map(Engine::next_event).chain(arrival).min();
            let Some(mut next) = next else {
                return Err(format!("{}: deadlock", self.system.name));
            };
            if self.begun && self.rules.messages.tells() {
                next = next.min(self.told + TOLD_EVERY);
            }
            self.engines.iter_mut().for_each(|engine| engine.advance(next));
        }
        Err(format!("{}: no progress", self.system.name))
    }

    fn settle(&mut self) {
        let now = self.engines[0].now;
        while let Some(&Reverse((when, _, sent))) = self.flight.peek()
            && when <= now
        {
            self.flight.pop();
            let sent = self.sent[sent];
            self.engines[sent.host()].delivered(sent);
        }
        self.tell(now);
        for host in 0..self.engines.len() {
            self.engines[host].settle_all();
            for sent in std::mem::take(&mut self.engines[host].post.outgoing) {
                self.fly(host, sent, now);
            }
        }
        if !self.begun && self.engines[0].has_begun() {
            self.begun = true;
            self.told = now;
            for host in 1..self.engines.len() {
                let takes_part = !self.system.aside.contains(&host);
                self.engines[host].begin(takes_part);
            }
        }
    }

    fn fly(&mut self, from: usize, sent: Sent, now: Real) {
        let to = sent.host();
        let takes = Nanos(self.system.link(from, to).draw(&mut self.rng));
        let last = self.last.entry((from, to)).or_insert(now);
        *last = (now + takes).max(*last + Nanos(1));
        self.sent.push(sent);
        self.flight.push(Reverse((*last, self.sent.len() as u64, self.sent.len() - 1)));
    }

    /// Tells all hosts the greatest D of all.
    fn tell(&mut self, now: Real) {
        if !self.begun || !self.rules.messages.tells() || now < self.told + TOLD_EVERY {
            return;
        }
        self.told = now;
        let stamps = self.engines.iter().filter_map(|engine| engine.ledger.stamp(None, now));
        let Some(taken) = stamps.map(|stamp| stamp.taken).max() else { return };
        for engine in &self.engines {
            engine.ledger.raise(Stamp { experiment: EXPERIMENT, taken }, now);
        }
    }
}

impl Messages {
    fn tells(self) -> bool {
        matches!(self, Messages::Told | Messages::CarriedAndTold)
    }
}

/// Units of work at the first host for each virtual second, on average over all seeds.
fn rate(
    system: &System,
    rules: Rules,
    virtually: Option<(Target, Speedup)>,
    really: Option<(Target, Speedup)>,
) -> Result<f64, String> {
    let mut sum = 0.0;
    for seed in 0..system.seeds {
        let ledgers: Vec<Box<Ledger>> = system.hosts.iter().map(|_| Box::default()).collect();
        let engines = system.hosts.iter().zip(&ledgers).enumerate().map(|(host, (program, it))| {
            it.number_next(Some(EXPERIMENT));
            let seed = seed * 100 + host as u64;
            let mut engine = Engine::new(&Setup { program, rules, virtually, really, seed }, it);
            engine.post.host = host;
            engine
        });
        let world = World {
            system,
            engines: engines.collect(),
            rules,
            rng: fastrand::Rng::with_seed(seed),
            flight: BinaryHeap::new(),
            sent: Vec::new(),
            last: BTreeMap::new(),
            begun: false,
            told: Real(0),
        };
        sum += world.run()?.rate;
    }
    Ok(sum / system.seeds as f64)
}

/// Predicts all targets by the rules that ship, and those with the wanted speedups by others, and
/// compares with the truth: a row for each set of rules. By other rules a system may get stuck, and
/// does nothing more then.
///
/// # Errors
///
/// When a program gets stuck.
pub(crate) fn compare(
    system: &System,
    shipped: Rules,
    others: &[Rules],
    speedups: &[Speedup],
    wanted: impl Fn(Speedup) -> bool,
) -> Result<Vec<Vec<Comparison>>, String> {
    let base = rate(system, shipped, None, None)?;
    let effect = |rate: f64| (rate / base - 1.0) * 100.0;
    let mut comparisons = vec![Vec::new(); 1 + others.len()];
    for &target in &system.targets {
        for &speedup in speedups {
            let case = Case { target, speedup };
            let changed = Some((target, speedup));
            let truth = effect(rate(system, shipped, None, changed)?);
            let compared =
                |rate| Comparison { case, predicted: effect(rate), truth, latency: None };
            comparisons[0].push(compared(rate(system, shipped, changed, None)?));
            for (n, rules) in others.iter().enumerate().filter(|_| wanted(speedup)) {
                let rate = rate(system, *rules, changed, None).unwrap_or(0.0);
                comparisons[n + 1].push(compared(rate));
            }
        }
    }
    Ok(comparisons)
}
