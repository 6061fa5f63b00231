//! The credit of a thread while the target of the experiment is a sampled one.

use super::{LEDGER, THREAD, Thread};
use crate::clock;
use crate::sampler::share::{self, Credit};
use crate::time::{Nanos, Speedup};

impl Thread {
    /// Credits the thread with the share that its context has of a sampled target, of its time since the last call.
    #[inline]
    pub(super) fn share(&self) {
        let aim = share::aim();
        if aim != 0 {
            self.share_of(aim);
        }
    }

    #[cold]
    fn share_of(&self, aim: u32) {
        let goes_on = self.shared.get() == aim;
        match (share::credit(self.context.get()), self.account.get()) {
            (Credit::Share(0), Some(_)) if goes_on && self.ran.pass(clock::now()) => {}
            (Credit::Share(share @ 1..), Some(account)) => {
                let now = clock::now();
                if goes_on {
                    LEDGER.credit(account, Speedup::from_ppm(share).of(self.ran.end(now)));
                } else {
                    self.shared.set(aim);
                    self.ran.begin(now);
                }
            }
            // What follows counts from the next call on.
            _ => self.shared.set(0),
        }
    }

    /// The time that it has taken up to now is not of its context.
    #[inline]
    pub(super) fn share_anew(&self) {
        self.shared.set(0);
        self.share();
    }

    /// The thread goes on in another context. Returns the one before.
    #[inline]
    pub(super) fn go_on_in(&self, context: u32) -> u32 {
        if share::aim() == 0 {
            self.context.replace(context)
        } else {
            self.share_and_go_on_in(context)
        }
    }

    #[cold]
    fn share_and_go_on_in(&self, context: u32) -> u32 {
        self.share();
        let before = self.context.replace(context);
        if self.shared.get() == 0 {
            self.share();
        }
        before
    }
}

/// A sample of the calling thread, from the signal handler that interrupted it anywhere: credits it, and returns its context, or `None` when it
/// was interrupted in andweorc itself (a pause, say). `inside` says whether it was inside the target, where that is known, and `ran` what the
/// sample stands for.
///
/// Async-signal-safe: as [`pay_in_signal_handler`](super::pay_in_signal_handler).
pub(crate) fn sampled(ran: Nanos, inside: impl FnOnce() -> Option<bool>) -> Option<u32> {
    THREAD.with(|thread| {
        if thread.writing.replace(true) {
            return None;
        }
        let context = thread.context.get();
        if let (Some(account), true) = (thread.account.get(), share::aim() != 0) {
            match share::credit(context) {
                Credit::Samples if inside() == Some(true) => LEDGER.credit(account, ran),
                Credit::Samples => {}
                Credit::Share(_) => clock::in_signal_handler(|| thread.share()),
            }
        }
        thread.writing.set(false);
        Some(context)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::TargetKind;
    use crate::target::{Target, target};
    use crate::thread::{enable, enter, exit, register};

    /// Works in a context and in one inside of it, for so long, in visits of a few microseconds. Returns the CPU time that it took, and what the
    /// thread was credited with.
    fn visits([outer, inner]: [&'static Target; 2], time: Nanos) -> (Nanos, Nanos) {
        let account = register().unwrap();
        let around = enter(outer, clock::now());
        let (began, before) = (clock::thread_cpu(), LEDGER.taken(account, clock::now()));
        while clock::thread_cpu() - began < time {
            for _ in 0..100 {
                let visit = enter(inner, clock::now());
                let until = clock::now() + Nanos::from_micros(2);
                while clock::now() < until {}
                exit(visit, clock::now());
            }
        }
        exit(around, clock::now());
        (clock::thread_cpu() - began, LEDGER.taken(account, clock::now()) - before)
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
        std::thread::spawn(move || {
            enable();
            let shared = |share| contexts(share).map(|context| (context.id(), share));
            LEDGER.begin(speedup, clock::now());
            share::begin(shares.into_iter().flat_map(shared));
            for share in shares {
                let (ran, credited) = visits(contexts(share), Nanos::from_millis(20));
                let expected = speedup.of(Speedup::from_ppm(share).of(ran));
                let off = (credited - expected).0.abs();
                assert!(off <= ran.0 / 200, "{credited} and not {expected}: {share} ppm of {ran}");
            }
            share::end();
            LEDGER.end(clock::now());
            assert_eq!(visits(contexts(800_000), Nanos::from_millis(1)).1, Nanos::ZERO);
        })
        .join()
        .unwrap();
    }
}
