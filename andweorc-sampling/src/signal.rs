//! The one signal that andweorc sends to threads of the program: to sample them, and to tell them
//! to pay.
//!
//! - The signal is SIGURG, which does nothing by default. A program that resets it while some are
//!   on their way is not killed by them, as it would be by SIGPROF, which profilers in the program
//!   may want for themselves.
//! - A program that handled it before keeps its handler, and gets none of ours.
//! - A program that takes it over later, by a handler of its own or by setting it to be ignored or
//!   to its default, gets none from when that is [seen](may_send), and keeps it. Whoever sends
//!   looks before each round: every few ms.
//! - Handlers of `signal-hook-registry` call the one that they replace. Ours looks at who sent a
//!   signal, and leaves what is not andweorc's alone.
//! - A thread that [blocks](is_blocked) it when it gets an account is sent none: it may wait for it
//!   by sigwait(3).
//!
//! The handler works where there is room for it (`stack`), and no other one runs on top of it. All
//! other signals wait meanwhile, for a pause of some ms at most.

mod stack;

use libc::{c_int, c_long, siginfo_t};
use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::cell::Cell;
use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{mem, ptr};

/// The signal.
pub const SIGNAL: Signal = Signal::SIGURG;

/// Signals that the kernel sends a thread for what it does itself. While they are blocked, the
/// process is killed without its handler being called.
const SYNCHRONOUS: [Signal; 6] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGTRAP,
    Signal::SIGSYS,
];

/// All signals but those that a thread gets for what it does itself.
pub fn signals_of_others() -> SigSet {
    let mut signals = SigSet::all();
    SYNCHRONOUS.into_iter().for_each(|signal| signals.remove(signal));
    signals
}

/// `si_code` of what the kernel sends for an overflow of a perf event; the libc crate has it for
/// none of its targets.
const POLL_IN: c_int = 1;

/// Its address marks the timers of andweorc.
static MARK: u8 = 0;

crate::plain_thread_local! {
    // The handler alone uses it.
    static FILE: Cell<RawFd> = Cell::new(-1);
}

/// The program took the signal over while andweorc used it.
static TAKEN_OVER: AtomicBool = AtomicBool::new(false);

/// The parts of andweorc that use the signal.
struct Users {
    count: usize,
    /// The action that was there before the first one came.
    before: Option<SigAction>,
}

static USERS: Mutex<Users> = Mutex::new(Users { count: 0, before: None });

fn users() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handler is installed while any of these lives.
#[derive(Debug)]
pub struct Handler(());

impl Handler {
    /// Installs the handler, which does this `work` for signals of `sender`. `None` where the
    /// program handles the signal itself.
    pub fn install(sender: Sender, work: &'static Work) -> Option<Handler> {
        let mut users = users();
        // Before there is a handler.
        WORK[sender as usize].store(ptr::from_ref(work).cast_mut(), SeqCst);
        if users.count == 0 {
            TAKEN_OVER.store(false, SeqCst);
            users.before = Some(install()?);
        } else if !may_send() {
            return None;
        }
        users.count += 1;
        Some(Handler(()))
    }
}

impl Drop for Handler {
    /// The last one puts back what was there before, unless the program has taken the signal over.
    /// One that is still on its way then does nothing.
    fn drop(&mut self) {
        let mut users = users();
        users.count -= 1;
        if users.count == 0
            && let Some(before) = users.before.take()
            && is_ours()
            && let Some(now) = set(&before)
            && !is_our_action(&now)
        {
            // The program has just taken it over.
            set(&now);
        }
    }
}

/// Whether there is a handler of andweorc's to send the signal to.
pub fn is_in_use() -> bool {
    users().count > 0
}

/// Whether the signal may be sent: not once the program has taken it over.
pub fn may_send() -> bool {
    if !TAKEN_OVER.load(SeqCst) && !is_ours() {
        TAKEN_OVER.store(true, SeqCst);
    }
    !TAKEN_OVER.load(SeqCst)
}

/// Whether the program was seen to have taken the signal over.
pub fn was_taken_over() -> bool {
    TAKEN_OVER.load(SeqCst)
}

/// Whether the calling thread blocks the signal.
pub fn is_blocked() -> bool {
    SigSet::thread_get_mask().is_ok_and(|mask| mask.contains(SIGNAL))
}

/// Whether the signal is on its way to the calling thread. Async-signal-safe.
pub fn is_pending() -> bool {
    let mut pending = mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the kernel fills `pending` in when it returns 0, and sigismember(3) only reads it.
    unsafe {
        libc::sigpending(pending.as_mut_ptr()) == 0
            && libc::sigismember(pending.as_ptr(), SIGNAL as c_int) == 1
    }
}

/// The value that a timer of andweorc sends with the signal.
pub fn mark() -> libc::sigval {
    libc::sigval { sival_ptr: (&raw const MARK).cast_mut().cast() }
}

/// Installs the handler, unless the program has one. Returns what was there before.
fn install() -> Option<SigAction> {
    let flags = SaFlags::SA_RESTART | SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK;
    let ours = SigAction::new(SigHandler::SigAction(on_signal), flags, signals_of_others());
    let before = set(&ours)?;
    if matches!(before.handler(), SigHandler::SigDfl | SigHandler::SigIgn) {
        return Some(before);
    }
    set(&before);
    None
}

/// Returns what was there before; `None` where the kernel refuses.
fn set(action: &SigAction) -> Option<SigAction> {
    // SAFETY: `on_signal` is async-signal-safe, as it says; another handler was the program's
    // before, and is put back.
    unsafe { sigaction(SIGNAL, action) }.ok()
}

/// Whether the handler is the installed one.
fn is_ours() -> bool {
    let mut action = mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null new action changes nothing, and `action` is room for the old one, which the
    // call fills in when it returns 0.
    unsafe {
        libc::sigaction(SIGNAL as c_int, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == address()
    }
}

fn is_our_action(action: &SigAction) -> bool {
    matches!(action.handler(), SigHandler::SigAction(handler) if handler as usize == address())
}

fn address() -> libc::sighandler_t {
    on_signal as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as libc::sighandler_t
}

/// The work that the handler does for the signals of one sender. All of it is async-signal-safe:
/// it reads the thread's registers, stack, cells and CPU clock, reads and writes atomics and
/// sleeps, allocates nothing, and takes no lock.
#[derive(Debug)]
pub struct Work {
    /// Whether there is something to do for the signal that has just come.
    pub is_wanted: fn() -> bool,
    /// The work; it is given the third argument of the handler.
    pub run: extern "C" fn(*mut c_void),
    /// The calling thread's own stack; empty where that is not known.
    pub own_stack: fn() -> Range<usize>,
}

/// The work for each [sender](Sender), once there is some.
static WORK: [AtomicPtr<Work>; 2] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];

/// The part of andweorc that sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A perf event or a timer: the thread has run for a period.
    Source,
    /// The thread that looks for those that lag.
    Nudger,
}

impl Sender {
    /// Returns the sender of a signal; `None` if that is nobody of andweorc.
    ///
    /// # Safety
    ///
    /// `info` is what the kernel gave the handler.
    unsafe fn of(info: *const siginfo_t) -> Option<Sender> {
        // SAFETY: as the caller says. Which fields there are depends on the code.
        unsafe {
            match (*info).si_code {
                POLL_IN => Some(Sender::Source),
                libc::SI_TIMER if (*info).si_value().sival_ptr == mark().sival_ptr => {
                    Some(Sender::Source)
                }
                libc::SI_TKILL if (*info).si_pid() == libc::getpid() => Some(Sender::Nudger),
                _ => None,
            }
        }
    }
}

/// The beginning of `siginfo_t` in a signal of a file: the libc crate has no name for its last
/// field.
#[repr(C)]
struct OfFile {
    signal_errno_code: [c_int; 3],
    band: c_long,
    file: RawFd,
}

const _: () = assert!(size_of::<OfFile>() <= size_of::<siginfo_t>());
const _: () = assert!(align_of::<OfFile>() <= align_of::<siginfo_t>());

/// The descriptor of the perf event whose signal the calling thread handles; -1 for that of a
/// timer. Async-signal-safe.
pub(crate) fn file() -> RawFd {
    FILE.get()
}

/// Takes down of which perf event the signal is.
///
/// # Safety
///
/// `info` is what the kernel gave the handler.
unsafe fn note_file(info: *const siginfo_t) {
    // SAFETY: as the caller says. A signal with this code has these fields, as the kernel lays
    // them out.
    let file = unsafe {
        match (*info).si_code {
            POLL_IN => (*info.cast::<OfFile>()).file,
            _ => -1,
        }
    };
    FILE.set(file);
}

/// Interrupts a thread anywhere, and does the [work](Work) for who has sent the signal. Leaves
/// errno as it was.
extern "C" fn on_signal(_: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let errno = Errno::last_raw();
    // SAFETY: the handler is installed with SA_SIGINFO, and `signal-hook-registry` hands on what it
    // gets.
    let sender = unsafe {
        note_file(info);
        Sender::of(info)
    };
    let work = sender.map_or(ptr::null_mut(), |sender| WORK[sender as usize].load(SeqCst));
    // SAFETY: null, or stored from a reference that holds for ever.
    if let Some(work) = unsafe { work.as_ref() }.filter(|work| (work.is_wanted)()) {
        // SAFETY: as above, and the stack is this thread's. A sample for which there is no room
        // counts as lost; a debt is paid later.
        unsafe { stack::with_room(context, (work.own_stack)(), work.run) };
    }
    Errno::set_raw(errno);
}
