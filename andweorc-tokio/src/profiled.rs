//! The profiled future.

use crate::deferred;
use crate::wait_hint::{InProcess, Listen};
use crate::wake::{WakeCell, clones, is_early, keep};
use andweorc_core::hooks::engine::{Parking, PollBegun, PollEnded};
use andweorc_core::hooks::symbols;
use andweorc_core::hooks::target::{Target, TaskTargets, target};
use andweorc_core::hooks::thread::{self, CaughtUp, Poll as PollScope, Polled, ledger, model};
use andweorc_core::hooks::time::{Real, Virtual};
use andweorc_core::hooks::wait::Ended;
use andweorc_core::hooks::{clock, enabled, unstarted};
use andweorc_profile::TargetKind;
use andweorc_profile::plain;
use pin_project_lite::pin_project;
use std::any;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::panic::Location;
use std::pin::Pin;
use std::ptr;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::task::{Context, Poll, Waker, ready};

pin_project! {
    /// A future that andweorc sees: a kind of task, with its own clock and its own waker. See
    /// [`Profile::profiled`].
    ///
    /// # Panics
    ///
    /// When polled again after it completed.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Profiled<F> {
        // `None` once completed, so that the future is dropped inside its own last poll.
        #[pin]
        future: Option<F>,
        stage: Stage,
    }

    impl<F> PinnedDrop for Profiled<F> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            let mut future = this.future;
            if future.is_none() {
                return;
            }
            let now = clock::now();
            let (targets, at) = match &*this.stage {
                Stage::Polled(state) => (state.cell.targets(), state.parking.at),
                Stage::New { kind, born } if enabled() => (kind.targets(), virtual_birth(*born, now)),
                Stage::Rested(targets) if enabled() => (*targets, ledger().virtual_now(now)),
                Stage::New { .. } | Stage::Rested(_) => return,
            };
            // What a dropped task wakes (a sender's receiver, say) it wakes in its own name, and so
            // it does who joins it.
            let mut scope = PollScope::begin(targets.task, at, None, now);
            future.set(None);
            let now = clock::now();
            scope.end(true, now);
            if let Stage::Polled(state) = this.stage {
                state.cell.end_wait(now);
                state.cell.clock.let_go();
            }
        }
    }
}

/// Kind that a task is counted as.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Its spawn site.
    Site(Site),
    /// Its name.
    Name(Cow<'static, str>),
}

/// How many kinds a thread remembers.
const MET: usize = 16;

andweorc_core::hooks::plain_thread_local! {
    /// The kinds that the calling thread has met lately, by where they are.
    static LATELY: [Cell<Option<(Place, &'static TaskTargets)>>; MET] =
        [const { Cell::new(None) }; MET];
}

/// Where a spawn site or a name is for good: its address, and that of the site's function, or one
/// more than the length of the name, which no function's address is.
type Place = (usize, usize);

/// Where tasks are spawned, and of which function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    at: &'static Location<'static>,
    /// Tells what they run. As small as can be: each task has one until it is polled.
    function: fn() -> Option<String>,
}

impl Site {
    /// The caller's, of tasks that run a future or a function of this type.
    #[track_caller]
    pub(crate) fn of<F>() -> Site {
        Site { at: Location::caller(), function: || symbols::of_task(any::type_name::<F>()) }
    }

    /// Two sites are one if this is equal. A function may have several addresses.
    fn key(&self) -> (&'static Location<'static>, Option<String>) {
        (self.at, (self.function)())
    }
}

impl PartialEq for Site {
    fn eq(&self, other: &Site) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Site {}

impl Hash for Site {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Kind {
    /// `None` of a name that may be forgotten.
    fn place(&self) -> Option<Place> {
        match self {
            Kind::Site(site) => Some((ptr::from_ref(site.at).addr(), site.function as usize)),
            Kind::Name(Cow::Borrowed(name)) => Some((name.as_ptr().addr(), name.len() + 1)),
            Kind::Name(Cow::Owned(_)) => None,
        }
    }

    /// The targets of this kind, called by the task's name, by the function that it runs, or by
    /// `file:line` of its spawn site. A thread that goes on to spawn tasks of a few kinds takes no
    /// lock, which all threads would write to, and hashes no path.
    pub(crate) fn targets(&self) -> &'static TaskTargets {
        let Some(place) = self.place() else { return self.known() };
        LATELY.with(|lately| {
            // Sites are three words long.
            let met = &lately[place.0 / 8 % MET];
            match met.get() {
                Some((at, targets)) if at == place => targets,
                _ => {
                    let targets = self.known();
                    met.set(Some((place, targets)));
                    targets
                }
            }
        })
    }

    /// The targets of this kind, as all threads know them.
    #[cold]
    fn known(&self) -> &'static TaskTargets {
        static KNOWN: LazyLock<RwLock<HashMap<Kind, &'static TaskTargets>>> =
            LazyLock::new(RwLock::default);
        if let Kind::Name(name) = self
            && let Cow::Owned(cut) = plain::cut_name(name)
        {
            return Kind::Name(Cow::Owned(cut)).known();
        }
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(self).copied();
        known.unwrap_or_else(|| {
            let new = |kind| match self {
                Kind::Site(Site { at, function }) => {
                    let name = function().unwrap_or_else(|| format!("{}:{}", at.file(), at.line()));
                    target(kind, &name, Some(at.file()), Some(at.line()))
                }
                Kind::Name(name) => target(kind, name, None, None),
            };
            let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
            *known.entry(self.clone()).or_insert_with(|| {
                let targets = TaskTargets::new(new(TargetKind::Task), new(TargetKind::Wait));
                // As the targets themselves: there are as many as the program has kinds of tasks.
                Box::leak(Box::new(targets))
            })
        })
    }
}

/// Stage of a profiled future, with what it keeps. Each task has one for as long as it lives.
enum Stage {
    /// Not polled yet, or not while andweorc was on. `born` is [`Virtual::NEVER`] if andweorc was
    /// off at the birth too.
    New { kind: Kind, born: Virtual },
    /// Polled while andweorc was on.
    Polled(State),
    /// Polled while andweorc was on, and since then while it was off: what was known of the future
    /// is out of date.
    Rested(&'static TaskTargets),
}

impl Stage {
    /// Returns what is kept between polls, the next of which wakes `outer`.
    #[inline]
    fn polled(&mut self, outer: &Waker) -> &mut State {
        if !matches!(self, Stage::Polled(_)) {
            self.begins(outer);
        }
        match self {
            Stage::Polled(state) => state,
            Stage::New { .. } | Stage::Rested(_) => unreachable!("it has just become polled"),
        }
    }

    /// Enters [`Stage::Polled`]: the future is polled for the first time since andweorc is on.
    #[cold]
    #[inline(never)]
    fn begins(&mut self, outer: &Waker) {
        let (targets, born) = match self {
            Stage::New { kind, born } => (kind.targets(), *born),
            Stage::Rested(targets) => (*targets, Virtual::NEVER),
            Stage::Polled(_) => return,
        };
        *self = Stage::Polled(State::new(targets, born, outer));
    }

    /// Enters [`Stage::Rested`] from [`Stage::Polled`]: the future is polled now while andweorc is
    /// off, and from here on nobody knows when it is woken.
    #[cold]
    #[inline(never)]
    fn rests(&mut self) {
        if let Stage::Polled(state) = self {
            *self = Stage::Rested(state.cell.targets());
        }
    }
}

/// State of a profiled future between polls.
struct State {
    parking: Parking,
    cell: Arc<WakeCell>,
}

impl<F> Profiled<F> {
    pub(crate) fn new(future: F, kind: Kind) -> Profiled<F> {
        let born = if enabled() {
            thread::spawns(clock::now())
        } else {
            unstarted::would_be_profiled();
            Virtual::NEVER
        };
        Profiled { future: Some(future), stage: Stage::New { kind, born } }
    }
}

/// When a task begins that was born at `born`: now, if andweorc was off then.
fn virtual_birth(born: Virtual, now: Real) -> Virtual {
    if born == Virtual::NEVER { ledger().virtual_now(now) } else { born }
}

impl State {
    fn new(targets: &'static TaskTargets, born: Virtual, outer: &Waker) -> State {
        let now = clock::now();
        let at = virtual_birth(born, now);
        let cell = WakeCell::new(keep(outer), targets, at.delay_at(now), at);
        State { parking: Parking::born(at), cell }
    }

    /// Goes on in another task, whose waker is `outer`; or in the same one, whose waker is not
    /// known to be the same (one and the same table of functions may lie at several addresses).
    #[cold]
    fn move_to(&mut self, outer: &Waker) {
        let Parking { at, since } = self.parking;
        let taken = if since == Real::NEVER { clock::now() } else { since };
        let (targets, ready) = (self.cell.targets(), self.cell.take_ready(at));
        let woken = self.cell.clock.take_woken();
        self.cell = WakeCell::new(keep(outer), targets, at.delay_at(taken), ready);
        if let Some((at, by)) = woken {
            self.cell.clock.set_woken(at, by);
        }
    }

    /// Begins a poll. `None` when it comes too early, and is deferred.
    #[inline(never)]
    fn begin(&mut self, outer: &Waker) -> Option<Begun> {
        // Always the same, unless the future moved to another task.
        if !self.cell.will_wake(outer) {
            self.move_to(outer);
        }
        let State { parking, cell } = self;
        let now = clock::now();
        cell.end_wait(now);
        let ready = cell.take_ready(parking.at);
        let woken = ready != Virtual::NEVER;
        // Polled without a wake of its own (by `select!`, say), it goes on from where it parked.
        let from = if woken { ready } else { parking.at };
        let caught_up = PollScope::caught_up(from, now);
        if caught_up.is_none() && woken && defers(cell, ready, now) {
            return None;
        }
        let mut begun = Begun::new(cell, parking, caught_up, from, woken, now);
        begun.watch();
        Some(begun)
    }

    /// Ends it. Only borrowed, since it would be copied to be moved in here.
    #[inline(never)]
    fn end(&mut self, begun: &mut Begun, completed: bool) {
        begun.end(&self.cell, &mut self.parking, completed);
        begun.scope.catch_up();
    }
}

/// A poll under way.
pub(crate) struct Begun {
    scope: PollScope,
    listen: Listen,
    pub(crate) poll: PollBegun,
    /// How many wakers its thread had cloned when it began.
    clones: u32,
}

impl Begun {
    /// Begins a poll at `now` of the task of `cell`, `woken` for it or not, which goes on `from`
    /// there in virtual time.
    #[inline]
    pub(crate) fn new(
        cell: &WakeCell,
        parking: &Parking,
        caught_up: Option<CaughtUp>,
        from: Virtual,
        woken: bool,
        now: Real,
    ) -> Begun {
        let targets = cell.targets();
        let ended = match parking.since {
            Real::NEVER => None,
            since => wait_ended(targets.wait, since, cell, now),
        };
        let polled = Polled::of(cell, parking.since == Real::NEVER);
        let times = (parking.at, from);
        let scope = PollScope::begin_on(caught_up, targets.task, polled, times, ended, now);
        let poll = cell.clock.poll_begun(scope.local_delay(), woken);
        Begun { scope, listen: Listen::begin(), poll, clones: clones() }
    }

    /// Lets it be seen whether the poll becomes long.
    #[inline]
    pub(crate) fn watch(&mut self) {
        self.scope.watch();
    }

    /// Ends the poll, but for [catching up](PollScope::catch_up), which follows when this is
    /// dropped.
    #[inline]
    pub(crate) fn end(&mut self, cell: &WakeCell, parking: &mut Parking, completed: bool) {
        let hint = self.listen.end();
        let waits = !completed && self.scope.waits(cell.targets().wait);
        let now = clock::now();
        let at = self.scope.end(completed, now).at;
        if completed {
            cell.clock.let_go();
            return;
        }
        deferred::marks(&cell.targets().yields);
        let (lasted, began_wait) = (self.scope.lasted(), clones() != self.clones);
        let ended = PollEnded { at, lasted, began_wait, hint };
        cell.clock.poll_ended(model(), self.poll, parking, ended, now);
        if waits {
            begin_wait(cell, now);
        }
    }
}

/// Defers a poll that comes too early, and says whether it does. Out of the way of polls that
/// nothing holds.
#[cold]
#[inline(never)]
pub(crate) fn defers(cell: &Arc<WakeCell>, ready: Virtual, now: Real) -> bool {
    let early = is_early(ready, now) && cell.may_be_deferred();
    if early {
        deferred::ends();
        cell.defer(ready);
    }
    early
}

/// Out of the way of polls while no wait is the target.
#[cold]
#[inline(never)]
fn begin_wait(cell: &WakeCell, now: Real) {
    cell.clock.begin_wait(model(), now);
}

/// How the wait of a task that parked at `parked` ended, if a wake did, now that it is polled;
/// counts it.
#[inline]
pub(crate) fn wait_ended(wait: &Target, parked: Real, cell: &WakeCell, now: Real) -> Option<Ended> {
    let (woken, by) = cell.clock.take_woken()?;
    // The clocks of two threads differ by some ns: to this one, `now` may be before the other has
    // parked it.
    let ended = Ended::new(parked, woken.clamp(parked, now.max(parked)), by);
    wait.record_wait(parked, Some(ended), now);
    Some(ended)
}

impl<F: Future> Future for Profiled<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if enabled() || matches!(this.stage, Stage::Polled(_)) {
            return poll_seen(this.future, this.stage, cx);
        }
        poll_unseen(this.future, cx)
    }
}

/// Polls a future, and drops it if that was its last poll.
#[inline]
fn poll_unseen<F: Future>(
    mut future: Pin<&mut Option<F>>,
    cx: &mut Context<'_>,
) -> Poll<F::Output> {
    let inner = future.as_mut().as_pin_mut().expect("`Profiled` is not polled after completion");
    let output = ready!(inner.poll(cx));
    future.set(None);
    Poll::Ready(output)
}

/// Polls a future, or defers it, while andweorc is on, and the first time after that. Not inlined:
/// what it keeps in registers would be saved in each poll while andweorc is off, too. What does not
/// depend on the future is not inlined here either: it is there once, for tasks of all kinds.
#[inline(never)]
fn poll_seen<F: Future>(
    future: Pin<&mut Option<F>>,
    stage: &mut Stage,
    cx: &mut Context<'_>,
) -> Poll<F::Output> {
    if !enabled() {
        stage.rests();
        return poll_unseen(future, cx);
    }
    let outer = cx.waker();
    let state = stage.polled(outer);
    // In its place, since it would be copied to be taken out.
    let mut begun = state.begin(outer);
    let Some(begun) = &mut begun else { return Poll::Pending };
    let waker = state.cell.waker();
    let result = poll_unseen(future, &mut Context::from_waker(&waker));
    state.end(begun, result.is_ready());
    result
}

impl<F> fmt::Debug for Profiled<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind: &dyn fmt::Debug = match &self.stage {
            Stage::New { kind, .. } => kind,
            Stage::Polled(state) => &state.cell.targets().task.name(),
            Stage::Rested(targets) => &targets.task.name(),
        };
        f.debug_struct("Profiled")
            .field("kind", kind)
            .field("completed", &self.future.is_none())
            .finish_non_exhaustive()
    }
}

/// Profiles any future.
pub trait Profile: Future + Sized {
    /// Wraps the future so that andweorc sees its polls, its waits and who wakes it, as a target of
    /// kind task with this name. For futures that run inside tasks which nobody can spawn with
    /// [`spawn`](crate::spawn()), and for parts of a task.
    ///
    /// ```
    /// use andweorc_tokio::Profile;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # runtime.block_on(async {
    /// assert_eq!(async { 1 + 1 }.profiled("sum").await, 2);
    /// # });
    /// ```
    fn profiled(self, name: impl Into<Cow<'static, str>>) -> Profiled<Self> {
        Profiled::new(self, Kind::Name(name.into()))
    }

    /// Says that what this future waits for is in this program, although the wake will come from a
    /// socket: a socket, a pipe or a Unix socket of which the program has the other end too, as
    /// when a test or a bench is its own client.
    ///
    /// andweorc can't see where a socket leads, and takes it for the world outside, which does not
    /// get faster when a part of the program does: in an experiment such a wait is stretched. That
    /// is right for a client elsewhere, and bends the result when the client is a profiled task
    /// that is delayed already. Mark the futures at both ends, inside of what is profiled, and as
    /// narrowly as possible, since timers in a marked future are not stretched either. Parts of it
    /// that are [profiled](Profile::profiled) themselves are not concerned.
    ///
    /// A client in this program whose task is not profiled, or that is on threads of its own, is
    /// not delayed. It is as a client elsewhere: mark nothing.
    ///
    /// ```
    /// use andweorc_tokio::Profile;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    /// use tokio::net::TcpStream;
    ///
    /// /// Spawned by `andweorc::spawn`, as is the client in this program.
    /// async fn serve(mut socket: TcpStream) -> std::io::Result<()> {
    ///     loop {
    ///         let request = socket.read_u32().in_process().await?;
    ///         socket.write_u32(request + 1).in_process().await?;
    ///     }
    /// }
    /// # drop(serve);
    /// ```
    fn in_process(self) -> InProcess<Self> {
        InProcess::new(self)
    }
}

impl<F: Future> Profile for F {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_kind_has_its_own_targets_whoever_else_a_thread_has_met() {
        // More than a thread remembers, and some that begin at one place.
        // For good, where the leak check finds them.
        static NAMES: LazyLock<Vec<String>> =
            LazyLock::new(|| (0..4 * MET).map(|n| format!("kind met {n}")).collect());
        let names = &**NAMES;
        let wholes = names.iter().map(|name| &name[..]);
        let kinds: Vec<&'static str> = wholes.clone().chain(wholes.map(|it| &it[..8])).collect();
        let told = move || -> Vec<&'static TaskTargets> {
            let all = [(); 2].into_iter().flat_map(|()| &kinds);
            all.map(|&name| {
                let targets = Kind::Name(Cow::Borrowed(name)).targets();
                assert_eq!((targets.task.name(), targets.wait.name()), (name, name));
                let owned = Kind::Name(Cow::Owned(name.to_owned()));
                assert!(ptr::eq(targets, owned.targets()));
                targets
            })
            .collect()
        };
        let here = told();
        let there = thread::spawn(told).join().unwrap();
        assert!(here.iter().zip(there).all(|(here, there)| ptr::eq(*here, there)));
    }
}
