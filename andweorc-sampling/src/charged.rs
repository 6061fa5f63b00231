//! The line and the functions that a sample is charged to, and why none can be found.

use std::sync::Arc;
use std::{error, fmt};

/// A source line, and the function that it is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Source file: within the workspace, or else as the compiler was told.
    pub file: String,
    /// Line, 1-based.
    pub line: u32,
    /// Function, as a person would write it.
    pub function: String,
}

impl fmt::Display for Place {
    /// `src/main.rs:12 (checkout::stock::update)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ({})", self.file, self.line, self.function)
    }
}

/// The line and functions that a sample is charged to: all in scope, inlined frames included.
///
/// As targets, a line is `TargetKind::Line` with its place, and a function `TargetKind::Function`
/// with its name alone: one name stands for all instances of a generic function, its closures and
/// its async body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charged {
    /// The line of the innermost frame in scope. `None` where the program has no line information
    /// for it.
    pub line: Option<Arc<Place>>,
    /// The function of that frame: what the sample is charged to exclusively.
    pub function: Arc<str>,
    /// All functions in scope on the chain, the innermost first, each once: what the sample is
    /// charged to inclusively. The first is [`function`](Charged::function).
    pub functions: Vec<Arc<str>>,
}

/// A frame of a call chain, whether or not it is in scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFrame {
    /// The function's name.
    pub function: String,
    /// Its source file: within the workspace, or else as the compiler was told.
    pub file: Option<String>,
    /// The line in it, 1-based.
    pub line: Option<u32>,
    /// Whether it is in scope.
    pub is_in_scope: bool,
}

/// A function that the code at an address is of, by itself or inlined.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Its name, as a person would write it.
    pub function: Arc<str>,
    /// Whether it is in scope.
    pub is_own: bool,
    /// Line of the address in it; `None` out of scope, and where it is not known.
    pub line: Option<Arc<Place>>,
}

/// The program's symbols can't be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SymbolError {
    /// Its file can't be read.
    Unreadable(String),
    /// The program has no line information.
    NoLines,
    /// Neither line information nor names of functions are in it.
    Stripped,
    /// Its debug information was moved to a file of this name, which was not found.
    Moved(String),
    /// The reader of symbols is not in the program: it is built without the feature `sampling`.
    NotBuilt,
}

impl fmt::Display for SymbolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ADD: &str = "[profile.release]\n    debug = \"line-tables-only\"\n";
        match self {
            SymbolError::Unreadable(why) => {
                write!(f, "the program's debug information can't be read: {why}")
            }
            SymbolError::NoLines => write!(
                f,
                "the program has no line information, so samples can't be charged to lines, and inlined functions are not seen (they count as \
                 part of their callers): add to Cargo.toml\n\n    {ADD}"
            ),
            SymbolError::Stripped => write!(
                f,
                "the program is stripped, so neither its functions nor its lines have names: take `strip` out of the profile in Cargo.toml, and \
                 have line tables\n\n    {ADD}    strip = \"none\"\n"
            ),
            SymbolError::Moved(file) => write!(
                f,
                "the program's debug information was moved to the file `{file}`, which is neither beside the program, nor in `.debug/` there, nor \
                 under /usr/lib/debug, or is that of another build: put it there, or build without `strip`, with\n\n    {ADD}"
            ),
            SymbolError::NotBuilt => f.write_str(
                "lines and functions as targets need andweorc's feature `sampling`, which this program is built without \
                 (`default-features = false`): add it to andweorc's features in Cargo.toml",
            ),
        }
    }
}

impl error::Error for SymbolError {}
