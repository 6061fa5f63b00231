//! Streams whose other end is outside, where what reads them is in a task that nobody profiles:
//! connections that a library spawns.
//!
//! A client takes its time between a response and its next request. In an experiment that time must
//! be stretched by what is delayed meanwhile, as each wait for the world outside: else the client
//! would come earlier, in virtual time, than it ever does. Around a profiled task its waker sees to
//! that. [`Outside`] is such a waker for reads of one stream: what comes is held until the virtual
//! clock gets there.

use crate::peer::Peer;
use crate::profiled::{Kind, defers};
use crate::wait_hint;
use crate::wake::{WakeCell, keep};
use andweorc_core::hooks::engine::WaitHint;
use andweorc_core::hooks::thread::{self, ledger, model};
use andweorc_core::hooks::time::{Nanos, Real, Virtual};
use andweorc_core::hooks::{clock, enabled};
use pin_project_lite::pin_project;
use std::borrow::Cow;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop;

pin_project! {
    /// The stream of a client, of which the next request is held, in experiments, until the virtual
    /// clock gets to when it came: the time that the client takes is not the program's. For servers
    /// whose connections are tasks that nobody profiles, as a library spawns them on stable tokio.
    ///
    /// A request begins with what is read first after something was written. What comes after that,
    /// a body, ends a wait of the profiled part that handles the request, and is held there. So is
    /// what comes over a connection to a server: don't wrap those. Does nothing in a task that is
    /// profiled, whose own waker sees to it all, and nothing but a check at each read and write
    /// while andweorc is off. The other end must be in another process: one in this program is
    /// delayed itself.
    ///
    /// ```
    /// use andweorc_tokio::io::Outside;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # runtime.block_on(async {
    /// let (mut client, stream) = tokio::io::duplex(64);
    /// let mut stream = Outside::new(stream);
    /// client.write_u32(7).await.unwrap();
    /// assert_eq!(stream.read_u32().await.unwrap(), 7);
    /// # });
    /// ```
    #[derive(Debug)]
    pub struct Outside<S> {
        #[pin]
        stream: S,
        // From its first read while andweorc is on to the next while it is off.
        other: Option<Other>,
        peer: Peer,
    }
}

/// The other end.
#[derive(Debug)]
struct Other {
    cell: Arc<WakeCell>,
    /// The virtual time since when it may take its time.
    at: Virtual,
    /// Whether what comes next is the answer to what was written last. What comes after that, the
    /// rest of a request, ends a wait of whoever handles it, who is profiled: it is held there.
    answers: bool,
}

impl Other {
    /// Whoever reads it is woken by `outer`.
    #[cold]
    fn new(outer: &Waker, now: Real) -> Other {
        // No target: what it keeps is how long the others take.
        let targets = Kind::Name(Cow::Borrowed("andweorc::io::Outside")).targets();
        let at = ledger().virtual_now(now);
        let cell = WakeCell::new(keep(outer), targets, at.delay_at(now), Virtual::NEVER);
        Other { cell, at, answers: true }
    }

    /// From now on `outer` wakes the reader.
    #[cold]
    fn move_to(&mut self, outer: &Waker) {
        let ready = self.cell.take_ready(self.at);
        self.cell =
            WakeCell::new(keep(outer), self.cell.targets(), self.cell.clock.local_delay(), ready);
    }

    /// Whether what came comes too early, and is held.
    fn comes_early(&self, now: Real) -> bool {
        let ready = self.cell.take_ready(self.at);
        ready != Virtual::NEVER && defers(&self.cell, ready, now)
    }

    /// Records that the other end was written to, and takes its time from now on. Whoever reads the
    /// stream may be waiting already, and not look again before the answer comes.
    fn was_asked(&mut self, peer: &Peer) {
        let now = clock::now();
        self.at = ledger().virtual_now(now);
        self.answers = true;
        self.waits(self.at.delay_at(now), self.hint(peer));
    }

    /// There is nothing to read yet.
    fn has_nothing(&mut self, peer: &Peer) {
        let hint = match coop::has_budget_remaining() {
            true => self.hint(peer),
            false => WaitHint::Runtime,
        };
        self.waits(self.cell.clock.local_delay(), hint);
    }

    /// End of a wait for what comes next. A participant tells in a header when that is due.
    fn hint(&self, peer: &Peer) -> WaitHint {
        if self.answers && !peer.takes_part() { WaitHint::External } else { WaitHint::Loopback }
    }

    /// The reader waits, as of when it had `taken` this delay, for what `hint` says.
    fn waits(&self, taken: Nanos, hint: WaitHint) {
        // What it waited for before is over.
        self.cell.clock.take_woken();
        self.cell.clock.parks(model(), self.at.more(taken), taken, hint);
    }
}

impl<S> Outside<S> {
    /// Wraps `stream`: what comes from it comes from outside of this process.
    pub fn new(stream: S) -> Outside<S> {
        Outside { stream, other: None, peer: Peer::default() }
    }

    /// The stream itself.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The stream itself, to set an option of the socket, say. What is read there is not held.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream, from which nothing is held any more.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

/// Passes on that something was written: whoever gets it takes its time from then on.
fn wrote(
    other: &mut Option<Other>,
    peer: &Peer,
    written: Poll<io::Result<usize>>,
) -> Poll<io::Result<usize>> {
    if let (Poll::Ready(Ok(_)), Some(other)) = (&written, other)
        && enabled()
    {
        other.was_asked(peer);
    }
    written
}

impl<S: AsyncRead> AsyncRead for Outside<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        if !enabled() {
            *this.other = None;
            return this.stream.poll_read(cx, buffer);
        }
        let (now, outer) = (clock::now(), cx.waker());
        this.peer.is_read();
        if thread::participant_at(now).is_some() {
            *this.other = None;
            let read = this.stream.poll_read(cx, buffer);
            if read.is_pending() && this.peer.takes_part() {
                wait_hint::say(WaitHint::Loopback);
            }
            return read;
        }
        let other = this.other.get_or_insert_with(|| Other::new(outer, now));
        if !other.cell.will_wake(outer) {
            other.move_to(outer);
        }
        if other.comes_early(now) {
            return Poll::Pending;
        }
        let waker = other.cell.waker();
        let read = this.stream.poll_read(&mut Context::from_waker(&waker), buffer);
        if read.is_pending() {
            other.has_nothing(this.peer);
        } else {
            other.answers = false;
        }
        read
    }
}

impl<S: AsyncWrite> AsyncWrite for Outside<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        wrote(this.other, this.peer, this.stream.poll_write(cx, buffer))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        wrote(this.other, this.peer, this.stream.poll_write_vectored(cx, buffers))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
