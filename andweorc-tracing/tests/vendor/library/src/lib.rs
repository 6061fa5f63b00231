//! A dependency, by where its code is.

use tracing::{Span, info_span};

/// A span that a library has around what it is asked for.
pub(crate) fn around() -> Span {
    info_span!("library_around")
}

/// And one inside.
pub(crate) fn inside() -> Span {
    info_span!("library_inside")
}
