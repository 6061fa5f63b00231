//! The credit of a thread while the target of the experiment is a sampled one.

use super::target_scope::spent;
use super::timeline_cursor::TimelineCursor;
use super::{THREAD, Thread, ledger};
use crate::clock;
use crate::ledger::Account;
use crate::process::asked::Switches;
use crate::process::process;
use crate::sampler::FINE;
use crate::sampler::target_fraction::{self, Credit};
use crate::time::{Nanos, Real, Speedup};
use andweorc_sampling::late;

/// How far ahead a thread is expected to go on in its context: it says so at its samples and
/// whenever it acts, long before.
const AHEAD: Nanos = Nanos::from_millis(2);

/// Experiment that a thread is [clear](Thread::clear) of while it has a share: none.
const NONE: u32 = u32::MAX;

impl Thread {
    /// Credits the thread with the share that its context has of a sampled target, of its time
    /// since the last call. The share of what is to come is told to who reads D meanwhile, as if
    /// the thread were so often in a target that is timed. Returns for how long that took, which is
    /// delay that the thread has taken.
    #[inline]
    pub(super) fn share(&self) -> Nanos {
        let aim = target_fraction::aim();
        if self.is_clear_of(aim) { Nanos::ZERO } else { self.share_of(aim) }
    }

    /// Whether it is known that there is nothing to credit by shares in the experiment `aim`, or
    /// between experiments.
    #[inline]
    pub(super) fn is_clear_of(&self, aim: u32) -> bool {
        self.clear.get() == aim
    }

    #[cold]
    fn share_of(&self, aim: u32) -> Nanos {
        if let (Some(stretch), Some(account)) = (self.stretch(), self.account.get()) {
            return self.share_of_stretch(stretch, account, aim);
        }
        let credit =
            if aim == 0 { Credit::Samples } else { target_fraction::credit(self.context.get()) };
        let goes_on = self.shared.get() == aim;
        match (credit, self.account.get()) {
            (Credit::Share(0), Some(_)) if goes_on && self.ran.pass(clock::now()) => Nanos::ZERO,
            (Credit::Share(share @ 1..), Some(account)) => {
                let now = clock::now();
                let share = Speedup::from_ppm(share);
                if goes_on {
                    let inside = share.of(self.ran(now));
                    self.grew(ledger().settle(account, inside, now), now);
                } else {
                    self.unshare();
                    self.has_share_in(aim);
                    self.ran.begin(now);
                }
                let spent = spent(now, self.spent_since(now, account));
                // From when it is credited on: else it would seem to be inside for longer than it
                // was there.
                let now = self.ran.at();
                ledger().expect(account, share.of(AHEAD), now, now + AHEAD);
                spent
            }
            // What follows counts from when it has an account.
            (Credit::Share(1..), None) => {
                self.unshare();
                Nanos::ZERO
            }
            _ => {
                self.unshare();
                // A stretch counts as soon as the thread is a participant again.
                self.clear.set(if self.stretch.get().is_none() { aim } else { 0 });
                Nanos::ZERO
            }
        }
    }

    /// Does for a thread on its timeline what [`share`](Thread::share) does for others.
    fn share_of_stretch(&self, mut stretch: TimelineCursor, account: &Account, aim: u32) -> Nanos {
        let now = clock::now();
        let before = self.shared.get();
        self.has_share_in(aim);
        if before == 0 {
            self.ran.begin(now);
            stretch.credited = now;
        } else {
            let inside = stretch.inside(self.ran(now), now);
            let inside = if before == aim || aim == 0 { inside } else { Nanos::ZERO };
            self.grew(ledger().settle(account, inside, now), now);
        }
        let until = self.spent_since(now, account);
        self.is_on(stretch, account, aim, until);
        spent(now, until)
    }

    fn has_share_in(&self, aim: u32) {
        self.shared.set(aim);
        self.clear.set(if aim == 0 { 0 } else { NONE });
    }

    /// The thread is there on its timeline, and credited up to now: what is to come until the next
    /// sample is told to who reads D meanwhile.
    fn is_on(&self, stretch: TimelineCursor, account: &Account, aim: u32, now: Real) {
        if aim != 0 {
            ledger().expect(account, stretch.expected(), now, now + FINE);
        }
        self.stretch.set(Some(stretch));
    }

    /// A sample interrupted the thread on its timeline. Returns how it is credited there, and its
    /// context. What the interrupt took is time of what it interrupted, and no way that the thread
    /// came.
    fn sampled_on_timeline(
        &self,
        mut stretch: TimelineCursor,
        account: &Account,
        inside: impl FnOnce() -> Option<bool>,
    ) -> (Credit, u32) {
        let aim = target_fraction::aim();
        let goes_on = aim != 0 && self.shared.get() == aim;
        let now = clock::now();
        let least = if goes_on { stretch.credited } else { stretch.at };
        let at = Real((now.0 - late::late().0).max(least.0).min(now.0));
        let far = at - stretch.at;
        let credit = stretch.timeline.credit(far);
        if goes_on {
            let by_share = credit != Credit::Samples && inside() == Some(true);
            let credited = stretch.sampled(self.ran(now), at, now, by_share);
            self.grew(ledger().settle(account, credited, now), now);
            self.is_on(stretch, account, aim, now);
        } else {
            stretch.interrupted(at, now);
            self.stretch.set(Some(stretch));
            self.share();
        }
        (credit, stretch.timeline.context(far))
    }

    /// The thread is credited up to now. What follows is not of its context, until its share begins
    /// [anew](Thread::share_anew). Returns for how long that took, as [`share`](Thread::share)
    /// does.
    #[inline]
    pub(super) fn share_no_more(&self) -> Nanos {
        let spent = self.share();
        self.unshare();
        spent
    }

    fn unshare(&self) {
        if self.shared.replace(0) != 0 {
            self.looks_anew();
            self.expects_no_more();
        }
    }

    /// Whether the thread has a share is to be asked again.
    pub(super) fn looks_anew(&self) {
        self.clear.set(0);
    }

    /// Nothing is expected of the thread any more, which is credited up to now.
    fn expects_no_more(&self) {
        if let Some(account) = self.account.get() {
            ledger().settle(account, Nanos::ZERO, clock::now());
        }
    }

    /// The time that it has taken up to now is not of its context.
    #[inline]
    pub(super) fn share_anew(&self) {
        self.unshare();
        self.share();
    }

    /// The thread goes on in another context. Returns the one before.
    #[inline]
    pub(super) fn go_on_in(&self, context: u32) -> u32 {
        if process().asked.is_any_on(Switches::AIMS) {
            self.share_and_go_on_in(context)
        } else {
            self.context.replace(context)
        }
    }

    #[cold]
    fn share_and_go_on_in(&self, context: u32) -> u32 {
        self.share();
        if self.shared.get() != 0 && self.stretch().is_some() {
            self.end_stretch();
        }
        let before = self.context.replace(context);
        if self.shared.get() != 0 {
            self.expect_in(context);
        } else {
            self.looks_anew();
            self.share();
        }
        before
    }

    /// The thread, which is credited up to now, goes on to have a share, of another context.
    fn expect_in(&self, context: u32) {
        self.expects_no_more();
        if let (Credit::Share(share @ 1..), Some(account)) =
            (target_fraction::credit(context), self.account.get())
        {
            // As above.
            let now = self.ran.at();
            ledger().expect(account, Speedup::from_ppm(share).of(AHEAD), now, now + AHEAD);
        }
    }
}

/// A sample of the calling thread, from the signal handler that interrupted it anywhere: credits
/// it, and returns its context, or `None` when it was interrupted in andweorc itself (a pause,
/// say). `inside` says whether it was inside the target, where that is known, and `ran` what the
/// sample stands for.
///
/// Async-signal-safe: as [`catch_up_in_signal_handler`](super::catch_up_in_signal_handler).
pub(crate) fn sampled(ran: Nanos, inside: &dyn Fn() -> Option<bool>) -> Option<u32> {
    THREAD.with(|thread| {
        if thread.writing.replace(true) {
            return None;
        }
        let (mut credit, mut context) = (Credit::Samples, thread.context.get());
        let mut now = Real(0);
        clock::in_signal_handler(|| {
            now = clock::now();
            if let (Some(stretch), Some(account)) = (thread.stretch(), thread.account.get()) {
                (credit, context) = thread.sampled_on_timeline(stretch, account, inside);
            } else {
                credit = target_fraction::credit(context);
                thread.share();
            }
        });
        if let (Credit::Samples, Some(account), true) =
            (credit, thread.account.get(), target_fraction::aim() != 0)
            && inside() == Some(true)
        {
            thread.grew(ledger().credit(account, ran), now);
        }
        thread.writing.set(false);
        Some(context)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::Own;
    use crate::target::{Target, target};
    use crate::thread::target_scope::SPENT;
    use crate::thread::{enable, enter, exit, participant_at, register, with};
    use andweorc_profile::TargetKind;

    /// Works in a context and in one inside of it, for so long, in visits of a few microseconds.
    /// Returns the CPU time that it took, and what the thread was credited with: what it takes to
    /// tell that is delay too, and left out.
    fn visits([outer, inner]: [&'static Target; 2], time: Nanos) -> (Nanos, Nanos) {
        let account = register().unwrap();
        let around = enter(outer, clock::now());
        let taken = || ledger().local_delay(account, clock::now()) - SPENT.get();
        let (began, before) = (clock::thread_cpu(), taken());
        while clock::thread_cpu() - began < time {
            for _ in 0..100 {
                let visit = enter(inner, clock::now());
                let until = clock::now() + Nanos::from_micros(2);
                while clock::now() < until {}
                exit(visit, clock::now());
            }
        }
        exit(around, clock::now());
        (clock::thread_cpu() - began, taken() - before)
    }

    #[test]
    fn a_share_is_owed_as_it_comes_and_no_more_once_the_visit_is_over() {
        let speedup = Speedup::from_ppm(500_000);
        Own::run(|_| {
            let context = target(TargetKind::Span, "shared: ahead", None, None);
            enable();
            ledger().begin(speedup, clock::now());
            target_fraction::begin([(context.id(), 800_000)].into_iter());
            let account = register().unwrap();
            let before = clock::now();
            let visit = enter(context, clock::now());
            // However late the thread is by now: what is expected of it ends there.
            let later = clock::now() + AHEAD;
            assert_eq!(
                ledger().global_delay(later) - ledger().local_delay(account, before),
                speedup.of(Speedup::from_ppm(800_000).of(AHEAD))
            );
            exit(visit, clock::now());
            assert_eq!(ledger().global_delay(later), ledger().global_delay(clock::now()));
            target_fraction::end();
            ledger().end(clock::now());
        })
    }

    #[test]
    fn virtual_time_of_a_thread_with_a_share_is_told_without_the_time_spent_on_telling() {
        let told = Own::run(|_| {
            let context = target(TargetKind::Span, "shared: tells", None, None);
            enable();
            // So little that D hardly grows.
            ledger().begin(Speedup::from_ppm(1), clock::now());
            target_fraction::begin([(context.id(), 500_000)].into_iter());
            let account = register().unwrap();
            let visit = enter(context, clock::now());
            let tells = |_| {
                let (now, spent) = (clock::now(), SPENT.get());
                let before = ledger().local_delay(account, now);
                let at = participant_at(now).unwrap();
                (now.less(before) - at, SPENT.get() - spent)
            };
            let told: Vec<_> = (0..100).map(tells).collect();
            exit(visit, clock::now());
            target_fraction::end();
            ledger().end(clock::now());
            told
        });
        // Where it waited for its processor behind another thread, it takes that too.
        let is_exact =
            |&(early, spent): &(Nanos, Nanos)| early == Nanos::ZERO && spent > Nanos::ZERO;
        assert!(told.iter().any(is_exact), "{told:?}");
    }

    #[test]
    fn only_who_has_a_share_goes_the_long_way() {
        Own::run(|_| {
            let [with_share, without] = ["with", "without"]
                .map(|name| target(TargetKind::Span, &format!("long way: {name}"), None, None));
            enable();
            ledger().begin(Speedup::from_ppm(1), clock::now());
            register().unwrap();
            let is_caught_up = || with(|thread| thread.caught_up()).is_some();
            assert!(is_caught_up());
            target_fraction::begin([(with_share.id(), 500_000)].into_iter());
            assert!(!is_caught_up(), "it has not looked yet");
            let visit = enter(without, clock::now());
            assert!(is_caught_up());
            let inside = enter(with_share, clock::now());
            assert!(!is_caught_up());
            exit(inside, clock::now());
            exit(visit, clock::now());
            with(Thread::share);
            assert!(is_caught_up());
            target_fraction::end();
            assert!(!is_caught_up(), "nor that there is no experiment any more");
            with(Thread::share);
            assert!(is_caught_up());
            ledger().end(clock::now());
        })
    }

    #[test]
    fn each_context_is_credited_with_its_share_of_the_cpu_time() {
        let contexts = |share: u32| {
            ["outer", "inner"].map(|name| {
                target(TargetKind::Span, &format!("shared: {name} {share}"), None, None)
            })
        };
        let shares = [0, 200_000, 800_000];
        let speedup = Speedup::from_ppm(100_000);
        Own::run(|_| {
            enable();
            let shared = |share| contexts(share).map(|context| (context.id(), share));
            ledger().begin(speedup, clock::now());
            target_fraction::begin(shares.into_iter().flat_map(shared));
            for share in shares {
                let (ran, credited) = visits(contexts(share), Nanos::from_millis(20));
                let expected = speedup.of(Speedup::from_ppm(share).of(ran));
                let off = (credited - expected).0.abs();
                assert!(off <= ran.0 / 200, "{credited} and not {expected}: {share} ppm of {ran}");
                assert_eq!(SPENT.get() == Nanos::ZERO, share == 0, "no clock is read for no share");
            }
            target_fraction::end();
            ledger().end(clock::now());
            assert_eq!(visits(contexts(800_000), Nanos::from_millis(1)).1, Nanos::ZERO);
        })
    }
}
