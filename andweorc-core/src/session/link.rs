//! The connection of a session to the coordinator of a run of several programs.
//!
//! A thread of its own reads and writes the socket, and lets time pass in the [`Participant`], so
//! that the lease ends an experiment also where the thread that holds it is busy. It wakes that
//! thread, which sleeps on the session's [`Stop`], whenever something has changed.

use super::provisional::Stopper;
use crate::clock;
use crate::own_thread;
use crate::sync::Mutex;
use crate::time::{Nanos, Real};
use andweorc_profile::JointRun;
use andweorc_profile::coordination::{
    Begin, KnownPoint, KnownTarget, Lines, Outcome, Participant, ToCoordinator, ToParticipant,
    Verdict, to_line,
};
use andweorc_profile::settings::Join;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long the coordinator is tried to be reached: it may be started after its participants.
const REACH: Nanos = Nanos::from_millis(10_000);
/// How long one try may take, and how long it is until the next.
const TRY: Duration = Duration::from_secs(2);
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// How long a read waits: what is to be sent waits for that at most.
const LOOK: Duration = Duration::from_millis(10);
/// How long the end of a session waits until the coordinator is told.
const LEAVE: Nanos = Nanos::from_millis(1000);
/// How long a write may take.
const WRITE: Duration = Duration::from_secs(1);

/// The part of a session in a run of several programs, shared by the thread that holds experiments
/// and the one that talks with the coordinator.
#[derive(Debug)]
pub(crate) struct Link {
    participant: Arc<Mutex<Participant>>,
    /// Experiments are held from now on.
    has_offered: Arc<AtomicBool>,
    service: String,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Connects in the background. `stopper` ends the session when the coordinator is lost, or says
    /// so.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub(super) fn start(join: Join, stopper: Stopper) -> io::Result<Link> {
        let now = clock::now();
        let participant = Participant::new(&join.service, &join.token, now);
        let participant = Arc::new(Mutex::new(participant));
        let service = join.service;
        let address = join.coordinator;
        let has_offered = Arc::<AtomicBool>::default();
        let shared = (Arc::clone(&participant), Arc::clone(&has_offered));
        let talk = Talk { participant: shared.0, has_offered: shared.1, stopper };
        let thread = own_thread::spawn("andweorc-link", move || talk.run(&address))?;
        Ok(Link { participant, has_offered, service, thread: Some(thread) })
    }

    /// Name of this program in the run.
    pub(crate) fn service(&self) -> &str {
        &self.service
    }

    /// The run that the program is part of, once the coordinator has answered.
    pub(crate) fn run(&self) -> Option<JointRun> {
        let participant = self.participant.lock();
        Some(JointRun {
            run: participant.run()?.to_owned(),
            service: self.service.clone(),
            entry: participant.entry().map(str::to_owned),
        })
    }

    /// Makes known what can be tested and what is measured here.
    pub(crate) fn offer(&self, targets: Vec<KnownTarget>, points: Vec<KnownPoint>) {
        self.has_offered.store(true, Ordering::SeqCst);
        self.participant.lock().offer(targets, points);
    }

    /// Returns the experiment to begin, once.
    pub(crate) fn take(&self) -> Option<Begin> {
        self.participant.lock().take()
    }

    /// Whether the run is over for this program.
    pub(crate) fn is_over(&self) -> bool {
        self.participant.lock().over().is_some()
    }

    /// Whether an experiment is to be held on.
    pub(crate) fn is_held(&self, experiment: u32) -> bool {
        self.participant.lock().is_held(experiment)
    }

    /// Tells how an experiment went.
    pub(crate) fn report(&self, experiment: u32, outcome: Outcome) {
        self.participant.lock().report(experiment, outcome);
    }

    /// Whether an experiment can be used, once the coordinator has said.
    pub(crate) fn verdict(&self, experiment: u32) -> Option<Verdict> {
        self.participant.lock().verdict(experiment)
    }

    /// Tells that the session ends, and waits until that is said. Not for long: the network may
    /// hang, and the thread ends by itself then.
    pub(crate) fn leave(&mut self, reason: &str) {
        self.participant.lock().leave(reason);
        let until = clock::now() + LEAVE;
        let Some(thread) = self.thread.take() else { return };
        while !thread.is_finished() && clock::now() < until {
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.leave("the session ended");
    }
}

/// The thread that talks.
struct Talk {
    participant: Arc<Mutex<Participant>>,
    has_offered: Arc<AtomicBool>,
    stopper: Stopper,
}

impl Talk {
    fn run(self, address: &str) {
        if let Err(reason) = self.reach(address).and_then(|stream| self.talk(stream)) {
            self.participant.lock().give_up(reason);
        }
        let over = self.participant.lock().over().unwrap_or("the run is over").to_owned();
        self.stopper.name_reason(&over);
        // Once it holds experiments, the session ends by itself, with the record of the last.
        if self.has_offered.load(Ordering::SeqCst) {
            self.stopper.stop.cut();
        } else {
            self.stopper.stop.stop();
        }
    }

    /// Connects, and tries for some time. An error says why that came to nothing.
    fn reach(&self, address: &str) -> Result<TcpStream, String> {
        let until = clock::now() + REACH;
        loop {
            let error = match connect(address) {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if clock::now() >= until {
                return Err(format!("the coordinator at {address} can't be reached: {error}"));
            }
            if self.participant.lock().over().is_some() {
                return Err("the session ended".to_owned());
            }
            thread::sleep(TRY_AGAIN);
        }
    }

    /// Talks until the participant takes part no more. An error says how the connection was lost.
    fn talk(&self, mut stream: TcpStream) -> Result<(), String> {
        let lost =
            |error: io::Error| format!("the connection to the coordinator was lost: {error}");
        let mut lines = Lines::default();
        let mut bytes = [0; 4096];
        loop {
            let (messages, is_over) = self.step(clock::now());
            for message in messages {
                stream.write_all(to_line(&message).as_bytes()).map_err(lost)?;
            }
            if is_over {
                return Ok(());
            }
            match stream.read(&mut bytes) {
                Ok(0) => return Err("the coordinator closed the connection".to_owned()),
                Ok(many) => lines.feed(&bytes[..many]),
                Err(error) if is_passing(&error) => continue,
                Err(error) => return Err(lost(error)),
            }
            let heard = clock::now();
            while let Some(message) = lines.next_message::<ToParticipant>() {
                let message = message.map_err(|error| format!("the coordinator sent {error}"))?;
                let mut participant = self.participant.lock();
                participant.receive(message, heard);
                self.wake(&mut participant);
            }
        }
    }

    /// Wakes the thread that holds experiments, if something has changed. Under the lock: else an
    /// experiment that it takes meanwhile would be ended by what was meant for the one before.
    fn wake(&self, participant: &mut Participant) {
        if participant.take_change() {
            self.stopper.stop.cut();
        }
    }

    /// Lets time pass. Returns what is to be sent, and whether that is the last.
    fn step(&self, now: Real) -> (Vec<ToCoordinator>, bool) {
        let mut participant = self.participant.lock();
        participant.tick(now);
        self.wake(&mut participant);
        let messages = std::iter::from_fn(|| participant.next_message(now)).collect();
        (messages, participant.over().is_some())
    }
}

/// Connects to the first of the addresses that answers.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TRY) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(LOOK))?;
                stream.set_write_timeout(Some(WRITE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whether a read that failed is just to be tried again.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
