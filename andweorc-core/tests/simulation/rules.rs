//! The rules that a simulation runs by: those that ship, and what is left of them in each ablation.

use andweorc_core::engine;
use andweorc_core::time::Nanos;

/// When a participant that owes delay pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pay {
    /// At once, whatever it does: the ideal that a nudge comes near.
    Continuously,
    /// Before and after a poll, and when the nudge finds that it lags: every 500 us, from 100 us
    /// on.
    Nudged,
    /// Before and after a poll only.
    AtPolls,
}

/// Effect of a wake on the clock of whoever is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// By the ledger's rules.
    Shipped,
    /// Nobody knows who wakes whom: every wake comes from outside.
    EdgeUnknown,
    /// Whoever is woken from outside is forgiven what D grew meanwhile.
    NotStretched,
    /// Tasks have no clock. A worker that another one wakes skips all delays.
    Coz,
}

/// How time inside the target is credited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credit {
    Timed,
    /// One lump of this length for every sample, which each thread takes so often in its CPU time.
    Sampled(Nanos),
}

/// When that came which a worker notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrivals {
    /// By `andweorc_core::late_events`, with a thread that watches the sockets.
    Watched,
    /// By `andweorc_core::late_events`, and nobody watches the sockets.
    Guessed,
    /// Just now.
    Noticed,
    /// When it really came, which nobody knows.
    Known,
}

/// How a wake is passed on that the world outside caused and that was held. (A poll that comes too
/// early is always held by the thread.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Releases {
    /// By a timer in the driver, through which it came too: whoever sleeps there is woken, and if
    /// nobody does, it lies there until somebody looks.
    ThroughDriver,
    /// By a thread that is no worker, if a worker sleeps; else by a worker between two polls.
    ByThread,
}

/// Which time the program's own clock tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// V.
    Virtual,
    /// That of the world outside, to which its timers belong.
    Real,
}

/// Until when a worker that sleeps takes its delay, if another one gets it going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notified {
    /// Until it was notified, as far as that is known: by the last time that a task was woken or
    /// spawned, unless that is too long ago.
    Guessed,
    /// Until it was, which nobody knows.
    Known,
    /// Until it runs.
    Running,
}

/// How hosts learn of each other's delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Messages {
    /// Each message carries what its sender had taken.
    Carried,
    /// Requests do, and answers come from the world outside.
    OnRequests,
    /// Not at all: each host predicts by itself.
    Nothing,
    /// All are told the greatest D of all each millisecond, and messages carry nothing.
    Told,
    /// Messages carry it, and all are told too.
    CarriedAndTold,
}

/// A set of rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) name: &'static str,
    pub(crate) pay: Pay,
    pub(crate) wakes: Wakes,
    /// Tasks have clocks. Otherwise threads alone have.
    pub(crate) task_clocks: bool,
    pub(crate) credit: Credit,
    /// Least lead over V that is deferred: less is paid by the worker. `None`: everything is paid
    /// by the worker.
    pub(crate) defer_from: Option<Nanos>,
    pub(crate) arrivals: Arrivals,
    pub(crate) clock: Clock,
    pub(crate) releases: Releases,
    /// A request that comes to a connection which nobody profiles begins when it came, by the clock
    /// of the request before. Otherwise at V.
    pub(crate) requests_follow: bool,
    pub(crate) parts: Parts,
    pub(crate) joined: Joined,
    pub(crate) notified: Notified,
    /// A worker that was notified pays the rest before it looks for work, and tells others of it.
    /// Otherwise it pays before its first poll.
    pub(crate) notified_pays: bool,
    /// A thread that is notified by one with credit has the credit too. Otherwise no thread has
    /// credit but by its own pauses.
    pub(crate) credit_passes: bool,
    /// A thread that another one blocked takes what passed meanwhile. Otherwise it pays that.
    pub(crate) blocks_absorb: bool,
    /// A thread that is blocked and polls a task is a participant again until that poll ends.
    /// Otherwise it is blocked on.
    pub(crate) inner_polls: bool,
    /// A plain thread that wakes a task takes part from then on. Otherwise it acts for the world
    /// outside.
    pub(crate) plain_takes_part: bool,
    /// Another experiment was held before, and left its debts.
    pub(crate) after_another: bool,
    pub(crate) messages: Messages,
}

impl Rules {
    /// The rules by which the clocks of tasks go.
    pub(crate) fn of_clocks(&self) -> engine::Rules {
        engine::Rules {
            task_clocks: self.task_clocks,
            min_hold: self.defer_from.unwrap_or(Nanos(i64::MAX)),
            raised_holds: self.joined.raise != Raise::Never,
            ongoing_waits: self.joined.go_on != GoOn::Never,
            credit_passes: self.credit_passes,
        }
    }
}

/// How futures that are profiled inside a profiled task keep their clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// A poll that no wake of its own caused, and that ends pending, leaves the clock as it was.
    /// Otherwise it parks anew.
    pub(crate) keep_clock: bool,
    /// A future that was deferred wakes the task around it at its own virtual time. Otherwise it
    /// wakes the task as the world outside does.
    pub(crate) wake_as_participant: bool,
}

/// How a task is held that waits for several things outside at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) raise: Raise,
    pub(crate) go_on: GoOn,
}

/// Cases in which what comes until a task is polled raises its hold: when the first is due, the
/// task is held until the last of the others is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raise {
    /// The task finds all that came when the first is due.
    Never,
    /// By what comes while the task is held, and not by what comes while it is in the queue.
    WhileHeld,
    Once,
}

/// After which polls that end pending the waits outside go on as they were. After the others they
/// count as begun by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GoOn {
    Never,
    /// Short ones that left no more wakers than there were.
    NoMore,
    /// Short ones that began no wait: that cloned no waker.
    NoneBegan,
}

/// The rules that ship, with payment as it ideally is.
pub(crate) const SHIPPED: Rules = Rules {
    name: "shipped rules",
    pay: Pay::Continuously,
    wakes: Wakes::Shipped,
    task_clocks: true,
    credit: Credit::Timed,
    defer_from: Some(engine::Rules::SHIPPED.min_hold),
    arrivals: Arrivals::Watched,
    clock: Clock::Virtual,
    releases: Releases::ThroughDriver,
    requests_follow: false,
    parts: Parts { keep_clock: true, wake_as_participant: true },
    joined: Joined { raise: Raise::Once, go_on: GoOn::NoneBegan },
    notified: Notified::Guessed,
    notified_pays: true,
    credit_passes: true,
    blocks_absorb: true,
    inner_polls: true,
    plain_takes_part: true,
    after_another: false,
    messages: Messages::Carried,
};

/// The ledger's rules alone: no task runs before it is due, by however little.
pub(crate) const EVERYTHING_DEFERRED: Rules =
    Rules { name: "everything deferred, however short", defer_from: Some(Nanos::ZERO), ..SHIPPED };

/// The rules that ship, when something is still owed from an experiment before.
pub(crate) const AFTER_ANOTHER: Rules =
    Rules { name: "after another experiment", after_another: true, ..SHIPPED };

/// The rules that ship, with payment as it can be had.
pub(crate) const PAYMENTS: [Rules; 2] = [
    Rules { name: "paid at polls, and nudged every 500 us", pay: Pay::Nudged, ..SHIPPED },
    Rules { name: "paid at polls only", pay: Pay::AtPolls, ..SHIPPED },
];

/// Sets of rules that each lack one that ships, to show what that is needed for.
pub(crate) const ABLATIONS: [Rules; 7] = [
    Rules { name: "threads alone have clocks", task_clocks: false, ..SHIPPED },
    Rules { name: "wake edge off", wakes: Wakes::EdgeUnknown, ..SHIPPED },
    Rules { name: "external waits not stretched", wakes: Wakes::NotStretched, ..SHIPPED },
    Rules { name: "worker blocked instead of task deferred", defer_from: None, ..SHIPPED },
    Rules {
        name: "one credit per 1 ms sample",
        credit: Credit::Sampled(Nanos::from_millis(1)),
        ..SHIPPED
    },
    Rules {
        name: "one credit per 100 us sample",
        credit: Credit::Sampled(Nanos::from_micros(100)),
        ..SHIPPED
    },
    Rules { name: "Coz's rule: the woken skip all delays", wakes: Wakes::Coz, ..SHIPPED },
];

/// Sets of rules that each lack one about what comes late, to show what that is needed for. Only
/// programs with late looks have something that comes late.
pub(crate) const LATE_ABLATIONS: [Rules; 2] = [
    Rules { name: "released by a thread", releases: Releases::ByThread, ..SHIPPED },
    Rules { name: "noticed is arrived", arrivals: Arrivals::Noticed, ..SHIPPED },
];
