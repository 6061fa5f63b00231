//! Messages between hosts, as tasks send and receive them: who receives one does what the
//! [engine](andweorc_core::engine) that ships says.

use crate::engine::Engine;
use crate::poll::Flow;
use crate::rules::Messages;
use crate::task::external;
use andweorc_core::engine::{Message, WakeSource};
use andweorc_core::ledger::Stamp;
use andweorc_core::time::{Nanos, Real, Virtual};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Inbox of a host: the requests of one connection, say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) host: usize,
    pub(crate) inbox: usize,
}

/// Operation on messages between hosts.
#[derive(Clone, Debug)]
pub(crate) enum Remote {
    /// Sends a request to each of these, and waits for all answers.
    Ask(Vec<Address>),
    /// Sends a request to the first, and to the next whenever so long has passed, and goes on with
    /// the answer that is there first. The others do their work for nothing.
    Hedge(Vec<Address>, i64),
    /// Sends a request on a connection that others use as well: a task that reads this inbox hands
    /// the answer over.
    AskOver(Address, usize),
    /// Sends something that nobody answers.
    Post(Address),
    /// Waits for the next message in this inbox.
    Recv(usize),
    /// Answers the request that was received last.
    Answer,
    /// Waits for the next answer in this inbox, whose header somebody else reads.
    Read(usize),
    /// Hands that answer over to who waits for it.
    HandOver,
}

/// Request under way, as the one who answers it knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) host: usize,
    task: usize,
    ask: u64,
    /// The inbox of the task that reads the connection, if that is not the one that asks.
    over: Option<usize>,
}

/// Message that has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    stamp: Option<Stamp>,
    came: Real,
    asker: Option<Asker>,
}

/// Destination of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum To {
    Inbox(Address),
    Asker(Asker),
}

/// Message that leaves a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) to: To,
    stamp: Option<Stamp>,
    asker: Option<Asker>,
}

impl Sent {
    /// Host that it goes to.
    pub(crate) fn host(&self) -> usize {
        match self.to {
            To::Inbox(address) => address.host,
            To::Asker(asker) => asker.host,
        }
    }
}

#[derive(Default)]
struct Inbox {
    packets: VecDeque<Packet>,
    reader: Option<usize>,
}

/// Messages of one host.
#[derive(Default)]
pub(crate) struct Post {
    pub(crate) host: usize,
    inboxes: Vec<Inbox>,
    pub(crate) outgoing: Vec<Sent>,
    asked: u64,
}

impl Post {
    pub(crate) fn new(inboxes: usize) -> Post {
        let inboxes = (0..inboxes).map(|_| Inbox::default()).collect();
        Post { inboxes, ..Post::default() }
    }
}

/// Request that a task has sent.
#[derive(Clone, Copy, Debug)]
struct Asked {
    ask: u64,
    answer: Option<Packet>,
    /// When the answer is due, once it was taken in.
    due: Option<Virtual>,
}

/// Messages of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mail {
    /// The message that was received last.
    last: Option<Packet>,
    /// When that is due.
    due: Option<Virtual>,
    asked: Vec<Asked>,
    /// How far V has got by the timers that went off. It may be back by the time of the poll: D
    /// rises by what another message carries.
    reached: Option<Virtual>,
}

impl Mail {
    /// A timer has gone off, since V has got to `due`.
    pub(crate) fn reached(&mut self, due: Virtual) {
        self.reached = self.reached.max(Some(due));
    }

    fn is_due(&self, due: Virtual) -> bool {
        due == AT_ONCE || self.reached.is_some_and(|reached| due <= reached)
    }
}

/// Due, and always was.
const AT_ONCE: Virtual = Virtual(i64::MIN);

/// The thread pays what it owes for a message, and then goes on after it.
const PAYS: u8 = 9;

impl Engine<'_> {
    /// Does an operation on messages.
    pub(crate) fn remote(&mut self, i: usize, id: usize, op: &Remote) -> Flow {
        if self.tasks[id].phase == PAYS {
            return Flow::Next;
        }
        let first = self.tasks[id].phase == 0;
        let done = match op {
            Remote::Post(address) => {
                self.send_to(i, To::Inbox(*address), None);
                true
            }
            Remote::Answer => {
                let Some(asker) = self.tasks[id].mail.last.take().and_then(|last| last.asker)
                else {
                    self.fail("nobody has asked");
                    return Flow::Pending;
                };
                let address = |inbox| Address { host: asker.host, inbox };
                let to = asker.over.map_or(To::Asker(asker), |over| To::Inbox(address(over)));
                self.send_to(i, to, Some(asker));
                true
            }
            Remote::HandOver => {
                if let Some(packet) = self.tasks[id].mail.last.take()
                    && let Some(asker) = packet.asker
                    && self.is_answered(asker, packet)
                {
                    self.wake(asker.task, Some(i));
                }
                true
            }
            Remote::Recv(inbox) => self.receive(i, id, *inbox),
            Remote::Read(inbox) => match self.next_in(id, *inbox) {
                Some(packet) => {
                    self.tasks[id].mail.last = Some(packet);
                    true
                }
                None => false,
            },
            Remote::Ask(all) => {
                if first {
                    all.iter().for_each(|to| self.ask_host(i, id, *to, None));
                }
                self.answers_due(i, id) == all.len()
            }
            Remote::AskOver(to, over) => {
                if first {
                    self.ask_host(i, id, *to, Some(*over));
                }
                self.answers_due(i, id) == 1
            }
            Remote::Hedge(all, after) => self.hedge(i, id, all, Nanos(*after)),
        };
        if !done {
            self.tasks[id].phase = 1;
            return Flow::Pending;
        }
        self.tasks[id].mail.asked.clear();
        // Who receives a message pays before it goes on.
        let owes = self.ledger.lag(self.threads[i].account, self.now) > Nanos::ZERO;
        if owes && self.threads[i].entered.is_none() {
            self.tasks[id].phase = PAYS;
            self.threads[i].nudged = true;
            return Flow::Busy;
        }
        Flow::Next
    }

    fn hedge(&mut self, i: usize, id: usize, all: &[Address], after: Nanos) -> bool {
        let is_over = |timer: &Virtual| *timer <= self.program_now();
        let sent = self.tasks[id].mail.asked.len();
        if let Some(to) = all.get(sent)
            && self.tasks[id].timers.last().is_none_or(is_over)
        {
            self.ask_host(i, id, *to, None);
            self.set_timer(id, self.program_now(), after);
        }
        self.answers_due(i, id) > 0
    }

    fn ask_host(&mut self, i: usize, id: usize, to: Address, over: Option<usize>) {
        self.post.asked += 1;
        let ask = self.post.asked;
        self.tasks[id].mail.asked.push(Asked { ask, answer: None, due: None });
        let asker = Asker { host: self.post.host, task: id, ask, over };
        self.send_to(i, To::Inbox(to), Some(asker));
    }

    /// Sends a message in the name of who runs on a thread: an answer, where nobody else is asked.
    fn send_to(&mut self, i: usize, to: To, asker: Option<Asker>) {
        let is_answer = asker.is_some_and(|asker| asker.host != self.post.host);
        let stamps = match self.rules.messages {
            Messages::Carried | Messages::CarriedAndTold => true,
            Messages::OnRequests => !is_answer,
            Messages::Nothing | Messages::Told => false,
        };
        let taken = self.ledger.local_delay(self.threads[i].account, self.now);
        let stamp = self.ledger.stamp(Some(taken), self.now).filter(|_| stamps);
        self.post.outgoing.push(Sent { to, stamp, asker });
    }

    /// A message comes out of the network.
    pub(crate) fn delivered(&mut self, sent: Sent) {
        let packet = Packet { stamp: sent.stamp, came: self.now, asker: sent.asker };
        match sent.to {
            To::Inbox(Address { inbox, .. }) => {
                let inbox = &mut self.post.inboxes[inbox];
                inbox.packets.push_back(packet);
                if let Some(reader) = inbox.reader.take() {
                    self.wake_for(reader, packet);
                }
            }
            To::Asker(asker) if self.is_answered(asker, packet) => {
                self.wake_for(asker.task, packet);
            }
            To::Asker(_) => {}
        }
    }

    /// Keeps an answer for who asked, if that one still waits for it.
    fn is_answered(&mut self, asker: Asker, packet: Packet) -> bool {
        let asked = &mut self.tasks[asker.task].mail.asked;
        let waits = asked.iter_mut().find(|it| it.ask == asker.ask);
        waits.is_some_and(|it| it.answer.replace(packet).is_none())
    }

    /// Wakes who waits at a socket. A peer that takes part had paid what it owed; all others are
    /// the world outside.
    fn wake_for(&mut self, task: usize, packet: Packet) {
        let source = match packet.stamp {
            Some(_) => WakeSource::Loopback,
            None => external(packet.came),
        };
        self.wake_by(task, None, source);
    }

    fn next_in(&mut self, id: usize, inbox: usize) -> Option<Packet> {
        let inbox = &mut self.post.inboxes[inbox];
        let packet = inbox.packets.pop_front();
        inbox.reader = packet.is_none().then_some(id);
        packet
    }

    /// Receives a message, and says whether the task goes on with it.
    fn receive(&mut self, i: usize, id: usize, inbox: usize) -> bool {
        if self.tasks[id].mail.due.is_none() {
            let Some(packet) = self.next_in(id, inbox) else { return false };
            self.tasks[id].mail.last = Some(packet);
            self.tasks[id].mail.due = Some(self.take_in(i, id, packet));
        }
        let mail = &mut self.tasks[id].mail;
        let is_due = mail.due.is_some_and(|due| mail.is_due(due));
        if is_due {
            mail.due = None;
        }
        is_due
    }

    /// Takes in the answers that have come, and counts those that are due.
    fn answers_due(&mut self, i: usize, id: usize) -> usize {
        for n in 0..self.tasks[id].mail.asked.len() {
            let Asked { answer, due, .. } = self.tasks[id].mail.asked[n];
            if let (Some(packet), None) = (answer, due) {
                self.tasks[id].mail.asked[n].due = Some(self.take_in(i, id, packet));
            }
        }
        let mail = &self.tasks[id].mail;
        mail.asked.iter().filter(|it| it.due.is_some_and(|due| mail.is_due(due))).count()
    }

    /// Takes a message in as `thread::received` does, and returns when it is due. Until then it is
    /// held by a timer of the virtual clock.
    fn take_in(&mut self, i: usize, id: usize, packet: Packet) -> Virtual {
        let Some(stamp) = packet.stamp else { return AT_ONCE };
        let parked = self.tasks[id].parked_at();
        let message = Message { stamp, came: packet.came, parked };
        let early = self.model().received(Some(self.threads[i].account), message, self.now);
        if let Some(due) = early {
            self.order += 1;
            self.timers.push(Reverse((due, self.order, id, self.tasks[id].wait)));
        }
        early.unwrap_or(AT_ONCE)
    }
}
