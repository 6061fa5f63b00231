//! All accounts of a ledger.

use super::account::{Account, CHUNK, CHUNKS, closed_accounts};
use crate::cache_padded::CachePadded;
use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::sync::const_fn;
use std::iter;
use std::sync::OnceLock;

type Chunk = [CachePadded<Account>; CHUNK];

/// Accounts, which a thread takes and gives back. Memory for more than the first 256 is there once
/// that many threads live at a time.
#[derive(Debug)]
pub(super) struct Accounts {
    first: Chunk,
    more: [OnceLock<Box<Chunk>>; CHUNKS - 1],
    /// Accounts below this index were open at some time.
    opened: AtomicUsize,
}

impl Accounts {
    const_fn! {
    /// All closed.
    pub(super) fn new() -> Accounts {
        Accounts {
            first: closed_accounts(),
            more: [const { OnceLock::new() }; CHUNKS - 1],
            opened: AtomicUsize::new(0),
        }
    }
    }

    /// An account that nobody has, which the caller has now. `None` when all are taken.
    pub(super) fn take(&self) -> Option<&Account> {
        let more = self.more.iter().map(|it| &**it.get_or_init(|| Box::new(closed_accounts())));
        let all = iter::once(&self.first).chain(more).flatten();
        let is_free = |it: &Account| !it.open.load(SeqCst) && !it.open.swap(true, SeqCst);
        let (free, account) = all.enumerate().find(|(_, account)| is_free(account))?;
        self.opened.fetch_max(free + 1, SeqCst);
        Some(account)
    }

    /// All accounts that were open at some time.
    #[inline]
    pub(super) fn opened(&self) -> impl Iterator<Item = &Account> {
        let more = self.more.iter().map_while(OnceLock::get).map(|chunk| &**chunk);
        let all = iter::once(&self.first).chain(more).flatten();
        all.take(self.opened.load(SeqCst)).map(|account| &**account)
    }
}
