//! The coordinator: messages and the time come in, messages go out. Nothing here reads a clock or a
//! socket. Who is not allowed to take part is kept away before.

use super::plan::{Arm, Plan};
use andweorc_profile::coordination::{
    ALIVE_EVERY, Begin, KnownTarget, LONGEST_SILENCE, Outcome, PROTOCOL, Tested, ToCoordinator,
    ToParticipant,
};
use andweorc_profile::time::{Nanos, Real, Speedup};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// So many programs take part at most.
const MOST_MEMBERS: usize = 32;

/// How long the others wait for a program that has joined and watches itself.
const PATIENCE: Nanos = Nanos::from_millis(30_000);

/// A lease: who is not heard for so long, while an experiment is held, is lost.
const LEASE: Nanos = Nanos::from_millis(1000);

/// How long queues settle at the begin of an experiment, at least; up to twice as long, at random.
const WARMUP_MS: u64 = 100;

/// From the end of an experiment to the next: debts are paid, and queues settle back.
const COOLDOWN: Nanos = Nanos::from_millis(100);

/// How long a program may take to tell how an experiment went that was ended.
const TELL: Nanos = Nanos::from_millis(5000);

/// Bounds of the measured stretch.
const MIN_MEASURE: Nanos = Nanos::from_millis(200);
const MAX_MEASURE: Nanos = Nanos::from_millis(1000);

/// So often each arm should get its turn.
const PASSES: i64 = 4;

/// How many probes of the load a run begins with, and after how many other experiments on targets
/// there is one more: the load may change.
const PROBES: u32 = 2;
const PROBE_INTERVAL: u32 = 8;

/// By how much a probe delays all programs.
const PROBE: Speedup = Speedup::from_ppm(250_000);

/// Number of a connection.
pub(crate) type Id = u64;

/// A run of several programs, as it is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Id of the run.
    pub(crate) run: String,
    /// Service that this command builds and starts itself.
    pub(crate) entry: String,
    /// Services that are waited for before the first experiment.
    pub(crate) expected: Vec<String>,
    /// Speedups to test.
    pub(crate) speedups: Vec<Speedup>,
    /// Time from the first hello to the last experiment.
    pub(crate) duration: Nanos,
    /// Seed of the order.
    pub(crate) seed: u64,
}

/// Something to be done for a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Send(Id, ToParticipant),
    Close(Id),
}

/// A program that takes part.
#[derive(Debug)]
struct Member {
    service: String,
    joined: Real,
    heard: Real,
    is_ready: bool,
}

#[derive(Debug)]
enum Stage {
    /// Nothing is held. The next experiment begins then at the earliest.
    Between { until: Real },
    /// An experiment is held.
    Held { ends: Real },
    /// An experiment was ended, and not all have told how it went. Who has not by then is lost.
    Collecting { until: Real },
    /// The run is over.
    Over,
}

/// Subject of an experiment.
#[derive(Debug)]
enum Subject {
    Baseline,
    /// The load: all programs are delayed alike.
    Probe,
    Target(Arm),
}

/// The experiment that is held, or was last.
#[derive(Debug)]
struct Experiment {
    number: u32,
    subject: Subject,
    /// Members that were told to begin it.
    members: BTreeSet<Id>,
    /// Members who have not yet told how it went.
    missing: BTreeSet<Id>,
    discarded: Option<String>,
    is_refused: bool,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Experiments begun, baselines included.
    pub(crate) begun: u32,
    /// Experiments that were discarded.
    pub(crate) discarded: u32,
}

/// The coordinator of a run.
#[derive(Debug)]
pub(crate) struct Coordinator {
    wanted: Wanted,
    plan: Plan,
    random: fastrand::Rng,
    members: BTreeMap<Id, Member>,
    /// Services that were ready once.
    seen: BTreeSet<String>,
    stage: Stage,
    experiment: Option<Experiment>,
    /// The experiment before was one on a target: a baseline comes next.
    after_arm: bool,
    /// Probes that were held.
    probes: u32,
    /// Experiments on targets since the last probe.
    since_probe: u32,
    began: Option<Real>,
    /// When everybody was told that the coordinator is there.
    said: Real,
    tally: Tally,
    actions: VecDeque<Action>,
    /// Things to tell the user.
    news: VecDeque<String>,
}

impl Coordinator {
    /// A coordinator whom nobody has joined.
    pub(crate) fn new(wanted: Wanted, now: Real) -> Coordinator {
        Coordinator {
            plan: Plan::new(wanted.speedups.clone(), wanted.seed),
            random: fastrand::Rng::with_seed(wanted.seed),
            wanted,
            members: BTreeMap::new(),
            seen: BTreeSet::new(),
            stage: Stage::Between { until: now },
            experiment: None,
            after_arm: false,
            probes: 0,
            since_probe: 0,
            began: None,
            said: now,
            tally: Tally::default(),
            actions: VecDeque::new(),
            news: VecDeque::new(),
        }
    }

    /// Returns what is to be done next.
    pub(crate) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns the next thing that the user should know.
    pub(crate) fn next_news(&mut self) -> Option<String> {
        self.news.pop_front()
    }

    /// Whether the run is over.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Counts so far.
    #[cfg(test)]
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    fn send(&mut self, id: Id, message: ToParticipant) {
        self.actions.push_back(Action::Send(id, message));
    }

    /// Takes in a message. The first of a connection is a hello, whose token is right.
    pub(crate) fn receive(&mut self, id: Id, message: ToCoordinator, now: Real) {
        if let ToCoordinator::Hello { version, service, .. } = &message
            && !self.members.contains_key(&id)
        {
            match self.reason_to_refuse(*version, service) {
                Some(reason) => self.refuse(id, reason),
                None => self.welcome(id, service, now),
            }
            return;
        }
        let Some(member) = self.members.get_mut(&id) else { return };
        member.heard = now;
        match message {
            ToCoordinator::Hello { .. } => self.lose(id, "it said hello twice", now),
            ToCoordinator::Alive => {}
            ToCoordinator::Ready { targets, .. } => self.ready(id, targets),
            ToCoordinator::Result { experiment, outcome } => {
                self.result(id, experiment, outcome, now);
            }
            ToCoordinator::Leave { reason } => self.lose(id, &format!("left: {reason}"), now),
            // A message of a later version that this one does not know.
            _ => {}
        }
    }

    fn reason_to_refuse(&self, version: u32, service: &str) -> Option<String> {
        if version != PROTOCOL {
            return Some(format!(
                "it speaks version {version} of the protocol, and the coordinator version {PROTOCOL}: build both with the same andweorc"
            ));
        }
        if self.is_over() {
            return Some("the run is over".into());
        }
        if self.members.len() >= MOST_MEMBERS {
            return Some(format!("{MOST_MEMBERS} programs take part already"));
        }
        let is_taken = self.members.values().any(|member| member.service == service);
        is_taken.then(|| format!("another program takes part as `{service}`"))
    }

    /// Keeps a connection away.
    pub(crate) fn refuse(&mut self, id: Id, reason: String) {
        self.news.push_back(format!("a program was refused: {reason}"));
        self.send(id, ToParticipant::Refused { reason });
        self.actions.push_back(Action::Close(id));
    }

    fn welcome(&mut self, id: Id, service: &str, now: Real) {
        self.began.get_or_insert(now);
        self.discard(format!("`{service}` joined"), now);
        let member =
            Member { service: service.to_owned(), joined: now, heard: now, is_ready: false };
        self.members.insert(id, member);
        let (run, entry) = (self.wanted.run.clone(), Some(self.wanted.entry.clone()));
        self.send(id, ToParticipant::Welcome { version: PROTOCOL, run, entry });
    }

    fn ready(&mut self, id: Id, targets: Vec<KnownTarget>) {
        let Some(member) = self.members.get_mut(&id).filter(|it| !it.is_ready) else { return };
        member.is_ready = true;
        let service = member.service.clone();
        let many = targets.len();
        self.plan.add(&service, targets);
        self.news.push_back(format!("`{service}` takes part, with {many} targets"));
        self.seen.insert(service);
    }

    fn result(&mut self, id: Id, number: u32, outcome: Outcome, now: Real) {
        let Some(experiment) = self.experiment.as_mut().filter(|it| it.number == number) else {
            return;
        };
        if !experiment.missing.remove(&id) {
            return;
        }
        let service = self.members.get(&id).map_or("", |member| &member.service);
        match outcome {
            Outcome::Measured => {
                // Nobody may stop on his own and say that all is well.
                if let Stage::Held { .. } = self.stage {
                    let reason = format!("`{service}` ended it too soon");
                    self.discard(reason, now);
                }
            }
            Outcome::Discarded { reason } => {
                let reason = format!("`{service}`: {reason}");
                self.discard(reason, now);
            }
            Outcome::Refused { reason } => {
                experiment.is_refused = true;
                let reason = format!("`{service}`: {reason}");
                self.discard(reason, now);
            }
        }
        self.settle(now);
    }

    /// A connection was lost, or its program left.
    pub(crate) fn lose(&mut self, id: Id, reason: &str, now: Real) {
        let Some(member) = self.members.remove(&id) else { return };
        self.actions.push_back(Action::Close(id));
        self.news.push_back(format!("`{}` takes part no more: {reason}", member.service));
        let was_in = self.experiment.as_mut().is_some_and(|experiment| {
            experiment.missing.remove(&id);
            experiment.members.remove(&id)
        });
        if was_in {
            self.discard(format!("`{}` was lost: {reason}", member.service), now);
            self.settle(now);
        }
        if self.members.is_empty() && self.began.is_some() && !self.is_over() {
            self.finish("no program takes part any more", now);
        }
    }

    /// Discards the experiment that is not settled yet, if there is one, and ends it.
    fn discard(&mut self, reason: String, now: Real) {
        let is_held = matches!(self.stage, Stage::Held { .. });
        if !is_held && !matches!(self.stage, Stage::Collecting { .. }) {
            return;
        }
        if let Some(experiment) = &mut self.experiment {
            experiment.discarded.get_or_insert(reason);
        }
        if is_held {
            self.end(now);
        }
    }

    /// Ends the experiment in all who hold it.
    fn end(&mut self, now: Real) {
        self.stage = Stage::Collecting { until: now + TELL };
        let Some(experiment) = &self.experiment else { return };
        let end = ToParticipant::End { experiment: experiment.number };
        let sends = experiment.members.iter().map(|&id| Action::Send(id, end.clone()));
        self.actions.extend(sends);
    }

    /// Says what came of the experiment, when all have told.
    fn settle(&mut self, now: Real) {
        let all_told = self.experiment.as_ref().is_some_and(|it| it.missing.is_empty());
        if !matches!(self.stage, Stage::Collecting { .. }) || !all_told {
            return;
        }
        let Some(experiment) = self.experiment.take() else { return };
        for id in experiment.members {
            let discarded = experiment.discarded.clone();
            self.send(id, ToParticipant::Settle { experiment: experiment.number, discarded });
        }
        self.tally.discarded += u32::from(experiment.discarded.is_some());
        match &experiment.subject {
            Subject::Baseline => {}
            // One that a guard refused would be refused again.
            Subject::Probe if experiment.discarded.is_none() || experiment.is_refused => {
                self.probes += 1;
                self.since_probe = 0;
            }
            Subject::Probe => {}
            Subject::Target(arm) => {
                self.since_probe += 1;
                if experiment.is_refused {
                    self.plan.refuse(arm);
                } else if experiment.discarded.is_none() {
                    self.plan.count(arm);
                }
            }
        }
        // Also after one that was discarded: the programs settle meanwhile.
        self.after_arm = !matches!(experiment.subject, Subject::Baseline);
        self.stage = Stage::Between { until: now + COOLDOWN };
    }

    /// Lets time pass.
    pub(crate) fn tick(&mut self, now: Real) {
        if self.is_over() {
            return;
        }
        self.lose_silent(now);
        match self.stage {
            Stage::Held { ends } if now >= ends => self.end(now),
            Stage::Collecting { until } if now >= until => self.lose_untold(now),
            Stage::Between { until } if now >= until => self.begin(now),
            _ => {}
        }
        if now - self.said >= ALIVE_EVERY {
            self.said = now;
            let all = self.members.keys().map(|&id| Action::Send(id, ToParticipant::Alive));
            self.actions.extend(all);
        }
    }

    fn lose_silent(&mut self, now: Real) {
        let holds = |id: &Id| self.experiment.as_ref().is_some_and(|it| it.members.contains(id));
        let silent = self.members.iter().filter(|(id, member)| {
            now - member.heard >= if holds(id) { LEASE } else { LONGEST_SILENCE }
        });
        for id in silent.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.lose(id, "it was not heard any more", now);
        }
    }

    /// Loses those who hold the others up.
    fn lose_untold(&mut self, now: Real) {
        let missing = self.experiment.as_ref().map(|it| it.missing.clone()).unwrap_or_default();
        for id in missing {
            self.lose(id, "it did not tell how an experiment went", now);
        }
    }

    /// Whether somebody is to be waited for, who has just joined or should.
    fn waits(&self, now: Real) -> bool {
        let watches = |member: &Member| !member.is_ready && now - member.joined < PATIENCE;
        let is_new = self.began.is_none_or(|began| now - began < PATIENCE);
        let is_awaited = |service: &String| !self.seen.contains(service);
        self.members.values().any(watches) || is_new && self.wanted.expected.iter().any(is_awaited)
    }

    /// Begins the next experiment, if somebody can hold it and there is time.
    fn begin(&mut self, now: Real) {
        if self.began.is_some_and(|began| now - began >= self.wanted.duration) {
            return self.finish("time", now);
        }
        let ready = self.members.iter().filter(|(_, member)| member.is_ready);
        let members: BTreeSet<Id> = ready.map(|(&id, _)| id).collect();
        if members.is_empty() || self.waits(now) {
            return;
        }
        let Some(subject) = self.next_subject(&members) else {
            return self.finish("nothing left to test", now);
        };
        let number = self.tally.begun;
        self.tally.begun += 1;
        let warmup_ms = self.random.u64(WARMUP_MS..2 * WARMUP_MS);
        let mut begin = Begin::baseline(number, LEASE.to_duration().as_millis() as u32);
        begin.warmup_ms = warmup_ms as u32;
        let tested = match &subject {
            Subject::Baseline => None,
            Subject::Probe => Some((Tested::probe(), PROBE)),
            Subject::Target(Arm { tested, speedup }) => Some((tested.clone(), *speedup)),
        };
        if let Some((target, speedup)) = tested {
            begin.target = Some(target);
            begin.speedup_ppm = speedup.ppm();
        }
        for &id in &members {
            self.send(id, ToParticipant::Begin(begin.clone()));
        }
        let ends = now + Nanos::from_millis(warmup_ms as i64) + self.measure();
        let missing = members.clone();
        let (discarded, is_refused) = (None, false);
        self.experiment =
            Some(Experiment { number, subject, members, missing, discarded, is_refused });
        self.stage = Stage::Held { ends };
    }

    /// Returns what the next experiment is about; `None` where nothing is left to test.
    fn next_subject(&mut self, members: &BTreeSet<Id>) -> Option<Subject> {
        if self.after_arm || self.tally.begun == 0 {
            return Some(Subject::Baseline);
        }
        if self.probes < PROBES || self.since_probe >= PROBE_INTERVAL {
            return Some(Subject::Probe);
        }
        let there: BTreeSet<&str> = members.iter().map(|id| &*self.members[id].service).collect();
        self.plan.next(|service| there.contains(service)).map(Subject::Target)
    }

    /// How long an experiment is measured: so that each arm gets its turns in the time.
    fn measure(&self) -> Nanos {
        // Each has a baseline beside it.
        let many = 2 * PASSES * self.plan.len().max(1) as i64;
        let around = Nanos::from_millis(WARMUP_MS as i64 * 3 / 2) + COOLDOWN;
        (Nanos(self.wanted.duration.0 / many) - around).clamp(MIN_MEASURE, MAX_MEASURE)
    }

    /// Ends the run, for everybody.
    pub(crate) fn finish(&mut self, reason: &str, now: Real) {
        if self.is_over() {
            return;
        }
        self.discard(format!("the run ended: {reason}"), now);
        if let Some(experiment) = self.experiment.take() {
            self.tally.discarded += 1;
            for id in experiment.members {
                let discarded = experiment.discarded.clone();
                self.send(id, ToParticipant::Settle { experiment: experiment.number, discarded });
            }
        }
        self.stage = Stage::Over;
        for id in self.members.keys().copied().collect::<Vec<_>>() {
            self.send(id, ToParticipant::Finish { reason: reason.to_owned() });
        }
        self.news.push_back(format!(
            "the run of several programs is over ({reason}): {} experiments, {} of them discarded",
            self.tally.begun, self.tally.discarded
        ));
    }
}
