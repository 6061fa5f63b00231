//! A dependency, by where its code is.

use tracing::{Span, info_span, trace_span};

/// A span that a library has around what it is asked for.
pub(crate) fn around() -> Span {
    info_span!("library_around")
}

/// And one inside.
pub(crate) fn inside() -> Span {
    info_span!("library_inside")
}

/// One around the smallest of its steps, there for whoever mends the library.
pub(crate) fn step() -> Span {
    trace_span!("library_step")
}
