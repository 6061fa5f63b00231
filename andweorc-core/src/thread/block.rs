//! Threads that are blocked by each other: as they [say](blocked) themselves, or as a hook of the
//! system call [sees](Blocking) it.

use super::wakeup_latency::{last_wake, note_wake_of_thread};
use super::{THREAD, Thread, enabled, ledger, with};
use crate::clock;
use crate::engine::{Block, BlockEnd, Rested, ThreadState};
use crate::process::process;
use crate::time::{Real, Speedup};
use std::panic::Location;
use std::ptr;

/// A wait of the calling thread, in the kernel, for another thread: from a hook of the system call,
/// which may be called from anywhere. Allocates nothing and takes no lock.
#[derive(Debug)]
#[must_use = "a wait that begins also ends"]
pub struct Blocking {
    block: Block,
    /// Address at which the thread waits.
    site: usize,
}

impl Blocking {
    /// The wait begins, at the address `site`. `None` where it does not matter: the thread is no
    /// participant, it is in andweorc itself, or it has said before that it is
    /// [`blocked`](super::blocked).
    pub fn begin(site: usize) -> Option<Blocking> {
        THREAD.with(|thread| {
            let before = thread.state.get();
            if thread.writing.get() || before.is_blocked() {
                return None;
            }
            if before != ThreadState::Active {
                // A runtime's thread sleeps between two polls.
                with(Thread::leave_processor);
                return None;
            }
            let block = with(|thread| thread.blocks(clock::now()));
            Some(Blocking { block, site })
        })
    }

    /// Another thread has ended it, and had paid before: what was owed and passed meanwhile is not
    /// paid again, and the rest is paid now.
    pub fn end(self) {
        self.end_by(BlockEnd::Thread);
    }

    /// A deadline by the [virtual clock](crate::program_clock) has ended it: the thread has waited
    /// for all that was owed and passed meanwhile.
    pub fn end_by_virtual_time(self) {
        self.end_by(BlockEnd::VirtualTime);
    }

    /// Time has ended it, as it would have a sleep: the world outside was not sped up.
    pub fn end_by_time(self) {
        self.end_by(BlockEnd::RealTime);
    }

    fn end_by(self, end: BlockEnd) {
        with(|thread| thread.unblocks(self.block, end, self.site));
    }
}

impl Thread {
    /// Blocks at `now`. Nobody tells the thread to pay from here on, since it takes its delay as it
    /// waits: to pause then would have it come late to what it waits for.
    fn blocks(&self, now: Real) -> Block {
        let inside = self.depth.get().is_inside();
        let (block, state) = Block::begin(self.state.get(), inside, now);
        self.set_state(state);
        self.leave_target(now);
        self.leave_processor();
        block
    }

    /// Goes on after a block: takes what it owed and what passed meanwhile, as far as who ended the
    /// block had paid that, and pays the rest.
    fn unblocks(&self, block: Block, end: BlockEnd, site: usize) {
        if end != BlockEnd::RealTime {
            let now = clock::now();
            self.share_anew();
            self.takes_in(block, end, now);
            if block.pays(self.state.get(), end) {
                self.catch_up(now);
            }
        }
        let inside = block.is_inside();
        self.set_state(block.end(self.state.get()));
        self.back(inside);
        self.acted_at(site);
    }

    /// Takes what the thread owed by the end of a block.
    fn takes_in(&self, block: Block, end: BlockEnd, now: Real) {
        if end == BlockEnd::Said && ledger().speedup() == Speedup::ZERO {
            return;
        }
        let Some(account) = self.account(now) else { return };
        let since = block.since();
        let rested = match end {
            BlockEnd::Thread => Rested::until_notified(since, last_wake(), now),
            BlockEnd::VirtualTime => Rested::until_found(since, now),
            BlockEnd::Said => {
                let door = &process().threads.door;
                Rested::for_at_most(since, door.lock().comes_out(ledger(), account, since, now))
            }
            BlockEnd::RealTime => return,
        };
        self.resume(account, rested, now);
    }

    /// Leaves the target, if the thread is inside, until it is [back](Thread::back).
    fn leave_target(&self, now: Real) {
        self.share_no_more();
        if self.depth.get().is_inside()
            && let Some(account) = self.account.get()
        {
            self.grew(ledger().exit(account, now, self.ran(now)), now);
        }
    }

    /// Is back, `inside` the target or not.
    fn back(&self, inside: bool) {
        self.share_anew();
        if inside && let Some(account) = self.account.get() {
            let now = clock::now();
            self.ran.begin(now);
            account.set_cpu(self.ran.cpu());
            ledger().enter(account, now);
        }
    }
}

/// Runs `f`, which blocks the calling thread until another one acts (a lock, a channel, a join).
///
/// What was owed and passed meanwhile is not paid again, as far as who let it in had paid; the rest
/// is paid before this returns, if the thread is a participant. Who that was is not known: it is
/// taken to be the thread that came out of `blocked` last, so wrap all places where a lock is
/// taken. If that one is still blocked or rests, all is taken as paid.
#[track_caller]
pub fn blocked<R>(f: impl FnOnce() -> R) -> R {
    let said = Said::say(ptr::from_ref(Location::caller()).addr());
    let result = f();
    drop(said);
    result
}

/// The calling thread has said that it is blocked. It is so no more when this is dropped, also in a
/// panic.
struct Said(Blocking);

impl Said {
    /// `None` when it has said so before, or while andweorc is off.
    fn say(site: usize) -> Option<Said> {
        if !enabled() {
            return None;
        }
        with(|thread| {
            if thread.state.get().is_blocked() {
                return None;
            }
            let since = clock::now();
            let block = thread.blocks(since);
            if ledger().speedup() != Speedup::ZERO
                && let Some(account) = thread.account(since)
            {
                process().threads.door.lock().go_in(ledger(), account, since);
            }
            Some(Said(Blocking { block, site }))
        })
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        let Blocking { block, site } = self.0;
        with(|thread| thread.unblocks(block, BlockEnd::Said, site));
    }
}

/// Pays what the calling thread owes before it wakes those who wait at the address `site`, from a
/// hook of the system call. Does nothing where [`Blocking::begin`] does not.
pub fn catch_up_before_waking(site: usize) {
    let in_andweorc = THREAD.with(|thread| thread.writing.get());
    if !in_andweorc {
        with(|thread| {
            if thread.state.get().participates() {
                let now = thread.catch_up(clock::now());
                if let Some(account) = thread.account.get() {
                    note_wake_of_thread(account, now);
                }
                // Words that are waited at have even addresses: to wake is another site.
                thread.acted_at(site | 1);
            }
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::thread::{enable, register};
    use crate::time::Nanos;

    #[test]
    fn a_blocked_thread_is_not_told_to_pay() {
        std::thread::spawn(|| {
            enable();
            register().unwrap();
            let tid = nix::unistd::gettid().as_raw();
            let told = || ledger().lagging(Nanos(i64::MIN), clock::now()).any(|name| name == tid);
            assert!(told());
            let wait = Blocking::begin(8).unwrap();
            assert!(!told());
            assert!(Blocking::begin(8).is_none(), "it is in one already");
            wait.end();
            assert!(told());
            Blocking::begin(8).unwrap().end_by_time();
            assert!(told());
            blocked(|| assert!(!told()));
            assert!(told());
        })
        .join()
        .unwrap();
    }
}
