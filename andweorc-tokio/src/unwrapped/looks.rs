//! The look at the waits that begin in the innermost poll of a task that nobody wrapped.

use super::budget::Look;
use std::cell::{Cell, RefCell};
use std::mem;
use std::task::Waker;

thread_local! {
    /// `None` where nobody looks.
    static LOOK: RefCell<Option<Look>> = const { RefCell::new(None) };
}

andweorc_core::hooks::plain_thread_local! {
    /// The calling thread clones a waker of its own accord.
    static OWN: Cell<bool> = Cell::new(false);
}

/// Puts a look in the place of the one that there was, which is returned.
pub(super) fn replace(look: Option<Look>) -> Option<Look> {
    // A thread that is being torn down looks no more.
    let put = |place: &RefCell<Option<Look>>| mem::replace(&mut *place.borrow_mut(), look);
    LOOK.try_with(put).ok().flatten()
}

/// A clone of a waker that begins no wait.
pub(crate) fn keep(waker: &Waker) -> Waker {
    let before = OWN.replace(true);
    let kept = waker.clone();
    OWN.set(before);
    kept
}

/// The calling thread has cloned a waker: in the poll under way a wait begins.
pub(crate) fn wait_begins() {
    if OWN.get() {
        return;
    }
    let begins = |look: &RefCell<Option<Look>>| {
        if let Ok(mut look) = look.try_borrow_mut()
            && let Some(look) = look.as_mut()
        {
            look.wait_begins();
        }
    };
    LOOK.try_with(begins).unwrap_or_default();
}
