//! Span call sites that are made while the program runs.

use std::sync::OnceLock;
use tracing::callsite::{Callsite, Identifier};
use tracing::field::FieldSet;
use tracing::metadata::{Kind, Level};
use tracing::subscriber::Interest;
use tracing::{Metadata, Span};

/// A call site of a span, as the macros of tracing make them: there they are statics.
#[derive(Debug, Default)]
pub struct Site(OnceLock<Metadata<'static>>);

impl Callsite for Site {
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &Metadata<'_> {
        self.0.get().expect("set when it was made")
    }
}

impl Site {
    /// That of line `line` of a file of this name, for good; its spans are called `site {line}`.
    pub fn new(file: &'static str, line: u32) -> &'static Site {
        let site: &'static Site = Box::leak(Box::default());
        let fields = FieldSet::new(&[], Identifier(site));
        let name = Box::leak(format!("site {line}").into_boxed_str());
        let metadata = Metadata::new(
            name,
            "sites",
            Level::INFO,
            Some(file),
            Some(line),
            None,
            fields,
            Kind::SPAN,
        );
        assert!(site.0.set(metadata).is_ok(), "nobody knows it yet");
        site
    }

    /// A span. The subscriber is not asked whether it wants it.
    pub fn span(&'static self) -> Span {
        let metadata = self.0.get().expect("set when it was made");
        Span::new(metadata, &metadata.fields().value_set(&[]))
    }
}
