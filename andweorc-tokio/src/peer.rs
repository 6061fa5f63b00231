//! Whether the other end of a connection takes part in experiments too, as the last request over it
//! has told.
//!
//! The connection's stream knows when something comes, and a layer around the service knows the
//! request's header. What both have in common is the task: it reads the stream, parses, and calls
//! the service. So each thread keeps the mark of the stream that it has read last, with the task
//! that read it. A library that calls the service in another task than that of the connection, as
//! hyper does with the streams of HTTP/2 under axum, leaves the mark as it was.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task;

thread_local! {
    static LAST_READ: RefCell<Option<(task::Id, Peer)>> = const { RefCell::new(None) };
}

/// The mark of a connection. Clones are of the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer(Arc<AtomicBool>);

impl Peer {
    /// Whether it is known to take part.
    pub(crate) fn takes_part(&self) -> bool {
        // Relaxed: it stands for itself, and a request that is read by the old one is no harm.
        self.0.load(Ordering::Relaxed)
    }

    /// Records that the current task reads this connection.
    pub(crate) fn is_read(&self) {
        let Some(task) = task::try_id() else { return };
        let set = |last: &RefCell<Option<(task::Id, Peer)>>| {
            let mut last = last.borrow_mut();
            match &*last {
                Some((of, peer)) if *of == task && Arc::ptr_eq(&peer.0, &self.0) => None,
                // The one before is dropped outside.
                _ => last.replace((task, self.clone())),
            }
        };
        // A thread at its end forgets.
        drop(LAST_READ.try_with(set));
    }

    /// Marks the connection that the current task has read last on this thread.
    #[cfg(feature = "remote")]
    pub(crate) fn mark(takes_part: bool) {
        let mark = |last: &RefCell<Option<(task::Id, Peer)>>| {
            if let Some((task, peer)) = &*last.borrow()
                && task::try_id() == Some(*task)
                && peer.takes_part() != takes_part
            {
                peer.0.store(takes_part, Ordering::Relaxed);
            }
        };
        // A thread at its end has read nothing.
        LAST_READ.try_with(mark).ok();
    }
}

#[cfg(all(test, feature = "remote"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_task_that_read_a_connection_marks_it() {
        let (one, other) = (Peer::default(), Peer::default());
        let read = one.clone();
        tokio::spawn(async move {
            read.is_read();
            tokio::spawn(async { Peer::mark(true) }).await.unwrap();
            assert!(!read.takes_part());
            read.is_read();
            Peer::mark(true);
        })
        .await
        .unwrap();
        let read = other.clone();
        tokio::spawn(async move {
            read.is_read();
            Peer::mark(true);
            Peer::mark(false);
        })
        .await
        .unwrap();
        assert!(one.takes_part() && !other.takes_part());
    }

    #[test]
    fn without_a_task_nothing_is_marked() {
        let peer = Peer::default();
        peer.is_read();
        Peer::mark(true);
        assert!(!peer.takes_part());
    }
}
