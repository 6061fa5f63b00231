//! The coordinator with participants, on a clock of the test's own and a network that loses nothing
//! but connections, and may be slow.

use super::machine::{Action, Coordinator, Id, Wanted};
use andweorc_profile::TargetKind;
use andweorc_profile::coordination::{
    Begin, KnownTarget, Outcome, PROTOCOL, Participant, ToCoordinator, ToParticipant, Verdict,
};
use andweorc_profile::time::{Nanos, Real, Speedup};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const TOKEN: &str = "secret";

fn wanted(expected: &[&str]) -> Wanted {
    Wanted {
        run: "r1".into(),
        entry: "a".into(),
        expected: expected.iter().map(|&name| name.to_owned()).collect(),
        speedups: vec![Speedup::from_ppm(500_000)],
        duration: Nanos::from_millis(60_000),
        seed: 3,
    }
}

fn known(name: &str) -> KnownTarget {
    KnownTarget { id: 1, kind: TargetKind::Span, name: name.into(), file: None, line: None }
}

/// A program, as far as it holds experiments.
struct Program {
    service: String,
    participant: Participant,
    /// The experiment that is held here.
    held: Option<Begin>,
    /// How it reports what it held.
    outcome: Outcome,
    /// Verdicts of the coordinator by experiment.
    verdicts: BTreeMap<u32, Verdict>,
    begun: Vec<Begin>,
    /// Nothing of it is heard, and it hears nothing.
    is_cut_off: bool,
    /// How long a message takes, in either direction.
    latency: Nanos,
    /// Messages on their way, and when they are there.
    said: VecDeque<(Real, ToCoordinator)>,
    told: VecDeque<(Real, ToParticipant)>,
}

/// Returns the next of these messages that is there by now.
fn arrived<M>(messages: &mut VecDeque<(Real, M)>, now: Real) -> Option<M> {
    let is_there = messages.front().is_some_and(|(due, _)| *due <= now);
    is_there.then(|| messages.pop_front())?.map(|(_, message)| message)
}

/// Whether it is neither a baseline nor a probe.
fn is_on_target(begin: &Begin) -> bool {
    begin.target.as_ref().is_some_and(|it| it.target.kind != TargetKind::Probe)
}

/// All programs and the coordinator.
struct World {
    now: Real,
    coordinator: Coordinator,
    programs: BTreeMap<Id, Program>,
    /// The coordinator is gone.
    is_headless: bool,
}

impl World {
    fn new(expected: &[&str]) -> World {
        let coordinator = Coordinator::new(wanted(expected), Real(0));
        World { now: Real(0), coordinator, programs: BTreeMap::new(), is_headless: false }
    }

    /// Services that are there and ready.
    fn of(services: &[&str]) -> World {
        let mut world = World::new(services);
        for (id, service) in services.iter().enumerate() {
            world.join(id as Id, service);
        }
        world
    }

    fn join(&mut self, id: Id, service: &str) {
        self.connect(id, service);
        let target = known(&format!("{service} part"));
        self.programs.get_mut(&id).unwrap().participant.offer(vec![target], Vec::new());
    }

    fn connect(&mut self, id: Id, service: &str) {
        let program = Program {
            service: service.to_owned(),
            participant: Participant::new(service, TOKEN, self.now),
            held: None,
            outcome: Outcome::Measured,
            verdicts: BTreeMap::new(),
            begun: Vec::new(),
            is_cut_off: false,
            latency: Nanos::ZERO,
            said: VecDeque::new(),
            told: VecDeque::new(),
        };
        self.programs.insert(id, program);
    }

    fn step(&mut self) {
        self.now = self.now + Nanos::from_millis(10);
        for (&id, program) in &mut self.programs {
            program.hear(self.now);
            program.step(self.now);
            while let Some(message) = program.participant.next_message(self.now) {
                program.said.push_back((self.now + program.latency, message));
            }
            while let Some(message) = arrived(&mut program.said, self.now) {
                if !program.is_cut_off && !self.is_headless {
                    self.coordinator.receive(id, message, self.now);
                }
            }
        }
        if self.is_headless {
            return;
        }
        self.coordinator.tick(self.now);
        while let Some(action) = self.coordinator.next_action() {
            let (Action::Send(id, _) | Action::Close(id)) = action;
            let Some(program) = self.programs.get_mut(&id) else { continue };
            match action {
                _ if program.is_cut_off => {}
                Action::Send(_, message) => {
                    program.told.push_back((self.now + program.latency, message));
                    program.hear(self.now);
                }
                Action::Close(_) => program.participant.give_up("closed".into()),
            }
        }
    }

    fn pass(&mut self, ms: i64) {
        let until = self.now + Nanos::from_millis(ms);
        while self.now < until {
            self.step();
        }
    }

    /// Until an experiment on a target is held by all.
    fn until_held(&mut self) -> Begin {
        for _ in 0..10_000 {
            self.step();
            let all = || self.programs.values();
            let first = all().find_map(|it| it.held.clone()).filter(is_on_target);
            if let Some(begin) = first
                && all().all(|it| it.held.as_ref() == Some(&begin))
            {
                return begin;
            }
        }
        panic!("no experiment is held");
    }

    fn program(&mut self, id: Id) -> &mut Program {
        self.programs.get_mut(&id).unwrap()
    }

    fn discarded(&self, id: Id, experiment: u32) -> Option<&str> {
        match self.programs[&id].verdicts.get(&experiment)? {
            Verdict::Discard(reason) => Some(reason),
            Verdict::Use => None,
        }
    }

    fn holds(&self) -> usize {
        self.programs.values().filter(|it| it.held.is_some()).count()
    }
}

impl Program {
    /// Takes in what has come.
    fn hear(&mut self, now: Real) {
        while let Some(message) = arrived(&mut self.told, now) {
            self.participant.receive(message, now);
        }
    }

    /// Does the part of the thread that holds experiments.
    fn step(&mut self, now: Real) {
        self.participant.tick(now);
        if let Some(held) = &self.held {
            let number = held.experiment;
            if !self.participant.is_held(number) || self.outcome != Outcome::Measured {
                self.participant.report(number, self.outcome.clone());
                self.held = None;
            }
        }
        if let Some(last) = self.begun.last()
            && let Some(verdict) = self.participant.verdict(last.experiment)
        {
            self.verdicts.insert(last.experiment, verdict);
        }
        if let Some(begin) = self.participant.take() {
            self.begun.push(begin.clone());
            self.held = Some(begin);
        }
    }
}

#[test]
fn every_experiment_is_held_by_all_with_a_baseline_between_any_two() {
    let mut world = World::of(&["shop", "inventory"]);
    world.pass(30_000);
    let [shop, inventory] = [0, 1].map(|id| &world.programs[&id]);
    assert!(shop.begun.len() > 20, "{}", shop.begun.len());
    assert_eq!(shop.begun, inventory.begun);
    for (at, begin) in shop.begun.iter().enumerate() {
        assert_eq!(begin.experiment as usize, at);
        assert_eq!(begin.target.is_some(), at % 2 == 1);
    }
    let on_targets = shop.begun.iter().filter(|it| is_on_target(it));
    let services: BTreeSet<_> =
        on_targets.filter_map(|it| Some(it.target.as_ref()?.service.clone())).collect();
    assert_eq!(services.len(), 2, "targets of both");
    assert!(shop.verdicts.values().all(|it| *it == Verdict::Use), "{:?}", shop.verdicts);
    assert_eq!(shop.verdicts, inventory.verdicts);
    world.pass(40_000);
    assert!(world.coordinator.is_over());
    assert_eq!(world.programs[&0].participant.over(), Some("time"));
    assert_eq!(world.holds(), 0);
}

#[test]
fn the_load_is_probed_at_first_and_again_and_a_discarded_probe_is_repeated() {
    let mut world = World::of(&["shop"]);
    let is_probe = |begin: &Begin| begin.target.is_some() && !is_on_target(begin);
    world.program(0).outcome = Outcome::Discarded { reason: "stolen".into() };
    world.pass(2_000);
    world.program(0).outcome = Outcome::Measured;
    let begun = &world.programs[&0].begun;
    assert!(begun.len() > 4 && !begun.iter().any(is_on_target), "{begun:?}");
    let before = begun.len();
    world.pass(50_000);
    let after = world.programs[&0].begun[before..].iter().filter(|it| it.target.is_some());
    let probes: Vec<_> = after.map(is_probe).collect();
    let next = |from: usize| probes[from..].iter().position(|&is| is).map(|at| from + at);
    assert_eq!((next(0), next(1)), (Some(0), Some(1)), "{probes:?}");
    assert_eq!(next(2), Some(10), "{probes:?}");
}

#[test]
fn nothing_begins_before_all_who_are_expected_are_ready() {
    let mut world = World::new(&["shop", "inventory"]);
    world.join(0, "shop");
    world.pass(5_000);
    assert!(world.programs[&0].begun.is_empty());
    world.connect(1, "inventory");
    world.pass(5_000);
    assert!(world.programs[&0].begun.is_empty(), "it watches its program");
    world.program(1).participant.offer(vec![known("lookup")], Vec::new());
    world.pass(1_000);
    assert!(!world.programs[&0].begun.is_empty() && !world.programs[&1].begun.is_empty());
}

#[test]
fn a_program_that_never_comes_is_waited_for_only_so_long() {
    let mut world = World::new(&["shop", "inventory"]);
    world.join(0, "shop");
    world.pass(32_000);
    assert!(!world.programs[&0].begun.is_empty());
}

#[test]
fn a_lost_coordinator_leaves_nobody_delayed_beyond_its_lease() {
    let mut world = World::of(&["shop", "inventory"]);
    let held = world.until_held();
    world.is_headless = true;
    world.pass(i64::from(held.lease_ms) + 30);
    assert_eq!(world.holds(), 0);
    for id in 0..2 {
        assert!(world.discarded(id, held.experiment).unwrap().contains("lease"));
    }
}

#[test]
fn a_lost_participant_discards_the_experiment_and_the_others_go_on() {
    let mut world = World::of(&["shop", "inventory", "payments"]);
    let held = world.until_held();
    world.program(1).is_cut_off = true;
    world.coordinator.lose(1, "its connection was closed", world.now);
    world.pass(60);
    let why = world.discarded(0, held.experiment).unwrap();
    assert!(why.contains("`inventory` was lost"), "{why}");
    assert!(world.discarded(2, held.experiment).is_some());
    let before = world.programs[&0].begun.len();
    world.pass(3_000);
    assert!(world.programs[&0].begun.len() > before);
    let gone = |begin: &Begin| begin.target.as_ref().is_some_and(|it| it.service == "inventory");
    assert!(!world.programs[&0].begun[before..].iter().any(gone));
}

#[test]
fn a_participant_that_hangs_is_lost_and_ends_by_its_own_lease() {
    let mut world = World::of(&["shop", "inventory"]);
    let held = world.until_held();
    world.program(1).is_cut_off = true;
    world.pass(1_100);
    assert!(world.programs[&1].held.is_none());
    let why = world.discarded(0, held.experiment).unwrap().to_owned();
    assert!(why.contains("`inventory` was lost"), "{why}");
}

#[test]
fn a_join_in_the_middle_discards_the_experiment_and_the_newcomer_has_the_next() {
    let mut world = World::of(&["shop", "inventory"]);
    let held = world.until_held();
    world.join(7, "payments");
    world.pass(60);
    assert!(world.discarded(0, held.experiment).unwrap().contains("`payments` joined"));
    world.pass(1_000);
    let first = world.programs[&7].begun.first().unwrap();
    assert!(first.experiment > held.experiment);
    assert!(world.programs[&0].begun.contains(first));
}

#[test]
fn a_guard_that_refuses_discards_the_experiment_and_it_is_not_tried_again() {
    let mut world = World::of(&["shop", "inventory"]);
    let held = world.until_held();
    world.program(1).outcome = Outcome::Refused { reason: "too slow".into() };
    world.step();
    world.step();
    world.program(1).outcome = Outcome::Measured;
    world.pass(100);
    let why = world.discarded(0, held.experiment).unwrap();
    assert!(why.contains("`inventory`: too slow"), "{why}");
    world.pass(10_000);
    let again = world.programs[&0].begun.iter().filter(|it| it.target == held.target).count();
    assert_eq!(again, 1);
}

#[test]
fn one_that_discards_after_the_end_discards_for_all() {
    let mut world = World::of(&["shop", "inventory"]);
    let held = world.until_held();
    world.program(1).outcome = Outcome::Discarded { reason: "stolen".into() };
    world.pass(200);
    world.program(1).outcome = Outcome::Measured;
    assert!(world.discarded(0, held.experiment).unwrap().contains("stolen"));
    world.pass(10_000);
    let again = world.programs[&0].begun.iter().filter(|it| it.target == held.target).count();
    assert!(again > 1, "it is tried again");
}

#[test]
fn one_that_says_measured_before_the_end_is_not_believed() {
    let mut world = World::of(&["shop", "inventory"]);
    let held = world.until_held();
    let number = held.experiment;
    let early = ToCoordinator::Result { experiment: number, outcome: Outcome::Measured };
    world.coordinator.receive(1, early, world.now);
    world.pass(60);
    assert!(world.discarded(0, number).unwrap().contains("too soon"));
}

#[test]
fn one_that_is_there_and_never_tells_is_lost() {
    let mut world = World::of(&["shop", "inventory"]);
    let held = world.until_held();
    let mut others = 0;
    for _ in 0..900 {
        world.now = world.now + Nanos::from_millis(10);
        // The program says that it is there, and nothing else.
        world.coordinator.receive(1, ToCoordinator::Alive, world.now);
        let shop = world.programs.get_mut(&0).unwrap();
        shop.step(world.now);
        while let Some(message) = shop.participant.next_message(world.now) {
            world.coordinator.receive(0, message, world.now);
        }
        world.coordinator.tick(world.now);
        while let Some(action) = world.coordinator.next_action() {
            match action {
                Action::Send(0, message) => {
                    world.programs.get_mut(&0).unwrap().participant.receive(message, world.now);
                }
                Action::Close(id) => others += id,
                Action::Send(..) => {}
            }
        }
    }
    assert_eq!(others, 1, "its connection was closed");
    assert!(world.discarded(0, held.experiment).unwrap().contains("did not tell"));
}

#[test]
fn a_participant_behind_a_slow_network_holds_the_others_up_and_is_not_lost() {
    let mut world = World::of(&["shop", "inventory"]);
    world.program(1).latency = Nanos::from_millis(700);
    world.pass(50_000);
    let [shop, inventory] = [0, 1].map(|id| &world.programs[&id]);
    assert!(inventory.participant.over().is_none(), "{:?}", inventory.participant.over());
    let many = inventory.verdicts.len();
    assert!(many > 10, "{many}");
    assert_eq!(shop.begun[..many], inventory.begun[..many]);
    assert!(shop.verdicts.values().all(|it| *it == Verdict::Use), "{:?}", shop.verdicts);
    assert!(inventory.verdicts.values().all(|it| *it == Verdict::Use), "{:?}", inventory.verdicts);
}

#[test]
fn a_participant_that_tells_too_late_is_lost_and_the_others_go_on() {
    let mut world = World::of(&["shop", "inventory"]);
    world.until_held();
    world.program(1).latency = Nanos::from_millis(3_000);
    world.pass(20_000);
    assert!(world.programs[&1].participant.over().is_some());
    assert_eq!(world.programs[&1].held, None);
    let discarded = |it: &Verdict| matches!(it, Verdict::Discard(why) if why.contains("was lost"));
    assert_eq!(world.programs[&0].verdicts.values().filter(|it| discarded(it)).count(), 1);
    let before = world.programs[&0].begun.len();
    world.pass(5_000);
    assert!(world.programs[&0].begun.len() > before);
}

#[test]
fn results_of_strangers_of_other_experiments_and_repeated_ones_change_nothing() {
    let mut world = World::of(&["shop", "inventory"]);
    let held = world.until_held();
    let result = |experiment| ToCoordinator::Result {
        experiment,
        outcome: Outcome::Discarded { reason: "made up".into() },
    };
    world.coordinator.receive(99, result(held.experiment), world.now);
    world.coordinator.receive(0, result(held.experiment - 1), world.now);
    world.coordinator.receive(0, result(held.experiment + 5), world.now);
    world.pass(3_000);
    assert_eq!(world.programs[&0].verdicts[&held.experiment], Verdict::Use);
    world.coordinator.receive(0, result(held.experiment), world.now);
    assert_eq!(world.programs[&0].verdicts[&held.experiment], Verdict::Use);
}

#[test]
fn another_version_and_a_taken_name_are_refused() {
    let mut world = World::of(&["shop", "inventory"]);
    world.pass(100);
    let hello = |version, service: &str| ToCoordinator::Hello {
        version,
        token: TOKEN.into(),
        service: service.into(),
    };
    let mut refusal = |hello| {
        world.coordinator.receive(9, hello, world.now);
        let actions: Vec<_> = std::iter::from_fn(|| world.coordinator.next_action()).collect();
        assert!(actions.contains(&Action::Close(9)), "{actions:?}");
        actions.into_iter().find_map(|action| match action {
            Action::Send(9, ToParticipant::Refused { reason }) => Some(reason),
            _ => None,
        })
    };
    let reason = refusal(hello(PROTOCOL + 1, "payments")).unwrap();
    assert!(reason.contains("version 2"), "{reason}");
    assert!(refusal(hello(0, "payments")).unwrap().contains("version 0"));
    assert!(refusal(hello(PROTOCOL, "shop")).unwrap().contains("`shop`"));
}

#[test]
fn a_name_is_free_again_when_its_program_is_gone() {
    let mut world = World::of(&["shop", "inventory"]);
    world.until_held();
    world.coordinator.lose(1, "killed", world.now);
    world.programs.remove(&1);
    world.join(2, "inventory");
    world.pass(2_000);
    assert!(!world.programs[&2].begun.is_empty());
    assert_eq!(world.programs[&2].service, "inventory");
}

#[test]
fn a_run_that_ends_in_the_middle_discards_what_is_held() {
    let mut world = World::of(&["shop", "inventory"]);
    let held = world.until_held();
    world.coordinator.finish("the command ended", world.now);
    world.pass(50);
    assert_eq!(world.holds(), 0);
    assert!(world.discarded(1, held.experiment).unwrap().contains("the command ended"));
    let tally = world.coordinator.tally();
    assert_eq!((tally.begun, tally.discarded), (held.experiment + 1, 1));
}

#[test]
fn when_all_are_gone_the_run_is_over() {
    let mut world = World::of(&["shop"]);
    world.until_held();
    world.program(0).participant.leave("stopped");
    world.pass(50);
    assert!(world.coordinator.is_over());
    world.join(4, "shop");
    world.pass(50);
    assert!(world.programs[&4].participant.over().unwrap().contains("the run is over"));
}
