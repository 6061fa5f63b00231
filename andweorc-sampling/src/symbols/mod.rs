//! From addresses to lines and functions: the program's own debug information, inlined frames
//! included.
//!
//! Opening maps the program's file and looks at its section headers, nothing else, however large it
//! is. Debug information is parsed unit by unit when an address of it is asked for, on the thread
//! that asks; it may be in the program, in a file of its own (build id, debug link), or split off
//! (`.dwp`, `.dwo`). Without any, functions have the names that the symbol table gives.
//!
//! Shared objects are read like the program, whenever they were loaded. Debug information shared by
//! several programs (dwz) is not read.

mod debug;
mod image;
mod module;
mod shared;
mod table;
#[cfg(test)]
mod tests;
mod unit;
mod unwind;

pub use crate::charged::{Charged, Frame, NamedFrame, Place, SymbolError};
pub use crate::names::of_task;

use crate::loaded;
use crate::stack_copy::{ChainEnd, StackCopy};
use andweorc_profile::settings::Scope;
use image::Image;
use module::Module;
use shared::Shared;
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use unwind::Unwinder;

/// The symbols of the running program and of the shared objects in it.
#[expect(missing_debug_implementations, reason = "the parsers of debug information have none")]
pub struct Symbols {
    program: Module,
    /// Where the program was loaded: what to take off an address to get the one in the file.
    bias: u64,
    /// `None` for a program that does not run.
    shared: Option<Shared>,
    scope: Scope,
    /// The frames of each address seen, innermost first.
    known: HashMap<u64, Arc<[Frame]>>,
    /// Names of their functions, each once.
    names: HashSet<Arc<str>>,
    unwinder: Unwinder,
}

impl Symbols {
    /// Opens the symbols of the running program, with the workspace's own crates in scope.
    ///
    /// # Errors
    ///
    /// When its file can't be read. Whether it has line information is not known yet: see
    /// [`lines`](Symbols::lines).
    pub fn of_this_program() -> Result<Symbols, SymbolError> {
        let bias = loaded::objects().1.first().map_or(0, |program| program.bias);
        let mut symbols = Symbols::of(Image::of_this_program(), loaded::program_path(), bias)?;
        symbols.shared = Some(Shared::default());
        symbols.refresh();
        Ok(symbols)
    }

    /// Opens the symbols of a program that does not run: addresses are those of its file.
    ///
    /// # Errors
    ///
    /// When its file can't be read.
    pub fn of_program(path: &Path) -> Result<Symbols, SymbolError> {
        Symbols::of(Image::open(path), path.to_owned(), 0)
    }

    /// Symbols of the program in a file that is called `path`.
    fn of(
        image: io::Result<&'static Image>,
        path: PathBuf,
        bias: u64,
    ) -> Result<Symbols, SymbolError> {
        let image = image.map_err(|error| SymbolError::Unreadable(error.to_string()))?;
        Ok(Symbols {
            program: Module::new(image, path),
            bias,
            shared: None,
            scope: Scope::default(),
            known: HashMap::new(),
            names: HashSet::new(),
            unwinder: Unwinder::default(),
        })
    }

    /// With this scope.
    pub fn with_scope(mut self, scope: Scope) -> Symbols {
        self.scope = scope;
        self.known.clear();
        self
    }

    /// Whether samples can be charged to lines.
    ///
    /// # Errors
    ///
    /// When neither the program nor a file that belongs to it has line information. Functions have
    /// names all the same, unless they are inlined or the program is stripped.
    pub fn lines(&self) -> Result<(), SymbolError> {
        self.program.lines()
    }

    /// The sampled shared objects that have no lines or can't be read, those of the system left
    /// out.
    pub fn objects_without_lines(&self) -> Vec<PathBuf> {
        self.shared.iter().flat_map(Shared::without_lines).map(Path::to_owned).collect()
    }

    /// Takes note of the shared objects that were loaded and unloaded since the last call. Returns
    /// where they have or had their code: what was found at addresses there holds no longer. Takes
    /// well under a microsecond if there are none.
    pub fn refresh(&mut self) -> Vec<Range<u64>> {
        let changed = self.shared.as_mut().map(Shared::refresh).unwrap_or_default();
        if !changed.is_empty() {
            self.known.retain(|address, _| !changed.iter().any(|code| code.contains(address)));
            self.unwinder.forget(&changed);
        }
        changed
    }

    /// The line that a sample is charged to, as in [`resolve`](Symbols::resolve).
    pub fn charged(&mut self, chain: &[u64]) -> Option<Place> {
        self.resolve(chain)?.line.map(|place| Place::clone(&place))
    }

    /// Returns what a sample is charged to, given the call chain of its thread, the innermost
    /// address first. Time in std, in dependencies and in andweorc is so charged to the caller.
    /// `None` when no frame is in scope.
    ///
    /// An address is looked up once; later calls cost a hash a frame.
    pub fn resolve(&mut self, chain: &[u64]) -> Option<Charged> {
        let mut charged: Option<Charged> = None;
        for (i, &address) in chain.iter().enumerate() {
            // All but the innermost are return addresses: the call is the instruction before.
            let address = if i == 0 { address } else { address.wrapping_sub(1) };
            for frame in self.frames(address).iter().filter(|frame| frame.is_own) {
                let charged = charged.get_or_insert_with(|| Charged {
                    line: frame.line.clone(),
                    function: Arc::clone(&frame.function),
                    functions: Vec::new(),
                });
                if !charged.functions.contains(&frame.function) {
                    charged.functions.push(Arc::clone(&frame.function));
                }
            }
        }
        charged
    }

    /// The functions at an address, innermost first, in scope or not; none where no code is known.
    /// As in [`resolve`](Symbols::resolve), an address is looked up once.
    pub fn frames(&mut self, address: u64) -> Arc<[Frame]> {
        if let Some(frames) = self.known.get(&address) {
            return Arc::clone(frames);
        }
        let found = self.frames_at(address);
        let names = &mut self.names;
        let frame = |NamedFrame { function, file, line, is_in_scope }| {
            let name = names.get(function.as_str()).cloned().unwrap_or_else(|| {
                let name: Arc<str> = function.as_str().into();
                names.insert(Arc::clone(&name));
                name
            });
            let line = file.zip(line).filter(|_| is_in_scope);
            let line = line.map(|(file, line)| Arc::new(Place { file, line, function }));
            Frame { function: name, is_own: is_in_scope, line }
        };
        let frames: Arc<[Frame]> = found.into_iter().map(frame).collect();
        self.known.insert(address, Arc::clone(&frames));
        frames
    }

    /// The call chain of a copied stack, and how it ends: the instruction, then for each caller an
    /// address inside its call.
    pub fn unwind(&mut self, stack: &StackCopy) -> (Vec<u64>, ChainEnd) {
        let Symbols { program, bias, shared, unwinder, .. } = self;
        unwinder.unwind(stack, |address| {
            let probe = address.wrapping_sub(*bias);
            if program.text.iter().any(|range| range.contains(&probe)) {
                return Some((program.image, *bias));
            }
            let (module, bias) = shared.as_mut()?.at(address)?;
            Some((module.image, bias))
        })
    }

    /// All frames at an address, innermost first. Empty where nothing is known.
    pub fn frames_at(&mut self, address: u64) -> Vec<NamedFrame> {
        let probe = address.wrapping_sub(self.bias);
        let is_shared = !self.program.text.iter().any(|range| range.contains(&probe));
        let found = if !is_shared {
            self.program.look_up(probe)
        } else if let Some((module, bias)) = self.shared.as_mut().and_then(|it| it.at(address)) {
            module.look_up(address.wrapping_sub(bias))
        } else {
            return Vec::new();
        };
        let home = self.program.home();
        let scope = &self.scope;
        let named = |(raw, function): (unit::RawFrame, String)| {
            // C libraries are nobody's own crate, wherever they were built.
            let may = !is_shared || raw.file.is_none() || raw.is_rust || !scope.is_default();
            let is_in_scope =
                may && scope.has(raw.file.as_deref().unwrap_or_default(), &function, home);
            let file = raw.file.map(|file| file[raw.inside..].to_owned());
            NamedFrame { function, file, line: raw.line, is_in_scope }
        };
        found.into_iter().map(named).collect()
    }
}
