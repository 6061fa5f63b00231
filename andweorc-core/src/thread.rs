//! The process-wide ledger, and what the calling thread is to it.
//!
//! A thread opens its [`Account`] by itself, the first time that it polls a profiled task or hits a target, and closes
//! it when it ends. On an async worker the thread is an entity only while it polls: what wakes a task between polls is the driver,
//! that is, the world outside. A plain thread is an entity all the time once it has [registered](register).

use crate::clock;
use crate::defer;
use crate::fork;
use crate::ledger::{Account, Ledger, Parked};
use crate::pause;
use crate::target::Target;
use crate::time::{Nanos, Real, Virtual};
use crate::wait::Ended;
use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The ledger of this process.
#[cfg(not(loom))]
pub static LEDGER: Ledger = Ledger::new();

#[cfg(loom)]
loom::lazy_static! {
    /// The ledger of this run of the model.
    pub static ref LEDGER: Ledger = Ledger::new();
}

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Id of the target of the running experiment; 0 when there is none.
static TARGET: AtomicU32 = AtomicU32::new(0);

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
    ENABLED.load(Ordering::Relaxed)
}

/// Switches andweorc on. It stays on for the life of the process: tasks that saw it on keep their wrapped wakers.
///
/// Does nothing in a child of [fork](mod@crate::fork).
pub fn enable() {
    if fork::forked() {
        return;
    }
    fork::watch();
    if !ENABLED.swap(true, Ordering::SeqCst) {
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
    ENABLED.store(false, Ordering::SeqCst);
    TARGET.store(0, Ordering::SeqCst);
    LEDGER.abandon();
}

/// Chooses the target of the running experiment. The ledger must be between experiments.
pub(crate) fn set_target(target: Option<&Target>) {
    TARGET.store(target.map_or(0, Target::id), Ordering::SeqCst);
}

/// How many threads found no free account and so are not delayed.
pub(crate) fn without_account() -> u64 {
    WITHOUT_ACCOUNT.load(Ordering::SeqCst)
}

/// Whether this is the target of the running experiment.
#[inline]
pub fn is_target(target: &Target) -> bool {
    // Relaxed: a thread that sees a new target later enters it later, and the ledger credits by its own experiment.
    TARGET.load(Ordering::Relaxed) == target.id()
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
struct Thread {
    account: Cell<Option<&'static Account>>,
    /// It asked for an account, whether or not it got one.
    asked: Cell<bool>,
    role: Cell<Role>,
    /// How many times the target was entered and not left.
    depth: Cell<u32>,
    /// CPU time at the outermost entry.
    cpu: Cell<Nanos>,
    /// Time spent in targets inside the innermost one that is open.
    inner: Cell<Nanos>,
    /// Whether park hooks tell when this thread is idle.
    hooked: Cell<bool>,
    /// When it was last busy, where no hooks tell, or when it parked.
    busy_until: Cell<Option<Real>>,
    /// When it parked, between the park hooks.
    parked: Cell<Option<Real>>,
    /// The account is being written: a signal handler must leave it alone.
    writing: Cell<bool>,
    tid: Cell<i32>,
    /// How the wait of the task that is polled ended with this poll, where that is known.
    ended: Cell<Option<Ended>>,
    /// The wait that is the target began in this poll: if the task parks now, it is in it.
    waits: Cell<bool>,
}

/// Closes the account when the thread ends.
struct Close;

impl Drop for Close {
    fn drop(&mut self) {
        with(|thread| {
            if let Some(since) = thread.parked.take() {
                defer::worker_unparked(since, clock::now());
            }
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
            cpu: Cell::new(Nanos::ZERO),
            inner: Cell::new(Nanos::ZERO),
            hooked: Cell::new(false),
            busy_until: Cell::new(None),
            parked: Cell::new(None),
            writing: Cell::new(false),
            tid: Cell::new(0),
            ended: Cell::new(None),
            waits: Cell::new(false),
        }
    };
    static CLOSE: Close = const { Close };
}

impl Thread {
    fn account(&self, now: Real) -> Option<&'static Account> {
        if !self.asked.replace(true) {
            // A thread that is being torn down gets no account: nobody would close it.
            let open = || CLOSE.try_with(|_| LEDGER.open(now)).ok().flatten();
            self.account.set(open());
            self.tid.set(nix::unistd::gettid().as_raw());
            if self.account.get().is_none() {
                WITHOUT_ACCOUNT.fetch_add(1, Ordering::SeqCst);
            }
        }
        self.account.get()
    }

    fn set_role(&self, role: Role) {
        self.role.set(role);
        if let Some(account) = self.account.get() {
            account.set_runs_as(if role == Role::Entity { self.tid.get() } else { 0 });
        }
    }

    fn pay(&self) {
        if self.depth.get() > 0 {
            return;
        }
        let mut now = clock::now();
        let Some(account) = self.account(now) else { return };
        for _ in 0..ROUNDS {
            let debt = LEDGER.debt(account, now);
            if debt < LEAST_PAUSE {
                break;
            }
            let begun = now;
            now = pause::until(begun + debt);
            LEDGER.took(account, (now - begun).min(debt + MOST_OVERSHOOT), now);
        }
    }

    fn enter(&self, now: Real) {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        if depth == 0
            && let Some(account) = self.account(now)
        {
            self.cpu.set(clock::thread_cpu());
            LEDGER.enter(account, now);
        }
    }

    fn exit(&self, now: Real) {
        let depth = self.depth.get();
        self.depth.set(depth.saturating_sub(1));
        if depth == 1
            && let Some(account) = self.account(now)
        {
            LEDGER.exit(account, now, clock::thread_cpu() - self.cpu.get());
        }
    }
}

/// Runs `f` with the calling thread's state, undisturbed by [`pay_in_signal_handler`].
fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
    THREAD.with(|thread| {
        let before = thread.writing.replace(true);
        let result = f(thread);
        thread.writing.set(before);
        result
    })
}

/// Pays what the calling thread owes, from a signal handler that interrupted it anywhere. Does nothing when the handler
/// interrupted this module, or when the thread is no entity.
///
/// Async-signal-safe: reads thread-local cells without destructors, uses atomics, reads clocks and sleeps.
pub(crate) fn pay_in_signal_handler() {
    THREAD.with(|thread| {
        if thread.role.get() == Role::Entity
            && thread.account.get().is_some()
            && !thread.writing.replace(true)
        {
            thread.pay();
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
pub fn virtual_at(now: Real) -> Virtual {
    entity_at(now).unwrap_or_else(|| LEDGER.virtual_now(now))
}

/// The virtual time of the entity that runs on the calling thread, in whose name it acts. `None` when it acts for the world
/// outside: a timer or a socket.
pub fn entity_at(now: Real) -> Option<Virtual> {
    with(|thread| match thread.role.get() {
        Role::Outside => None,
        Role::Entity | Role::Completed => {
            thread.account(now).map(|account| LEDGER.virtual_of(account, now))
        }
    })
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

/// The calling thread enters `target`. The ledger is told only if `target` is that of the running experiment. Every call is
/// followed by one of [`exit`] with the answer, in reverse order, or else by one of [`exit_under`].
#[must_use = "hand the answer to `exit`"]
pub fn enter(target: &Target, now: Real) -> Entered {
    let credited = is_target(target);
    with(|thread| {
        if credited {
            thread.enter(now);
        }
        Entered { credited, at: now, inner: thread.inner.replace(Nanos::ZERO) }
    })
}

/// The calling thread leaves what it entered.
pub fn exit(entered: Entered, now: Real) -> Stay {
    with(|thread| {
        if entered.credited {
            thread.exit(now);
        }
        let busy = now - entered.at;
        let own = busy - thread.inner.replace(entered.inner + busy);
        Stay { busy, own }
    })
}

/// The calling thread leaves what it entered before `above`, the next stay that goes on.
pub fn exit_under(entered: Entered, above: &mut Entered, now: Real) -> Stay {
    with(|thread| {
        if entered.credited {
            thread.exit(now);
        }
    });
    let alone = above.at - entered.at;
    let own = alone - above.inner;
    // The time that both cover is in the busy time of `above` when that is left.
    above.inner = entered.inner + alone;
    Stay { busy: now - entered.at, own }
}

/// A stay in a target that goes on.
#[derive(Clone, Copy, Debug)]
pub struct Entered {
    credited: bool,
    at: Real,
    /// Time spent so far in targets inside the one around this.
    inner: Nanos,
}

impl Entered {
    /// When it began.
    pub fn at(&self) -> Real {
        self.at
    }
}

/// A stay in a target that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// How long it was.
    pub busy: Nanos,
    /// How much of it was not spent in other targets inside.
    pub own: Nanos,
}

/// The task that the calling thread polls has left what `wait` is the wait of: if it parks now, it waits there.
pub fn wait_begins(wait: &Target) {
    if is_target(wait) {
        with(|thread| thread.waits.set(true));
    }
}

/// The task is back in what `wait` is the wait of, or has closed it. Returns how the task's wait ended with this poll, where that
/// is known.
pub fn wait_ends(wait: &Target) -> Option<Ended> {
    with(|thread| {
        if is_target(wait) {
            thread.waits.set(false);
        }
        thread.ended.get()
    })
}

/// Pauses for as long as the calling thread owes delay. Does nothing inside the target or when the thread has no account.
pub fn pay() {
    with(Thread::pay);
}

/// Pays what the calling thread owes, if it is an entity, before it acts on others: what it does sets more going than a wake carries a
/// virtual time to. A second task woken in one poll makes tokio hand the first to another worker, which then runs it ahead of its time.
pub fn pay_before_acting() {
    with(|thread| {
        if thread.role.get() == Role::Entity {
            thread.pay();
        }
    });
}

/// For the park hook of a worker: it is idle from now on.
pub fn parked() {
    with(|thread| {
        let now = clock::now();
        thread.hooked.set(true);
        thread.set_role(Role::Outside);
        thread.busy_until.set(Some(now));
        thread.parked.set(Some(now));
    });
    defer::worker_parked();
}

/// For the unpark hook of a worker: it was idle until now.
pub fn unparked() {
    with(|thread| {
        let now = clock::now();
        if let Some(since) = thread.parked.take() {
            defer::worker_unparked(since, now);
        }
        if let Some(since) = thread.busy_until.take()
            && let Some(account) = thread.account(now)
        {
            LEDGER.idle(account, now - since, now);
        }
    });
}

/// For a thread of the blocking pool: it is no worker now. If it was one (until a task blocked it in place), no hook has told since when it
/// was idle: it owes nothing.
pub fn in_pool() {
    with(|thread| {
        let now = clock::now();
        if thread.hooked.replace(false)
            && let Some(account) = thread.account(now)
        {
            LEDGER.idle(account, now - Real(0), now);
        }
    });
}

/// Runs `f`, which blocks the calling thread until another one acts (a lock, a channel, a join). What was owed and passed
/// meanwhile is not paid again.
pub fn blocked<R>(f: impl FnOnce() -> R) -> R {
    if !enabled() {
        return f();
    }
    let since = clock::now();
    let result = f();
    let now = clock::now();
    with(|thread| {
        if let Some(account) = thread.account(now) {
            LEDGER.idle(account, now - since, now);
        }
    });
    result
}

/// A worker was handed a task that must not run yet, and has given it back: it is idle until it has something else to run.
pub fn handed_back() {
    with(|thread| {
        let now = clock::now();
        if let Some(since) = thread.busy_until.replace(Some(now))
            && let Some(account) = thread.account(now)
        {
            LEDGER.idle(account, now - since, now);
        }
    });
    defer::release_due();
}

/// A poll of a task on the calling thread: while it lives the thread is an entity.
#[derive(Debug)]
pub struct Poll {
    before: Role,
    entered: Entered,
    target: &'static Target,
    began: Real,
    open: bool,
    /// Of the poll around this one.
    outer_ended: Option<Ended>,
    outer_waits: bool,
}

impl Poll {
    /// Pays what the thread owes, then begins a poll, whose time is that of `target`, of a task that was ready at `ready` and whose
    /// wait ended as `ended` says.
    pub fn begin(target: &'static Target, ready: Virtual, ended: Option<Ended>) -> Poll {
        with(|thread| {
            let now = clock::now();
            let Some(account) = thread.account(now) else { return };
            // Without hooks nobody says what a worker did since its last poll; most often it was idle.
            if let Some(since) = thread.busy_until.take() {
                LEDGER.idle(account, now - since, now);
            }
            if thread.depth.get() == 0 {
                LEDGER.join(account, ready, now);
            }
        });
        pay();
        let (before, outer_ended, outer_waits) = with(|thread| {
            let before = thread.role.get();
            thread.set_role(Role::Entity);
            (before, thread.ended.replace(ended), thread.waits.replace(false))
        });
        let began = clock::now();
        let entered = enter(target, began);
        Poll { before, entered, target, began, open: true, outer_ended, outer_waits }
    }

    /// The delay that the task has taken as it runs now.
    pub fn taken(&self) -> Nanos {
        virtual_at(self.began).delay_at(self.began)
    }

    /// Whether the task, if it parks now, is in the wait that is the target: one that began in this poll, or `wait`, that of
    /// the task itself.
    pub fn waits(&self, wait: &Target) -> bool {
        with(|thread| {
            let waits = is_target(wait) || thread.waits.get();
            thread.waits.set(waits);
            waits
        })
    }

    /// Ends the poll, before what is owed is paid (when this is dropped). Returns the task's clock as it parks.
    pub fn end(&mut self, completed: bool) -> Parked {
        self.open = false;
        let now = clock::now();
        let Stay { busy, own } = exit(self.entered, now);
        self.target.record(busy, own);
        let at = virtual_at(now);
        with(|thread| {
            thread.ended.set(self.outer_ended);
            // What waits in the poll inside waits in that around it too.
            thread.waits.set(self.outer_waits || thread.waits.get());
            thread.set_role(match self.before {
                Role::Entity => Role::Entity,
                _ if completed => Role::Completed,
                _ => Role::Outside,
            });
        });
        Parked { at, taken: at.delay_at(now) }
    }
}

impl Drop for Poll {
    /// Ends the poll if it was not (a panic), and pays what the thread owes by then.
    fn drop(&mut self) {
        if self.open {
            self.end(true);
        }
        pay();
        defer::release_due();
        with(|thread| {
            if !thread.hooked.get() && self.before != Role::Entity {
                thread.busy_until.set(Some(clock::now()));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::TargetKind;
    use crate::target::target;

    #[test]
    fn own_time_leaves_out_the_targets_inside() {
        let (outer, inner) = (
            target(TargetKind::Span, "outer", None, None),
            target(TargetKind::Span, "inner", None, None),
        );
        let task = enter(outer, Real(0));
        let first = enter(inner, Real(10));
        assert_eq!(exit(first, Real(30)), Stay { busy: Nanos(20), own: Nanos(20) });
        let second = enter(inner, Real(40));
        let nested = enter(inner, Real(45));
        assert_eq!(exit(nested, Real(50)), Stay { busy: Nanos(5), own: Nanos(5) });
        assert_eq!(exit(second, Real(60)), Stay { busy: Nanos(20), own: Nanos(15) });
        assert_eq!(exit(task, Real(100)), Stay { busy: Nanos(100), own: Nanos(60) });
    }

    #[test]
    fn what_is_left_out_of_order_is_timed_until_it_is_left() {
        let target = |name| target(TargetKind::Span, name, None, None);
        let around = enter(target("around"), Real(0));
        let first = enter(target("first"), Real(10));
        let before = enter(target("before"), Real(20));
        assert_eq!(exit(before, Real(25)), Stay { busy: Nanos(5), own: Nanos(5) });
        let mut second = enter(target("second"), Real(40));
        assert_eq!(
            exit_under(first, &mut second, Real(70)),
            Stay { busy: Nanos(60), own: Nanos(25) },
            "its own from 10 to 20 and from 25 to 40",
        );
        let inside = enter(target("inside"), Real(80));
        assert_eq!(exit(inside, Real(83)), Stay { busy: Nanos(3), own: Nanos(3) });
        assert_eq!(exit(second, Real(100)), Stay { busy: Nanos(60), own: Nanos(57) });
        assert_eq!(exit(around, Real(110)), Stay { busy: Nanos(110), own: Nanos(20) });
    }

    #[test]
    fn a_wait_of_the_task_that_is_polled_is_told_to_its_spans() {
        let [task, span] = ["wait told", "wait told inside"]
            .map(|name| target(TargetKind::Wait, name, None, None));
        let ended = Some(Ended { parked: Real(1), woken: Real(2), by: crate::wait::Cause::Task });
        let mut outer = Poll::begin(task, Virtual(0), ended);
        assert_eq!(wait_ends(span), ended);
        let mut inner = Poll::begin(task, Virtual(0), None);
        assert_eq!(wait_ends(span), None);
        wait_begins(span);
        // Neither is the target of an experiment.
        assert!(!inner.waits(span) && !outer.waits(task));
        inner.end(false);
        assert_eq!(wait_ends(span), ended);
        outer.end(false);
        assert_eq!(wait_ends(span), None);
    }

    #[test]
    fn a_thread_is_an_entity_only_while_it_polls() {
        let task = target(TargetKind::Task, "role", None, None);
        std::thread::spawn(move || {
            assert_eq!(entity_at(clock::now()), None);
            let mut poll = Poll::begin(task, Virtual(0), None);
            assert!(entity_at(clock::now()).is_some());
            poll.end(false);
            drop(poll);
            assert_eq!(entity_at(clock::now()), None);
            Poll::begin(task, Virtual(0), None).end(true);
            assert!(entity_at(clock::now()).is_some(), "wakes who joins it");
            parked();
            assert_eq!(entity_at(clock::now()), None);
            register();
            assert!(entity_at(clock::now()).is_some());
        })
        .join()
        .unwrap();
        assert!(task.count() >= 2);
    }
}
