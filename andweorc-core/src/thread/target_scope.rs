//! Stays of the calling thread in targets: entered and left, timed, and credited if the target is
//! that of the experiment.

use super::runqueue_wait::Comes;
use super::{Thread, is_target, ledger, with};
use crate::clock;
use crate::engine::{Entered, Stay};
use crate::ledger::Account;
use crate::process::asked::Switches;
use crate::process::process;
use crate::sampler::target_fraction;
use crate::target::Target;
use crate::time::{Nanos, Real};

/// Time that a thread spends at most on entering or leaving a target; what takes longer was
/// preempted.
const MAX_SPENT: Nanos = Nanos::from_micros(20);

/// The calling thread enters `target`. The ledger is told only if `target` is that of the running
/// experiment. Every call is followed by one of [`exit`] or [`leave`] with the answer, in reverse
/// order, or else by one of [`exit_under`].
#[must_use = "hand the answer to `exit`"]
#[inline]
pub fn enter(target: &Target, now: Real) -> Entered {
    with(|thread| thread.enter(target, now))
}

/// The calling thread leaves what it entered.
#[inline]
pub fn exit(entered: Entered, now: Real) -> Stay {
    with(|thread| {
        let context = thread.context.get();
        let stay = thread.exit(entered, now);
        if entered.is_outermost() {
            thread.left(context);
        }
        stay
    })
}

/// Leaves `target`, as [`exit`] does, and counts the visit; its busy time only if it is the
/// `first`, not inside of another visit of the same target.
#[inline]
pub fn leave(target: &Target, entered: &Entered, first: bool, now: Real) {
    with(|thread| {
        let context = thread.context.get();
        thread.leave(target, entered, first, now);
        if entered.is_outermost() {
            thread.left(context);
        }
    });
}

/// The calling thread leaves what it entered before `above`, the next stay that goes on.
#[cold]
pub fn exit_under(entered: Entered, above: &mut Entered, now: Real) -> Stay {
    with(|thread| {
        if entered.credited {
            thread.exit_credited(now);
        }
    });
    entered.end_under(above, now)
}

impl Thread {
    #[inline]
    pub(super) fn enter(&self, target: &Target, now: Real) -> Entered {
        let credited = is_target(target);
        if credited {
            self.enter_credited(now);
        }
        let context = if process().asked.is_any_on(Switches::AIMS.or(Switches::HAS_LEARNED)) {
            self.go_on_in(self.visits(target))
        } else {
            self.context.replace(target.id())
        };
        Entered::begin(credited, context, self.inner.replace(Nanos::ZERO), now)
    }

    /// The thread goes back to the context around what it leaves.
    #[inline]
    fn go_back_to(&self, context: u32) {
        let in_turn = context != 0 && target_fraction::has_learned();
        let context = if in_turn { self.in_this_part(context) } else { context };
        if process().asked.is_any_on(Switches::AIMS.or(Switches::COUNTS_VISITS)) {
            self.end_visit(context);
        } else {
            self.context.set(context);
        }
    }

    /// Counts the visit that the thread leaves for this context, if it is an outermost one.
    #[cold]
    #[inline(never)]
    fn end_visit(&self, context: u32) {
        self.visits.set(self.visits.get().wrapping_add(u32::from(context == 0)));
        self.go_on_in(context);
    }

    /// The context of a visit of `target` that begins.
    #[inline]
    fn visits(&self, target: &Target) -> u32 {
        if target_fraction::has_learned() { self.visits_in_turn(target) } else { target.id() }
    }

    /// The context of a visit of `target` that begins, where polls are told apart.
    #[cold]
    #[inline(never)]
    fn visits_in_turn(&self, target: &Target) -> u32 {
        let context = target.id() | self.phase.get();
        if target_fraction::learns() {
            target_fraction::visited(context);
        }
        context
    }

    #[inline]
    pub(super) fn exit(&self, entered: Entered, now: Real) -> Stay {
        if entered.credited {
            self.exit_credited(now);
        }
        self.go_back_to(entered.context);
        let (stay, inner) = entered.end(self.inner.get(), now);
        self.inner.set(inner);
        stay
    }

    /// Leaves `target`, and counts the visit. Not inlined: its code is there once for polls and
    /// spans.
    #[inline(never)]
    pub(super) fn leave(&self, target: &Target, entered: &Entered, first: bool, now: Real) {
        let Stay { busy, own } = self.exit(*entered, now);
        target.record(if first { busy } else { Nanos::ZERO }, own);
    }

    #[cold]
    pub(super) fn enter_credited(&self, now: Real) {
        let before = self.depth.get();
        self.depth.set(before.enter());
        if !before.is_inside()
            && let Some(account) = self.account(now)
        {
            // L grows from what it is now.
            self.absorb_runqueue_wait(account, Comes::Preempted, now);
            self.ran.begin(now);
            account.set_cpu(self.ran.cpu());
            ledger().enter(account, self.spent_since(now, account));
        }
    }

    #[cold]
    pub(super) fn exit_credited(&self, now: Real) {
        let before = self.depth.get();
        self.depth.set(before.exit());
        if before.is_inside()
            && !before.exit().is_inside()
            && let Some(account) = self.account(now)
        {
            self.grew(ledger().exit(account, now, self.ran(now)), now);
            self.spent_since(now, account);
        }
    }

    /// Counts the time since `since`, outside the target, as delay that the thread took of what it
    /// owes: all that it did was to tell how long it is inside, which is nobody's time. Returns
    /// until when it did so.
    pub(super) fn spent_since(&self, since: Real, account: &Account) -> Real {
        let now = clock::now();
        let spent = spent(since, now);
        #[cfg(test)]
        SPENT.set(SPENT.get() + spent);
        ledger().took(account, spent, now);
        now
    }
}

/// Time between two instants that a thread spent on telling how long it is inside the target.
pub(super) fn spent(since: Real, until: Real) -> Nanos {
    (until - since).min(MAX_SPENT)
}

#[cfg(test)]
crate::plain_thread_local! {
    /// Time that the calling thread [spent](Thread::spent_since) so far.
    pub(super) static SPENT: std::cell::Cell<Nanos> = std::cell::Cell::new(Nanos::ZERO);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::Own;
    use crate::target::target;
    #[cfg(not(loom))]
    use crate::{
        thread::{register, set_target},
        time::Speedup,
    };
    use andweorc_profile::TargetKind;
    #[cfg(not(loom))]
    #[test]
    fn target_entry_cost_is_credited_to_the_thread() {
        let target = target(TargetKind::Span, "entered often", None, None);
        Own::run(|_| {
            set_target(Some(target));
            let began = clock::now();
            // So little that D hardly grows.
            ledger().begin(Speedup::from_ppm(1), began);
            let account = register().unwrap();
            let before = ledger().local_delay(account, began);
            for _ in 0..100 {
                exit(enter(target, clock::now()), clock::now());
            }
            let now = clock::now();
            let taken = ledger().local_delay(account, now) - before;
            ledger().end(now);
            set_target(None);
            assert!(Nanos::ZERO < taken && taken < now - began, "{taken} of {}", now - began);
        })
    }

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
    fn target_exited_out_of_order_is_timed_until_its_exit() {
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
}
