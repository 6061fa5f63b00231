//! Finds out why a run has seen no span, in a program with a layer or a subscriber of andweorc's.
//!
//! Between a span and a layer there are, in this order:
//!
//! 1. what tracing's features leave out when the program is compiled ([`STATIC_MAX_LEVEL`]);
//! 2. the most verbose level of all subscribers ([`LevelFilter::current`]), which the filters of
//!    whole subscribers hold down: call sites beyond it are not even registered;
//! 3. whether the subscriber is the default where the span is made;
//! 4. the filters of the whole subscriber, each of which can refuse a call site for all layers;
//! 5. the layer's own filter.

use crate::filter::Wanted;
use crate::site;
use andweorc_core::hooks::hints;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use tracing::level_filters::STATIC_MAX_LEVEL;
use tracing_core::dispatcher::WeakDispatch;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::NoSubscriber;
use tracing_core::{
    Dispatch, Event, Interest, LevelFilter, Metadata, Subscriber, callsite, dispatcher,
};

/// How many call sites are named.
const NAMED: usize = 3;

/// The subscribers with a layer of andweorc's, and its own.
fn installed() -> MutexGuard<'static, Vec<WeakDispatch>> {
    static INSTALLED: Mutex<Vec<WeakDispatch>> = Mutex::new(Vec::new());
    INSTALLED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A layer or a subscriber was made: from now on it is a question why no span is seen.
pub(crate) fn made() {
    static ASKED: Once = Once::new();
    ASKED.call_once(|| hints::add(why_no_span));
}

/// A layer or a subscriber is part of `dispatch`.
pub(crate) fn install(dispatch: &Dispatch) {
    installed().push(dispatch.downgrade());
}

/// Says what hides all spans. `None` if some were seen, or if nothing is known that hides any.
fn why_no_span() -> Option<String> {
    if site::any_span() {
        return None;
    }
    let weak = installed().clone();
    let dispatches: Vec<Dispatch> = weak.iter().filter_map(WeakDispatch::upgrade).collect();
    let why = match &dispatches[..] {
        [] if weak.is_empty() => {
            "`andweorc::layer()` or `subscriber()` was made and is in no subscriber that was installed: add `.init()`, and look at what \
             `try_init()` and `set_global_default` return"
                .to_owned()
        }
        [] => "the subscriber with andweorc's layer was the default of a scope that has ended: make it the default of the program, with `.init()`"
            .to_owned(),
        all => compiled_out(STATIC_MAX_LEVEL)
            .or_else(not_the_default)
            .or_else(|| refused(all))
            .or_else(|| too_verbose(all))?,
    };
    Some(format!("no span was seen, since {why}"))
}

/// The most verbose level that andweorc itself asks for.
fn asked_for(dispatches: &[Dispatch]) -> LevelFilter {
    let of = |to: &Dispatch| to.downcast_ref::<Wanted>().and_then(|wanted| wanted.max_level);
    dispatches
        .iter()
        .map(|to| of(to).unwrap_or(LevelFilter::TRACE))
        .max()
        .unwrap_or(LevelFilter::TRACE)
}

/// tracing's features leave most spans out of the program.
fn compiled_out(left_in: LevelFilter) -> Option<String> {
    let feature = if cfg!(debug_assertions) { "max_level_.." } else { "release_max_level_.." };
    (left_in < LevelFilter::INFO).then(|| {
        format!(
            "tracing was compiled to leave out what is more verbose than `{left_in}`: look for its feature `{feature}` in Cargo.toml, and in those of \
             dependencies (`cargo tree -e features -i tracing`)"
        )
    })
}

/// Call sites that are more verbose than a level get to no subscriber.
fn too_verbose(dispatches: &[Dispatch]) -> Option<String> {
    let current = LevelFilter::current();
    // Most spans are of level `INFO`. Whether there are more verbose ones nobody knows.
    let is_clear = current < LevelFilter::INFO;
    let up_to_it =
        if is_clear { String::new() } else { format!("there is none up to `{current}`, and ") };
    (current < asked_for(dispatches).min(STATIC_MAX_LEVEL)).then(|| {
        format!(
            "{up_to_it}a filter of the whole subscriber lets nothing through that is more verbose than `{current}` ({}): {GIVE_IT_TO_THE_LOGS}",
            rust_log()
        )
    })
}

const GIVE_IT_TO_THE_LOGS: &str = "an `EnvFilter`, `LevelFilter` or `Targets` that was added by `.with(..)`, `with_env_filter` or `with_max_level` holds \
     for all layers; give it to the one that writes logs, `fmt::layer().with_filter(..)`";

fn rust_log() -> String {
    env::var("RUST_LOG")
        .map_or("RUST_LOG is not set".to_owned(), |set| format!("RUST_LOG is `{set}`"))
}

/// The subscriber is there, but not for all threads.
///
/// A thread of andweorc's own asks, which has the default of the program.
fn not_the_default() -> Option<String> {
    let is = |is: fn(&Dispatch) -> bool| dispatcher::get_default(is);
    let scoped = "the subscriber with andweorc's layer is the default of some threads only (`set_default`, `with_default`)";
    if is(|default| default.is::<NoSubscriber>()) {
        Some(format!("{scoped}: make it the default of the program, with `.init()`"))
    } else if is(|default| default.downcast_ref::<Wanted>().is_none()) {
        Some(format!("{scoped}, and the program has another: add `andweorc::layer()` to that one"))
    } else {
        None
    }
}

/// There are spans, and a filter refuses each of their call sites.
fn refused(dispatches: &[Dispatch]) -> Option<String> {
    let all: Vec<_> = call_sites().into_iter().filter(|it| is_of_interest(it)).collect();
    let by_all = |refuses: fn(&Dispatch, &'static Metadata<'static>) -> bool| {
        let is = |it: &&'static Metadata<'static>| dispatches.iter().all(|to| refuses(to, it));
        all.iter().copied().filter(is).collect::<Vec<_>>()
    };
    let own = by_all(|to, site| to.downcast_ref::<Wanted>().is_some_and(|own| !own.wants(site)));
    let whole = by_all(|to, site| {
        to.downcast_ref::<Wanted>().is_none_or(|own| own.wants(site)) && !to.enabled(site)
    });
    if all.is_empty() {
        None
    } else if own.len() == all.len() {
        Some(format!(
            "andweorc's own filter refuses all of them ({}): see `with_spans` and `with_max_level` where `andweorc::layer()` is made",
            names(&own)
        ))
    } else if whole.is_empty() {
        None
    } else {
        Some(format!(
            "a filter of the whole subscriber refuses {} ({}): {GIVE_IT_TO_THE_LOGS}",
            names(&whole),
            rust_log()
        ))
    }
}

/// Whether this call site is a span of the workspace's own code, and none that tokio has for tasks.
fn is_of_interest(site: &Metadata<'_>) -> bool {
    site.is_span()
        && site::is_own(site)
        && !site.target().starts_with("tokio::")
        && site.target() != "tokio"
}

fn names(sites: &[&'static Metadata<'static>]) -> String {
    let mut names: Vec<_> = sites.iter().map(|site| format!("`{}`", site.name())).collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let list = names.join(", ");
    if more == 0 { list } else { format!("{list} and {more} more") }
}

/// The call sites that tracing knows.
///
/// tracing tells them to each new subscriber, whatever others want. So a new one is made that
/// wants nothing, and forgotten again.
fn call_sites() -> Vec<&'static Metadata<'static>> {
    let sites = Arc::<Mutex<Vec<&'static Metadata<'static>>>>::default();
    let census = Census(Arc::clone(&sites));
    // tracing asks the program's own subscribers anew too, and their code may panic.
    let counted = catch_unwind(AssertUnwindSafe(|| drop(Dispatch::new(census))));
    if counted.is_ok() {
        // The answers that tracing keeps take the forgotten subscriber into account until then.
        callsite::rebuild_interest_cache();
    }
    std::mem::take(&mut sites.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A subscriber that wants nothing, and writes down what it is asked for.
struct Census(Arc<Mutex<Vec<&'static Metadata<'static>>>>);

impl Subscriber for Census {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(metadata);
        Interest::never()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::OFF)
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(u64::MAX)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_are_compiled_out_are_told_with_the_feature() {
        for left_in in [LevelFilter::OFF, LevelFilter::ERROR, LevelFilter::WARN] {
            let told = compiled_out(left_in).unwrap();
            assert!(
                told.contains(&format!("`{left_in}`")) && told.contains("max_level_"),
                "{told}"
            );
        }
        assert_eq!(compiled_out(LevelFilter::INFO), None);
    }
}
