//! Symbols in a program that is built without their reader, the feature `symbols`: there are none,
//! and the error says why.

pub use crate::charged::{Charged, Frame, NamedFrame, Place, SymbolError};
pub use crate::names::of_task;

use crate::stack_copy::{ChainEnd, StackCopy};
use andweorc_profile::settings::Scope;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The symbols of a program, of which there are none here: no value of this type exists.
#[derive(Debug)]
pub struct Symbols(Nothing);

/// A type without values. Inside of another one, so that code which is handed symbols compiles
/// without a word on what can't be reached.
#[derive(Debug)]
enum Nothing {}

impl Symbols {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always [`SymbolError::NotBuilt`].
    pub fn of_this_program() -> Result<Symbols, SymbolError> {
        Err(SymbolError::NotBuilt)
    }

    /// With this scope.
    pub fn with_scope(self, _: Scope) -> Symbols {
        match self.0 {}
    }

    /// Whether samples can be charged to lines.
    ///
    /// # Errors
    ///
    /// None, since there are no such symbols.
    pub fn lines(&self) -> Result<(), SymbolError> {
        match self.0 {}
    }

    /// The sampled shared objects that have no lines.
    pub fn objects_without_lines(&self) -> Vec<PathBuf> {
        match self.0 {}
    }

    /// Takes note of shared objects that came and went.
    pub fn refresh(&mut self) -> Vec<Range<u64>> {
        match self.0 {}
    }

    /// Returns what a sample is charged to.
    pub fn resolve(&mut self, _: &[u64]) -> Option<Charged> {
        match self.0 {}
    }

    /// The functions at an address.
    pub fn frames(&mut self, _: u64) -> Arc<[Frame]> {
        match self.0 {}
    }

    /// The call chain of a copied stack.
    pub fn unwind(&mut self, _: &StackCopy) -> (Vec<u64>, ChainEnd) {
        match self.0 {}
    }

    /// All frames at an address.
    pub fn frames_at(&mut self, _: u64) -> Vec<NamedFrame> {
        match self.0 {}
    }
}
