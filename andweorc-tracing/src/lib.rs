//! **Internal to `andweorc`: no stability.** Any version may change any of this crate. Depend on
//! the facade crate `andweorc`, which exports what is for users.
//!
//! The tracing side of andweorc: a layer for which every span call site is a latency point and a
//! target, and a subscriber for programs that have no layers.
//!
//! # What a span is
//!
//! - A **latency point**: from its creation to its close, in virtual time, counted at the close.
//!   tracing closes a span when its last handle is dropped; children hold their parents open.
//! - A **target**: the time between enter and exit. An instrumented future enters its span at every
//!   poll.
//!
//! Spans are told apart by their call site: spans of one name in two places are two points and two
//! targets.
//!
//! # Cost
//!
//! No extensions of the registry: andweorc keeps open spans in places of its own, found by the
//! span's id without a lock, and a stack of open entries per thread. Not enabled, it asks tracing
//! for nothing: spans and events that no other layer wants cost what they cost without it, and a
//! callback for those of others one relaxed load and a branch.

mod filter;
#[cfg(feature = "layer")]
mod layer;
mod record;
mod site;
mod span_ids;
mod span_refs;
mod span_table;
mod subscriber;
#[cfg(tokio_unstable)]
mod tasks;
mod unseen;
mod wall;

#[cfg(feature = "layer")]
pub use layer::{Layer, layer};
pub use subscriber::{Subscriber, subscriber};
