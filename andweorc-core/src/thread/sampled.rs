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

    fn share_of(&self, aim: u32) {
        if let (Credit::Share(share @ 1..), Some(account)) =
            (share::credit(self.context.get()), self.account.get())
        {
            let cpu = clock::thread_cpu();
            let (before, since) = self.shared.replace((aim, cpu));
            if before == aim {
                LEDGER.credit(account, Speedup::from_ppm(share).of(cpu - since));
            }
        } else {
            // What follows counts from the next call on.
            self.shared.set((0, Nanos::ZERO));
        }
    }

    /// The time that it has taken up to now is not of its context.
    #[inline]
    pub(super) fn share_anew(&self) {
        if share::aim() != 0 {
            self.shared.set((0, Nanos::ZERO));
            self.share();
        }
    }

    /// The thread goes on in another context. Returns the one before.
    #[inline]
    pub(super) fn go_on_in(&self, context: u32) -> u32 {
        self.share();
        let before = self.context.replace(context);
        self.share_anew();
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
                Credit::Share(_) => thread.share(),
            }
        }
        thread.writing.set(false);
        Some(context)
    })
}
