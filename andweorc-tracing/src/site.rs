//! Call sites: what a span or event is counted as.

use crate::span_table::Multiply;
use andweorc_core::hooks::point::{Point, point};
use andweorc_core::hooks::settings::is_own_file;
use andweorc_core::hooks::target::{Target, target};
use andweorc_profile::{PointKind, TargetKind};
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError, RwLock};
use tracing_core::{Metadata, callsite};

/// Span or event that a call site stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Site {
    /// A span. It lives as long as the process, as its points and targets do.
    Span(&'static Span),
    /// An event that is a progress point.
    Event(&'static Point),
}

impl Site {
    fn point(&self) -> &'static Point {
        match *self {
            Site::Span(span) => span.point,
            Site::Event(point) => point,
        }
    }
}

/// Point and targets that the spans of a call site are counted as.
#[derive(Debug)]
pub(crate) struct Span {
    /// Hit when it closes.
    pub(crate) point: &'static Point,
    /// The time between enter and exit.
    pub(crate) target: &'static Target,
    /// The time from an exit to the next enter.
    pub(crate) wait: &'static Target,
}

impl Span {
    /// Of this name and place.
    pub(crate) fn new(name: &str, file: Option<&str>, line: Option<u32>) -> Span {
        Span {
            point: point(PointKind::Latency, name, file, line, false),
            target: target(TargetKind::Span, name, file, line),
            wait: target(TargetKind::Wait, name, file, line),
        }
    }
}

/// State of a call site: whether it is wanted, and its site once that was seen.
#[derive(Clone, Copy, Debug)]
enum Known {
    Unwanted,
    /// None of its spans or events has come yet.
    Wanted,
    Seen(Site),
}

type Hashes = BuildHasherDefault<Multiply>;

/// The call sites that a layer knows.
#[derive(Debug, Default)]
pub(crate) struct Sites(RwLock<HashMap<callsite::Identifier, Known, Hashes>>);

/// A call site, and what it stands for.
type Seen = OnceLock<(callsite::Identifier, Site)>;

/// Sites of the process, by the hashes of their call sites: each is the same in all layers, and
/// found here without a lock. The first that comes to a place stays there; others go to one of the
/// next, and where those are taken too they are looked up.
static SEEN: [Seen; 1 << SEEN_BITS] = [const { OnceLock::new() }; 1 << SEEN_BITS];

/// Ten thousand call sites take six places of ten.
const SEEN_BITS: u32 = 14;

/// In how many places a call site may be.
const PLACES: usize = 8;

/// The places of this call site, the first one first.
#[inline]
fn places(id: &callsite::Identifier) -> impl Iterator<Item = &'static Seen> {
    let first = (Hashes::default().hash_one(id) >> (64 - SEEN_BITS)) as usize;
    (first..first + PLACES).map(|place| &SEEN[place % SEEN.len()])
}

/// The site of this call site, if it has a place.
#[inline]
fn seen(id: &callsite::Identifier) -> Option<Site> {
    match places(id).next()?.get()? {
        (known, site) if known == id => Some(*site),
        _ => seen_beyond(id),
    }
}

/// The site of a call site that is not in its first place, if it has a place.
#[inline(never)]
fn seen_beyond(id: &callsite::Identifier) -> Option<Site> {
    let mut beyond = places(id).skip(1).map_while(OnceLock::get);
    beyond.find(|(known, _)| known == id).map(|(_, site)| *site)
}

/// Gives a site a place, if one of its is free.
fn see(id: &callsite::Identifier, site: Site) {
    let took = |place: &Seen| {
        let (known, _) = place.get_or_init(|| (id.clone(), site));
        known == id
    };
    places(id).any(took);
}

impl Sites {
    fn known(&self, id: &callsite::Identifier) -> Option<Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id).copied()
    }

    /// Whether this call site is wanted; `decide` says so the first time.
    pub(crate) fn wanted(&self, metadata: &Metadata<'_>, decide: impl FnOnce() -> bool) -> bool {
        let id = metadata.callsite();
        let known = self.known(&id).unwrap_or_else(|| {
            let mut sites = self.0.write().unwrap_or_else(PoisonError::into_inner);
            *sites
                .entry(id)
                .or_insert_with(|| if decide() { Known::Wanted } else { Known::Unwanted })
        });
        !matches!(known, Known::Unwanted)
    }

    /// Nothing of this call site is wanted any more.
    #[cfg(tokio_unstable)]
    pub(crate) fn unwant(&self, metadata: &Metadata<'_>) {
        let mut sites = self.0.write().unwrap_or_else(PoisonError::into_inner);
        sites.insert(metadata.callsite(), Known::Unwanted);
    }

    /// The site of this call site, which is wanted. Its points and targets are registered the first
    /// time.
    #[inline]
    pub(crate) fn get(&self, metadata: &Metadata<'_>) -> Site {
        let id = metadata.callsite();
        seen(&id).unwrap_or_else(|| self.look_up(metadata, id))
    }

    /// The site of a call site that has no place. Its points and targets are registered the first
    /// time.
    #[cold]
    #[inline(never)]
    fn look_up(&self, metadata: &Metadata<'_>, id: callsite::Identifier) -> Site {
        if let Some(Known::Seen(site)) = self.known(&id) {
            return site;
        }
        let site = if metadata.is_span() { span(metadata) } else { event(metadata) };
        see(&id, site);
        let mut sites = self.0.write().unwrap_or_else(PoisonError::into_inner);
        sites.insert(id, Known::Seen(site));
        site
    }
}

/// Whether a span is in the workspace's own code.
pub(crate) fn is_own(metadata: &Metadata<'_>) -> bool {
    match seen(&metadata.callsite()) {
        Some(site) => site.point().is_own(),
        None => metadata.file().is_none_or(is_own_file),
    }
}

/// The spans of all subscribers.
static SPANS: LazyLock<Mutex<HashMap<callsite::Identifier, &'static Span, Hashes>>> =
    LazyLock::new(Mutex::default);

/// Whether a span has been seen, by any subscriber.
pub(crate) fn any_span() -> bool {
    !SPANS.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// The site of a span.
fn span(metadata: &Metadata<'_>) -> Site {
    let mut spans = SPANS.lock().unwrap_or_else(PoisonError::into_inner);
    let new = || {
        let span = Span::new(metadata.name(), metadata.file(), metadata.line());
        &*Box::leak(Box::new(span))
    };
    Site::Span(spans.entry(metadata.callsite()).or_insert_with(new))
}

/// Whether the user named this event: unnamed ones are called `event <file>:<line>`, and records of
/// the `log` crate, which tracing-log makes events of, by one of two names. What only asks whether
/// there would be an event, `enabled!` and `event_enabled!`, is called `enabled <file>:<line>`:
/// whoever asks has something costly to log.
pub(crate) fn is_named(metadata: &Metadata<'_>) -> bool {
    let name = metadata.name();
    !name.starts_with("event ")
        && !name.starts_with("enabled ")
        && !["log event", "log record"].contains(&name)
}

/// The site of an event: a progress point by its own name, or by `file:line`.
fn event(metadata: &Metadata<'_>) -> Site {
    let name = metadata.name();
    let name = name.strip_prefix("event ").unwrap_or(name);
    Site::Event(point(PointKind::Progress, name, metadata.file(), metadata.line(), true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tests_support::Site as CallSite;
    use tracing_core::Callsite;

    #[test]
    fn a_call_site_whose_place_is_taken_is_found_nearby() {
        let sites = Sites::default();
        // So many that some meet in a place.
        let all: Vec<_> = (0..1_000).map(|line| CallSite::new("nearby.rs", line)).collect();
        for _ in 0..2 {
            for (line, call_site) in all.iter().enumerate() {
                let Site::Span(span) = sites.get(call_site.metadata()) else { panic!("a span") };
                assert_eq!(span.target.name(), format!("site {line}"));
            }
        }
        let id = |call_site: &&CallSite| call_site.metadata().callsite();
        let is_first = |id: &callsite::Identifier| {
            places(id).next().and_then(OnceLock::get).is_some_and(|(first, _)| first == id)
        };
        assert!(all.iter().map(id).any(|id| !is_first(&id) && seen(&id).is_some()));
    }
}
