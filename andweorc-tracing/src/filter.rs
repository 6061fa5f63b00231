//! Which spans and events are wanted.

use crate::site::{Sites, is_named, is_own};
#[cfg(tokio_unstable)]
use crate::tasks::{Part, is_wrapped};
use andweorc_core::hooks::enabled;
#[cfg(tokio_unstable)]
use andweorc_core::hooks::thread::was_enabled;
use andweorc_core::hooks::thread::when_switched;
use std::fmt;
use std::sync::{Arc, Once};
use tracing_core::{Interest, Level, LevelFilter, Metadata, callsite};
#[cfg(feature = "layer")]
use tracing_subscriber::layer::{Context, Filter};

type Choice = Box<dyn Fn(&Metadata<'_>) -> bool + Send + Sync>;

/// Lets the chosen spans and events through while andweorc is on, and nothing while it is off. So
/// the answers change: see [`ask_again_when_switched`].
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) sites: Arc<Sites>,
    pub(crate) spans: Option<Choice>,
    pub(crate) events: Option<Choice>,
    pub(crate) max_level: Option<LevelFilter>,
}

impl Wanted {
    /// Whether it is left out for its level. Where none was set, these are spans of dependencies at
    /// level `TRACE`: h2 has some forty for a request, which took 40 us of it.
    fn is_too_verbose(&self, metadata: &Metadata<'_>) -> bool {
        match self.max_level {
            Some(max) => *metadata.level() > max,
            None => metadata.is_span() && *metadata.level() == Level::TRACE && !is_own(metadata),
        }
    }

    /// Whether the spans or events of this call site are wanted when andweorc is on.
    pub(crate) fn wants(&self, metadata: &Metadata<'_>) -> bool {
        self.sites.wanted(metadata, || {
            #[cfg(tokio_unstable)]
            if let Some(part) = Part::of(metadata) {
                return part.is_wanted();
            }
            if self.is_too_verbose(metadata) {
                false
            } else if metadata.is_span() {
                self.spans.as_ref().is_none_or(|filter| filter(metadata))
            } else {
                match &self.events {
                    Some(filter) => filter(metadata),
                    None => is_named(metadata),
                }
            }
        })
    }
}

/// Makes tracing, which keeps the answers, ask for them again as andweorc is switched on or off.
pub(crate) fn ask_again_when_switched() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| when_switched(callsite::rebuild_interest_cache));
}

/// Whether andweorc is on for what this call site tells. What tokio tells of its tasks it goes on
/// to tell when andweorc is off again: nobody could say what has become of them meanwhile.
fn is_on(metadata: &Metadata<'_>) -> bool {
    #[cfg(tokio_unstable)]
    if Part::of(metadata).is_some() {
        return was_enabled();
    }
    let _ = metadata;
    enabled()
}

impl Wanted {
    /// Whether what this call site has to tell now is let through.
    pub(crate) fn lets_through(&self, metadata: &Metadata<'_>) -> bool {
        #[cfg(tokio_unstable)]
        if Part::of(metadata) == Some(Part::Task) && is_wrapped() {
            return false;
        }
        is_on(metadata) && self.wants(metadata)
    }

    /// Whether what this call site has to tell is let through, for as long as the answers hold.
    pub(crate) fn interest(&self, metadata: &'static Metadata<'static>) -> Interest {
        if !(is_on(metadata) && self.wants(metadata)) {
            return Interest::never();
        }
        #[cfg(tokio_unstable)]
        if Part::of(metadata) == Some(Part::Task) {
            // It depends on who spawns.
            return Interest::sometimes();
        }
        Interest::always()
    }

    /// The most verbose level that is let through, if there is one.
    pub(crate) fn most_verbose(&self) -> Option<LevelFilter> {
        // tokio reports its tasks at the most verbose level.
        #[cfg(tokio_unstable)]
        if was_enabled() {
            return None;
        }
        if enabled() { self.max_level } else { Some(LevelFilter::OFF) }
    }
}

#[cfg(feature = "layer")]
impl<S> Filter<S> for Wanted {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.lets_through(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.interest(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.most_verbose()
    }
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted")
            .field("spans_filtered", &self.spans.is_some())
            .field("events_filtered", &self.events.is_some())
            .field("max_level", &self.max_level)
            .finish_non_exhaustive()
    }
}
