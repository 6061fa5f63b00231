//! The process-wide ledger, and what the calling thread is to it.
//!
//! A thread opens its [`Account`] by itself, the first time that it polls a profiled task or hits a target, and closes
//! it when it ends. On an async worker the thread is an entity only while it polls: what wakes a task between polls is the driver,
//! that is, the world outside. A plain thread is an entity all the time once it has [registered](register).

mod block;
mod poll;
mod queued;
mod ran;
mod sampled;
mod stay;
mod stretch;

pub use block::{Blocking, blocked, pay_before_waking};
pub use poll::Poll;
pub(crate) use sampled::sampled;
pub use stay::{Entered, Stay, enter, exit, exit_under};

use crate::arrival::{Came, LOOKS, Look, Typical};
use crate::clock;
use crate::defer;
use crate::fork;
use crate::ledger::{Account, Ledger};
use crate::pause;
use crate::sampler::course::Courses;
use crate::sampler::{self, slots};
use crate::target::Target;
use crate::time::{Nanos, Real, Speedup, Virtual};
use crate::wait::Ended;
use crossbeam_utils::CachePadded;
use queued::Queued;
use ran::Ran;
use std::cell::Cell;
use std::mem;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use stretch::Stretch;

/// The ledger of this process.
#[cfg(not(loom))]
pub static LEDGER: Ledger = Ledger::new();

#[cfg(loom)]
loom::lazy_static! {
    /// The ledger of this run of the model.
    pub static ref LEDGER: Ledger = Ledger::new();
}

/// What each poll asks for, and experiments write: on one cache line, with nothing else.
pub(crate) struct Asked {
    enabled: AtomicBool,
    /// Id of the target of the running experiment; 0 when there is none.
    target: AtomicU32,
    /// See [`share::aim`](crate::sampler::share::aim).
    pub(crate) aim: AtomicU32,
    /// See [`share::learns`](crate::sampler::share::learns).
    pub(crate) learns: AtomicBool,
}

pub(crate) static ASKED: CachePadded<Asked> = CachePadded::new(Asked {
    enabled: AtomicBool::new(false),
    target: AtomicU32::new(0),
    aim: AtomicU32::new(0),
    learns: AtomicBool::new(false),
});

/// Held by tests that begin experiments in the ledger of the process.
#[cfg(test)]
static EXPERIMENTS: Mutex<()> = Mutex::new(());

/// Threads that found no free account.
static WITHOUT_ACCOUNT: AtomicU64 = AtomicU64::new(0);

/// A debt below this is left for later: pausing costs about as much.
const LEAST_PAUSE: Nanos = Nanos::from_micros(2);

/// What a pause may overshoot and have counted. What is later was a stop, or a machine too busy to be measured on, and would be credit for
/// whole experiments.
const MOST_OVERSHOOT: Nanos = Nanos::from_millis(20);

/// How often D may have grown again during a pause before the rest is left for later. Bounded, because with a speedup of
/// 100 % D grows as fast as the pause pays, and the target may be waiting for this very thread.
const ROUNDS: usize = 8;

/// Whether andweorc is on. Everything in the hot paths asks this first.
#[inline]
pub fn enabled() -> bool {
    // Relaxed: a thread that sees the switch later starts to take part later.
    ASKED.enabled.load(Ordering::Relaxed)
}

/// Switches andweorc on. It stays on for the life of the process: tasks that saw it on keep their wrapped wakers.
///
/// Does nothing in a child of [fork](mod@crate::fork).
pub fn enable() {
    if fork::forked() {
        return;
    }
    fork::watch();
    if !ASKED.enabled.swap(true, Ordering::SeqCst) {
        clock::start();
        // Taken out first: what is called may want to hold locks that [`when_enabled`] is called under.
        let hooks = mem::take(&mut *hooks());
        hooks.into_iter().for_each(|hook| hook());
    }
}

/// Calls `hook` once, when andweorc is switched on; never if it is on already. Whoever has called this and finds andweorc off is told when
/// that changes.
pub fn when_enabled(hook: fn()) {
    let mut hooks = hooks();
    if !enabled() {
        hooks.push(hook);
    }
}

fn hooks() -> MutexGuard<'static, Vec<fn()>> {
    static HOOKS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());
    HOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Switches andweorc off in a child of fork, and forgives all debts. Async-signal-safe.
pub(crate) fn abandon() {
    ASKED.enabled.store(false, Ordering::SeqCst);
    ASKED.target.store(0, Ordering::SeqCst);
    LEDGER.abandon();
}

/// Chooses the target of the running experiment. The ledger must be between experiments.
pub(crate) fn set_target(target: Option<&Target>) {
    sampler::aim(target);
    ASKED.target.store(target.map_or(0, Target::id), Ordering::SeqCst);
}

/// How many threads found no free account and so are not delayed.
pub(crate) fn without_account() -> u64 {
    WITHOUT_ACCOUNT.load(Ordering::SeqCst)
}

/// Whether this is the target of the running experiment.
#[inline]
pub fn is_target(target: &Target) -> bool {
    // Relaxed: a thread that sees a new target later enters it later, and the ledger credits by its own experiment.
    ASKED.target.load(Ordering::Relaxed) == target.id()
}

/// What the calling thread is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// No entity: a worker between polls, or a thread that never registered. Wakes come from outside.
    Outside,
    /// An entity: it polls a task, or it is a registered thread.
    Entity,
    /// A worker whose last task just completed: the runtime wakes who joined it, in the task's name. Ends with that wake.
    Completed,
}

/// The calling thread's state. Plain cells without a destructor, so that a signal handler may read them.
#[repr(C, align(64))]
struct Thread {
    // What each poll and wake reads, on one cache line.
    account: Cell<Option<&'static Account>>,
    /// Time spent in targets inside the innermost one that is open.
    inner: Cell<Nanos>,
    /// When it was last busy, where no hooks tell, or when it parked.
    busy_until: Cell<Option<Real>>,
    /// How many times the target was entered and not left.
    depth: Cell<u32>,
    /// Id of the innermost target that was entered and not left; 0 for none.
    context: Cell<u32>,
    /// The experiment on a sampled target in which the context is credited with its share; 0 where it is not.
    shared: Cell<u32>,
    tid: Cell<i32>,
    /// It asked for an account, whether or not it got one.
    asked: Cell<bool>,
    role: Cell<Role>,
    /// Whether park hooks tell when this thread is idle.
    hooked: Cell<bool>,
    /// The account is being written: a signal handler must leave it alone.
    writing: Cell<bool>,
    /// The wait that is the target began in this poll: if the task parks now, it is in it.
    waits: Cell<bool>,
    /// It is blocked by another thread, as it has said itself or as a hook of the system call has seen.
    blocked: Cell<bool>,
    // What fewer do.
    /// How the wait of the task that is polled ended with this poll, where that is known.
    ended: Cell<Option<Ended>>,
    /// When it parked, between the park hooks.
    parked: Cell<Option<Real>>,
    /// It waits in the driver, between those hooks.
    watches: Cell<bool>,
    /// Its last look at what came from the world outside.
    look: Cell<Look>,
    /// How long it really ran: inside the target, or in a context that has a share of a sampled one.
    ran: Ran,
    /// Whether it waited for its processor.
    queued: Queued,
    /// Where it can be outside of all targets, once it is sampled.
    courses: Cell<Option<&'static Courses>>,
    /// Where it is on one of them.
    stretch: Cell<Option<Stretch>>,
}

const _: () = assert!(mem::offset_of!(Thread, ended) <= 64, "a poll reads one cache line more");

/// Closes the account when the thread ends.
struct Close;

impl Drop for Close {
    fn drop(&mut self) {
        with(|thread| {
            if let Some(since) = thread.parked.take() {
                defer::worker_unparked(since, clock::now());
            }
            thread.end_stretch();
            thread.courses.set(None);
            thread.queued.close();
            slots::closed();
            if let Some(account) = thread.account.take() {
                LEDGER.close(account, clock::now());
            }
        });
    }
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            account: Cell::new(None),
            asked: Cell::new(false),
            role: Cell::new(Role::Outside),
            depth: Cell::new(0),
            ran: Ran::new(),
            queued: Queued::new(),
            inner: Cell::new(Nanos::ZERO),
            hooked: Cell::new(false),
            busy_until: Cell::new(None),
            parked: Cell::new(None),
            watches: Cell::new(false),
            look: Cell::new(Look::NONE),
            writing: Cell::new(false),
            tid: Cell::new(0),
            ended: Cell::new(None),
            waits: Cell::new(false),
            context: Cell::new(0),
            blocked: Cell::new(false),
            shared: Cell::new(0),
            courses: Cell::new(None),
            stretch: Cell::new(None),
        }
    };
    static CLOSE: Close = const { Close };
}

impl Thread {
    #[inline]
    fn account(&self, now: Real) -> Option<&'static Account> {
        if !self.asked.get() {
            self.ask(now);
        }
        self.account.get()
    }

    #[cold]
    fn ask(&self, now: Real) {
        self.asked.set(true);
        // A thread that is being torn down gets no account: nobody would close it.
        let open = || CLOSE.try_with(|_| LEDGER.open(now)).ok().flatten();
        self.account.set(open());
        self.tid.set(nix::unistd::gettid().as_raw());
        if self.account.get().is_none() {
            WITHOUT_ACCOUNT.fetch_add(1, Ordering::SeqCst);
        } else {
            self.courses.set(slots::opened(self.tid.get()));
        }
    }

    #[inline]
    fn set_role(&self, role: Role) {
        self.role.set(role);
        if let Some(account) = self.account.get() {
            let told = role == Role::Entity && !self.blocked.get();
            account.set_runs_as(if told { self.tid.get() } else { 0 });
        }
    }

    /// Whether the thread owes nothing to speak of. Most often that is known without a clock.
    #[inline]
    fn owes_nothing(&self) -> bool {
        self.share();
        self.depth.get() > 0
            || self
                .account
                .get()
                .and_then(|account| LEDGER.debt_at_rest(account))
                .is_some_and(|debt| debt < LEAST_PAUSE)
    }

    /// Pays what the thread owes. Returns when it was done, no earlier than `now`, a moment ago.
    #[inline]
    fn pay(&self, now: Real) -> Real {
        if self.owes_nothing() { now } else { self.pay_debt() }
    }

    #[cold]
    #[inline(never)]
    fn pay_debt(&self) -> Real {
        let mut now = clock::now();
        let Some(account) = self.account(now) else { return now };
        self.share_no_more();
        self.take_what_it_queued_for(account, now);
        for _ in 0..ROUNDS {
            let debt = LEDGER.debt(account, now);
            if debt < LEAST_PAUSE {
                break;
            }
            let begun = now;
            now = pause::until(begun + debt);
            LEDGER.took(account, (now - begun).min(debt + MOST_OVERSHOOT), now);
            self.paused_since(begun, now);
        }
        self.is_level_here();
        // What a pause spins is nobody's time.
        self.share_anew();
        now
    }

    /// The virtual time of whoever acts on this thread.
    #[inline]
    fn entity_at(&self, now: Real) -> Option<Virtual> {
        match self.role.get() {
            Role::Outside => None,
            Role::Entity | Role::Completed => {
                self.share();
                self.account(now).map(|account| LEDGER.virtual_of(account, now))
            }
        }
    }

    /// The virtual time of the thread, which has just got its share, and an account if one was free; V when none was.
    #[inline]
    fn virtual_at(&self, now: Real) -> Virtual {
        match self.account.get() {
            Some(account) => LEDGER.virtual_of(account, now),
            None => LEDGER.virtual_now(now),
        }
    }
}

/// Runs `f` with the calling thread's state, undisturbed by [`pay_in_signal_handler`].
#[inline]
fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
    // As an address, so that this is inlined whatever `f` is: `LocalKey::with` isn't when that is long.
    let thread = THREAD.with(ptr::from_ref);
    // SAFETY: it is the calling thread's, which goes on beyond this call, and without a destructor it is there for as long as its thread.
    let thread = unsafe { &*thread };
    let before = thread.writing.replace(true);
    let result = f(thread);
    thread.writing.set(before);
    result
}

/// Pays what the calling thread owes, from a signal handler that interrupted it anywhere. Does nothing when the handler
/// interrupted this module, or when the thread is no entity, or blocked.
///
/// Async-signal-safe: reads thread-local cells without destructors, uses atomics, reads clocks and sleeps.
pub(crate) fn pay_in_signal_handler() {
    THREAD.with(|thread| {
        if thread.role.get() == Role::Entity
            && !thread.blocked.get()
            && thread.account.get().is_some()
            && !thread.writing.replace(true)
        {
            if !thread.owes_nothing() {
                clock::in_signal_handler(|| {
                    thread.pay_debt();
                });
            }
            thread.writing.set(false);
        }
    });
}

/// Makes the calling thread an entity until it ends: a plain thread, whose wakes carry its virtual time.
/// Returns its account, if one was free.
pub fn register() -> Option<&'static Account> {
    with(|thread| {
        let account = thread.account(clock::now());
        thread.set_role(Role::Entity);
        account
    })
}

/// The virtual time of whoever runs on the calling thread; V when nobody does.
#[inline]
pub fn virtual_at(now: Real) -> Virtual {
    entity_at(now).unwrap_or_else(|| LEDGER.virtual_now(now))
}

/// The virtual time of the entity that runs on the calling thread, in whose name it acts. `None` when it acts for the world
/// outside: a timer or a socket.
#[inline]
pub fn entity_at(now: Real) -> Option<Virtual> {
    with(|thread| thread.entity_at(now))
}

/// The entity that runs on the calling thread has woken a task. If it was one that had just completed, that was its last act: whoever
/// joined it. What comes next on this thread is not its doing.
pub fn acted() {
    with(|thread| {
        if thread.role.get() == Role::Completed {
            thread.set_role(Role::Outside);
        }
    });
}

/// The task that the calling thread polls has left what `wait` is the wait of: if it parks now, it waits there.
#[inline]
pub fn wait_begins(wait: &Target) {
    if is_target(wait) {
        with(|thread| thread.waits.set(true));
    }
}

/// The task is back in what `wait` is the wait of, or has closed it. Returns how the task's wait ended with this poll, where that
/// is known.
#[inline]
pub fn wait_ends(wait: &Target) -> Option<Ended> {
    with(|thread| {
        if is_target(wait) {
            thread.waits.set(false);
        }
        thread.ended.get()
    })
}

/// Pauses for as long as the calling thread owes delay, unless it is inside the target or has no account.
///
/// While plain threads are sampled, the place of the call is also one that what they do next is known by.
#[inline]
#[track_caller]
pub fn pay() {
    let caller = Location::caller();
    with(|thread| {
        if !thread.owes_nothing() {
            thread.pay_debt();
        }
        thread.acted_at(ptr::from_ref(caller).addr());
    });
}

/// The calling thread has done one thing and goes on with the next, in the same poll: if it is an entity it pays what it owes.
///
/// What it does next may be seen by others without a wake: it puts a message into the channel of a task that is busy, or unlocks a lock that
/// nobody waits for yet. Without this an actor found the questions of its clients in its channel before they were asked, and waited for
/// others in their place: its speedup by 75 % would take 63 % off the median latency, said the prediction, where it takes 79 % (with this: 77 %).
#[inline]
pub fn goes_on() {
    with(|thread| {
        if thread.role.get() == Role::Entity && !thread.owes_nothing() {
            thread.pay_debt();
        }
    });
}

/// Who is about to wake a task.
#[derive(Clone, Copy, Debug)]
pub struct Acts {
    /// When.
    pub at: Real,
    /// The virtual time of the entity that runs on the calling thread, in whose name it acts. `None` when it acts for the world outside.
    pub entity: Option<Virtual>,
    /// This is its last act: [`acted`] is to be called after it.
    pub last: bool,
}

/// The calling thread is about to wake a task. If it is an entity it first pays what it owes: what it does sets more going than a wake
/// carries a virtual time to. A second task woken in one poll makes tokio hand the first to another worker, which then runs it ahead of its
/// time.
#[inline]
pub fn act() -> Acts {
    with(|thread| {
        let role = thread.role.get();
        if role == Role::Entity && !thread.owes_nothing() {
            thread.pay_debt();
        }
        let at = clock::now();
        Acts { at, entity: thread.entity_at(at), last: role == Role::Completed }
    })
}

/// For the park hook of a worker: it is idle from now on. `watches` says whether it is the one that waits in the driver.
pub fn parked(watches: bool) {
    with(|thread| {
        let now = clock::now();
        thread.hooked.set(true);
        thread.watches.set(watches);
        thread.set_role(Role::Outside);
        thread.busy_until.set(Some(now));
        thread.parked.set(Some(now));
    });
    defer::worker_parked();
}

/// Since when the calling thread is idle, between the two hooks of a worker.
pub fn parked_since() -> Option<Real> {
    THREAD.with(|thread| thread.parked.get())
}

/// Whether the calling thread is a worker with something to do: what it wakes between two polls it has found in the driver, in passing, or the runtime
/// has put off.
pub fn is_busy_worker() -> bool {
    THREAD.with(|thread| thread.hooked.get() && thread.parked.get().is_none())
}

/// For the unpark hook of a worker: it was idle until now.
pub fn unparked() {
    with(|thread| {
        let now = clock::now();
        if let Some(since) = thread.parked.take() {
            if thread.watches.get() {
                LOOKS.slept(since, now);
            }
            defer::worker_unparked(since, now);
        }
        if let Some(since) = thread.busy_until.take()
            && let Some(account) = thread.account(now)
        {
            thread.idled(account, now - since, now);
        }
    });
}

/// When that came from the world outside which the calling thread noticed at `now`, and which woke a task that waits since `waits`, as far as
/// that is known; `typical` are the waits of its kind: `now`, unless this is a worker that had not looked for a while. While nothing is
/// delayed it makes no difference, and is `now`.
#[inline]
pub fn came(now: Real, waits: Option<Real>, typical: &Typical) -> Real {
    if LEDGER.speedup() == Speedup::ZERO { now } else { came_before(now, waits, typical) }
}

#[cold]
#[inline(never)]
fn came_before(now: Real, waits: Option<Real>, typical: &Typical) -> Real {
    let came = with(|thread| {
        if !thread.hooked.get() {
            return Came { at: now, at_once: true };
        }
        LOOKS.came(&thread.look, now, thread.parked.get(), waits, typical)
    });
    if let Some(waits) = waits.filter(|_| came.at_once) {
        typical.count(now - waits);
    }
    came.at
}

/// For a thread of the blocking pool: it is no worker now. If it was one (until a task blocked it in place), no hook has told since when it
/// was idle: it owes nothing.
pub fn in_pool() {
    with(|thread| {
        let now = clock::now();
        if thread.hooked.replace(false)
            && let Some(account) = thread.account(now)
        {
            thread.idled(account, now - Real(0), now);
        }
    });
}

/// A worker was handed a task that must not run yet, and has given it back: it is idle until it has something else to run.
pub fn handed_back() {
    with(|thread| {
        let now = clock::now();
        if let Some(since) = thread.busy_until.replace(Some(now)) {
            // It has looked into the driver since, or another one is there.
            if thread.hooked.get() {
                LOOKS.slept(since, now);
            }
            if let Some(account) = thread.account(now) {
                thread.idled(account, now - since, now);
            }
        }
    });
    defer::release_due();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_busy_worker_finds_came_before_it_looked() {
        std::thread::spawn(|| {
            let (now, typical) = (clock::now(), Typical::default());
            assert_eq!(came_before(now, None, &typical), now, "no worker");
            parked(true);
            std::thread::sleep(std::time::Duration::from_millis(1));
            unparked();
            let waits = clock::now();
            std::thread::sleep(std::time::Duration::from_millis(1));
            let now = clock::now();
            let came = came_before(now, Some(waits), &typical);
            assert!(waits <= came && came < now, "{waits:?} {came:?} {now:?}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_wait_is_counted_only_if_its_end_is_known() {
        let most = |typical: &Typical, ms| typical.between(Nanos::ZERO, Nanos::from_millis(ms));
        std::thread::spawn(move || {
            let (now, typical) = (clock::now(), Typical::default());
            let waits = Real(now.0 - Nanos::from_millis(7).0);
            assert_eq!(came_before(now, Some(waits), &typical), now, "no worker");
            assert_eq!(most(&typical, 100), Nanos::from_millis(7));

            // A busy worker. All waits that are known are longer: it came no earlier than now, and that is a guess.
            parked(true);
            unparked();
            let (now, typical) = (clock::now(), Typical::default());
            typical.count(Nanos::from_millis(900));
            let waits = Real(now.0 - Nanos::from_millis(7).0);
            assert_eq!(came_before(now, Some(waits), &typical), now);
            assert_eq!(most(&typical, 100), Nanos::from_millis(100), "only the first is known");
        })
        .join()
        .unwrap();
    }
}
