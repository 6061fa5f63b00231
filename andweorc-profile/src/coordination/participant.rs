//! The part of a participant: messages and the time come in, messages and what is to be held come
//! out. Nothing here reads a clock or a socket.

use super::{
    ALIVE_EVERY, Begin, KnownPoint, KnownTarget, LONGEST_EXPERIMENT, LONGEST_SILENCE, Outcome,
    PROTOCOL, ToCoordinator, ToParticipant,
};
use crate::plain;
use crate::time::{Nanos, Real};
use std::collections::VecDeque;
use std::mem;

/// Why an experiment ends that the coordinator is no more heard of.
const UNHEARD: &str = "the coordinator was not heard for as long as its lease";

/// Whether an experiment that has ended can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The experiment can be used.
    Use,
    /// The experiment can't be used, for this reason.
    Discard(String),
}

/// One program that takes part in a run.
#[derive(Debug)]
pub struct Participant {
    out: VecDeque<ToCoordinator>,
    /// Id of the run, once the participant is welcome.
    run: Option<String>,
    /// Name of the service that the coordinator started itself, where it says so.
    entry: Option<String>,
    /// The experiment that was begun last.
    held: Option<HeldExperiment>,
    /// The experiment before it, and whether that can be used: the program may not have asked yet.
    settled: Option<(u32, Verdict)>,
    /// When the coordinator was heard last.
    heard: Real,
    /// When something was said last.
    said: Real,
    /// Why it takes part no more.
    over: Option<String>,
    /// Something has changed that the thread that holds experiments should know.
    is_changed: bool,
}

/// An experiment, until the coordinator has said whether it can be used.
#[derive(Debug)]
struct HeldExperiment {
    begin: Begin,
    begun: Real,
    /// The program has taken it.
    is_taken: bool,
    /// Whether it ends in this program, or has ended.
    is_over: bool,
    is_reported: bool,
    verdict: Option<Verdict>,
}

impl HeldExperiment {
    fn end(&mut self, verdict: Option<Verdict>) {
        self.is_over = true;
        if self.verdict.is_none() {
            self.verdict = verdict;
        }
    }
}

impl Participant {
    /// A participant that says hello.
    pub fn new(service: &str, token: &str, now: Real) -> Participant {
        let hello = ToCoordinator::Hello {
            version: PROTOCOL,
            token: token.to_owned(),
            service: service.to_owned(),
        };
        let out = VecDeque::from([hello]);
        Participant {
            out,
            run: None,
            entry: None,
            held: None,
            settled: None,
            heard: now,
            said: now,
            over: None,
            is_changed: false,
        }
    }

    /// Returns the next message to send.
    pub fn next_message(&mut self, now: Real) -> Option<ToCoordinator> {
        let message = self.out.pop_front()?;
        self.said = now;
        Some(message)
    }

    /// Takes in a message of the coordinator. Late and repeated ones change nothing.
    pub fn receive(&mut self, message: ToParticipant, now: Real) {
        // The lease may have ended before a message that was long on its way.
        self.expire(now);
        if self.over.is_some() {
            return;
        }
        self.heard = now;
        match message {
            ToParticipant::Welcome { version, .. } if version != PROTOCOL => self.give_up(format!(
                "the coordinator speaks version {version} of the protocol, and this program version {PROTOCOL}"
            )),
            ToParticipant::Welcome { run, entry, .. } => {
                (self.run, self.entry) = (Some(run), entry);
            }
            ToParticipant::Refused { reason } => {
                self.give_up(format!("the coordinator refused it: {reason}"));
            }
            ToParticipant::Finish { reason } => self.give_up(reason),
            ToParticipant::Alive => {}
            ToParticipant::Begin(begin) => self.begin(begin, now),
            ToParticipant::End { experiment } => {
                self.end(experiment, None);
            }
            ToParticipant::Settle { experiment, discarded } => {
                self.end(experiment, Some(discarded.map_or(Verdict::Use, Verdict::Discard)));
            }
        }
    }

    fn held_as(&mut self, experiment: u32) -> Option<&mut HeldExperiment> {
        self.held.as_mut().filter(|held| held.begin.experiment == experiment)
    }

    fn end(&mut self, experiment: u32, verdict: Option<Verdict>) {
        if let Some(held) = self.held_as(experiment) {
            held.end(verdict);
            self.is_changed = true;
        }
    }

    fn begin(&mut self, begin: Begin, now: Real) {
        if let Some(before) = &self.held {
            if begin.experiment <= before.begin.experiment {
                return;
            }
            if before.verdict.is_none() {
                return self.give_up(
                    "the coordinator began an experiment before it had settled the last".into(),
                );
            }
        }
        if self.run.is_none() {
            return self.give_up("the coordinator began an experiment without a welcome".into());
        }
        self.is_changed = true;
        let before = self.held.take();
        self.settled = before.and_then(|it| Some((it.begin.experiment, it.verdict?)));
        self.held = Some(HeldExperiment {
            begin,
            begun: now,
            is_taken: false,
            is_over: false,
            is_reported: false,
            verdict: None,
        });
    }

    /// Lets time pass: says that it is there, and ends what has lasted for too long.
    pub fn tick(&mut self, now: Real) {
        self.expire(now);
        if self.over.is_none() && self.out.is_empty() && now - self.said >= ALIVE_EVERY {
            self.out.push_back(ToCoordinator::Alive);
        }
    }

    fn expire(&mut self, now: Real) {
        if self.over.is_some() {
            return;
        }
        let silent = now - self.heard;
        if let Some(held) = self.held.as_mut().filter(|held| held.verdict.is_none()) {
            let lease = Nanos::from_millis(i64::from(held.begin.lease_ms));
            if silent >= lease {
                return self.give_up(UNHEARD.into());
            }
            if !held.is_over && now - held.begun >= LONGEST_EXPERIMENT {
                held.end(Some(Verdict::Discard("the coordinator did not end it".into())));
                self.is_changed = true;
            }
        } else if silent >= LONGEST_SILENCE {
            self.give_up("the coordinator was not heard any more".into());
        }
    }

    /// Takes part no more: the connection is lost, say. What is held ends, and is discarded.
    pub fn give_up(&mut self, reason: String) {
        if let Some(held) = &mut self.held {
            held.end(Some(Verdict::Discard(reason.clone())));
        }
        self.over.get_or_insert(reason);
        self.is_changed = true;
    }

    /// Takes part no more, and says so.
    pub fn leave(&mut self, reason: &str) {
        if self.over.is_none() {
            let reason = plain::cut_name(reason).into_owned();
            self.out.push_back(ToCoordinator::Leave { reason: reason.clone() });
            self.give_up(reason);
        }
    }

    /// Makes known what the program has; experiments are held from then on.
    pub fn offer(&mut self, targets: Vec<KnownTarget>, points: Vec<KnownPoint>) {
        self.out.push_back(ToCoordinator::Ready { targets, points });
    }

    /// Whether there is something new to take, to end or to know of since the last call.
    pub fn take_change(&mut self) -> bool {
        mem::take(&mut self.is_changed)
    }

    /// Id of the run, once the participant is welcome.
    pub fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Name of the service that the coordinator started itself, once the participant is welcome and
    /// where the coordinator says so.
    pub fn entry(&self) -> Option<&str> {
        self.entry.as_deref()
    }

    /// Why it takes part no more, if so.
    pub fn over(&self) -> Option<&str> {
        self.over.as_deref()
    }

    /// Returns the experiment that the program is to begin. Each is returned once.
    pub fn take(&mut self) -> Option<Begin> {
        let held = self.held.as_mut().filter(|held| !held.is_taken)?;
        held.is_taken = true;
        Some(held.begin.clone())
    }

    /// Whether the program is to hold this experiment on.
    pub fn is_held(&self, experiment: u32) -> bool {
        let held = self.held.as_ref().filter(|held| held.begin.experiment == experiment);
        held.is_some_and(|held| !held.is_over)
    }

    /// Tells the coordinator how an experiment went. A second outcome of one experiment is not
    /// told.
    pub fn report(&mut self, experiment: u32, outcome: Outcome) {
        let is_over = self.over.is_some();
        let Some(held) = self.held_as(experiment) else { return };
        if !held.is_reported && !is_over {
            held.is_reported = true;
            held.is_over = true;
            self.out.push_back(ToCoordinator::Result { experiment, outcome });
        }
    }

    /// Whether an experiment can be used; `None` until the coordinator has said.
    pub fn verdict(&self, experiment: u32) -> Option<Verdict> {
        match (&self.held, &self.settled) {
            (Some(held), _) if held.begin.experiment == experiment => held.verdict.clone(),
            (_, Some((number, verdict))) if *number == experiment => Some(verdict.clone()),
            (Some(held), _) if held.begin.experiment > experiment => {
                Some(Verdict::Discard("the coordinator was two experiments ahead".into()))
            }
            _ => None,
        }
    }
}
