//! The open spans of one subscriber while wall time is recorded, by id.

use crate::span_table::Table;
use andweorc_core::hooks::allocations::left_out;
use andweorc_core::hooks::target::Target;
use andweorc_core::hooks::time::Real;
use andweorc_core::hooks::wall::{self, OpenSpan};
use std::sync::atomic::{AtomicUsize, Ordering};
use tracing_core::span::Id;

/// The spans that were opened while wall time was recorded, and are open.
#[derive(Debug, Default)]
pub(crate) struct WallSpans {
    table: Table<OpenSpan>,
    /// How many are in it, or are about to be.
    many: AtomicUsize,
}

impl WallSpans {
    /// Whether any may be open. So they are forgotten as they close, recorded or not.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        // Relaxed: whoever closes a span knows what was counted as it was opened.
        self.many.load(Ordering::Relaxed) > 0
    }

    fn find(&self, id: &Id) -> Option<OpenSpan> {
        self.table.with(id, |span| span.clone())
    }

    /// A span of `target` was opened inside of those `around` it, from the inside out; of each is
    /// said whether it is a target too.
    #[cold]
    #[inline(never)]
    pub(crate) fn opened(
        &self,
        id: &Id,
        target: &Target,
        mut around: impl Iterator<Item = (Id, bool)>,
    ) {
        let mut is_part = false;
        let parent = around.find_map(|(id, is_target)| {
            let found = self.find(&id);
            is_part |= is_target && found.is_none();
            found
        });
        if let Some(span) = OpenSpan::open(target, parent.as_ref(), is_part) {
            self.many.fetch_add(1, Ordering::Relaxed);
            left_out(|| self.table.insert(id, span));
        }
    }

    /// The calling thread enters a span at `now`.
    #[cold]
    #[inline(never)]
    pub(crate) fn entered(&self, id: &Id, now: Real) {
        if let Some(span) = self.find(id) {
            wall::enter(&span, now);
        }
    }

    /// The calling thread leaves a span at `now`.
    #[cold]
    #[inline(never)]
    pub(crate) fn left(&self, id: &Id, now: Real) {
        if let Some(span) = self.find(id) {
            wall::exit(&span, now);
        }
    }

    /// A span was closed.
    #[cold]
    #[inline(never)]
    pub(crate) fn closed(&self, id: &Id) {
        // Closed outside of the table's lock.
        if let Some(span) = self.table.remove(id) {
            self.many.fetch_sub(1, Ordering::Relaxed);
            span.close();
        }
    }
}
