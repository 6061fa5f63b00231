//! Call sites: what a span or event is counted as.

use andweorc_core::point::{Point, point};
use andweorc_core::profile::{PointKind, TargetKind};
use andweorc_core::target::{Target, target};
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use tracing_core::{Metadata, callsite};

/// What a call site stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Site {
    /// A span.
    Span {
        /// Hit when it closes.
        point: &'static Point,
        /// The time between enter and exit.
        target: &'static Target,
    },
    /// An event that is a progress point.
    Event(&'static Point),
    /// Nothing: it is filtered out.
    Ignored,
}

/// The call sites that a layer has seen.
#[derive(Debug, Default)]
pub(crate) struct Sites(RwLock<HashMap<callsite::Identifier, Site>>);

impl Sites {
    /// The site of this call site; `new` makes it the first time.
    pub(crate) fn get(
        &self,
        metadata: &'static Metadata<'static>,
        new: impl FnOnce(&'static Metadata<'static>) -> Site,
    ) -> Site {
        let id = metadata.callsite();
        if let Some(site) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return *site;
        }
        let mut sites = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *sites.entry(id).or_insert_with(|| new(metadata))
    }
}

/// The site of a span.
pub(crate) fn span(metadata: &Metadata<'_>) -> Site {
    let (name, file, line) = (metadata.name(), metadata.file(), metadata.line());
    Site::Span {
        point: point(PointKind::Latency, name, file, line, false),
        target: target(TargetKind::Span, name, file, line),
    }
}

/// Whether the user named this event: unnamed ones are called `event <file>:<line>`.
pub(crate) fn is_named(metadata: &Metadata<'_>) -> bool {
    !metadata.name().starts_with("event ")
}

/// The site of an event: a progress point by its own name, or by `file:line`.
pub(crate) fn event(metadata: &Metadata<'_>) -> Site {
    let named = is_named(metadata);
    let name = if named { metadata.name() } else { &metadata.name()["event ".len()..] };
    Site::Event(point(PointKind::Progress, name, metadata.file(), metadata.line(), true))
}
