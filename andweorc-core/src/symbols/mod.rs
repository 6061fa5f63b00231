//! From addresses to lines and functions: the program's own debug information, inlined frames included.
//!
//! Opening maps the program's file and looks at its section headers, nothing else, however large it is. Debug information is parsed unit by
//! unit when an address of it is asked for, on the thread that asks; it may be in the program, in a file of its own (build id, debug link), or
//! split off (`.dwp`, `.dwo`). Without any, functions have the names that the symbol table gives.
//!
//! Shared libraries are out of scope, and so is debug information shared by several programs (dwz).

mod debug;
mod image;
mod name;
mod scope;
mod table;
#[cfg(test)]
mod tests;
mod unit;

pub use scope::{Scope, ScopeError, is_own_file};

use debug::Debug;
use image::Image;
use object::{Object, ObjectSegment, SegmentFlags};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{error, fmt, fs};
use table::Table;
use unit::{RawFrame, RawName};

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

/// What a sample is charged to: all of it in scope, inlined frames included.
///
/// As targets, a line is `TargetKind::Line` with its place, and a function `TargetKind::Function` with its name alone: one name stands for all
/// instances of a generic function, its closures and its async body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charged {
    /// The line of the innermost frame in scope. `None` where the program has no line information for it.
    pub line: Option<Arc<Place>>,
    /// The function of that frame: what the sample is charged to exclusively.
    pub function: Arc<str>,
    /// All functions in scope on the chain, the innermost first, each once: what the sample is charged to inclusively. The first is
    /// [`function`](Charged::function).
    pub functions: Vec<Arc<str>>,
}

/// A frame in scope.
#[derive(Clone, Debug)]
struct Frame {
    line: Option<Arc<Place>>,
    function: Arc<str>,
}

/// The symbols of the running program.
#[expect(missing_debug_implementations, reason = "the parsers of debug information have none")]
pub struct Symbols {
    path: PathBuf,
    program: &'static Image,
    /// Where the program was loaded: what to take off an address to get the one in the file.
    bias: u64,
    /// Where it has code, as the file has it.
    text: Vec<Range<u64>>,
    scope: Scope,
    /// The file with the debug information, the program or another.
    with_lines: OnceCell<Option<&'static Image>>,
    debug: Option<Debug>,
    table: OnceCell<Table>,
    home: OnceCell<Option<String>>,
    /// The frames in scope of each address seen, innermost first.
    known: HashMap<u64, Arc<[Frame]>>,
}

impl Symbols {
    /// Opens the symbols of the running program, with the workspace's own crates in scope.
    ///
    /// # Errors
    ///
    /// When its file can't be read. Whether it has line information is not known yet: see [`lines`](Symbols::lines).
    pub fn of_this_program() -> Result<Symbols, SymbolError> {
        let exe = Path::new("/proc/self/exe");
        let path = fs::read_link(exe).unwrap_or_else(|_| exe.to_owned());
        Symbols::of(exe, path, load_bias())
    }

    /// Opens the symbols of a program that does not run: addresses are those of its file.
    ///
    /// # Errors
    ///
    /// When its file can't be read.
    pub fn of_program(path: &Path) -> Result<Symbols, SymbolError> {
        Symbols::of(path, path.to_owned(), 0)
    }

    /// Those of the program in the file `exe`, which is called `path`.
    fn of(exe: &Path, path: PathBuf, bias: u64) -> Result<Symbols, SymbolError> {
        let program =
            Image::open(exe).map_err(|error| SymbolError::Unreadable(error.to_string()))?;
        let is_code = |segment: &object::Segment<'_, '_>| matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X));
        let text = program.object().segments().filter(is_code);
        let text = text.map(|it| it.address()..it.address().saturating_add(it.size())).collect();
        Ok(Symbols {
            path,
            program,
            bias,
            text,
            scope: Scope::default(),
            with_lines: OnceCell::new(),
            debug: None,
            table: OnceCell::new(),
            home: OnceCell::new(),
            known: HashMap::new(),
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
    /// When neither the program nor a file that belongs to it has line information. Functions have names all the same, unless they are inlined.
    pub fn lines(&self) -> Result<(), SymbolError> {
        self.with_lines().map(drop).ok_or(SymbolError::NoLines)
    }

    fn with_lines(&self) -> Option<&'static Image> {
        *self.with_lines.get_or_init(|| {
            if self.program.has(".debug_line") {
                return Some(self.program);
            }
            image::separate(self.program, &self.path)
        })
    }

    /// The line that a sample is charged to, as in [`resolve`](Symbols::resolve).
    pub fn charged(&mut self, chain: &[u64]) -> Option<Place> {
        self.resolve(chain)?.line.map(|place| Place::clone(&place))
    }

    /// What a sample is charged to, given the call chain of its thread, the innermost address first. Time in std, in dependencies and in
    /// andweorc is so charged to the caller. `None` when no frame is in scope.
    ///
    /// An address is looked up once; later calls cost a hash a frame.
    pub fn resolve(&mut self, chain: &[u64]) -> Option<Charged> {
        let mut charged: Option<Charged> = None;
        for (i, &address) in chain.iter().enumerate() {
            // All but the innermost are return addresses: the call is the instruction before.
            let address = if i == 0 { address } else { address.wrapping_sub(1) };
            for frame in self.in_scope(address).iter() {
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

    fn in_scope(&mut self, address: u64) -> Arc<[Frame]> {
        if let Some(frames) = self.known.get(&address) {
            return Arc::clone(frames);
        }
        let probe = address.wrapping_sub(self.bias);
        if !self.text.iter().any(|range| range.contains(&probe)) {
            return Arc::new([]);
        }
        let found = self.look_up(probe);
        let home = self.home();
        let scope = &self.scope;
        let found = found.into_iter().filter(|(raw, function)| {
            scope.has(raw.file.as_deref().unwrap_or_default(), function, home)
        });
        let frames: Arc<[Frame]> = found
            .map(|(raw, function)| Frame {
                line: raw.file.zip(raw.line).map(|(file, line)| {
                    let file = file[raw.inside..].to_owned();
                    Arc::new(Place { file, line, function: function.clone() })
                }),
                function: function.into(),
            })
            .collect();
        self.known.insert(address, Arc::clone(&frames));
        frames
    }

    /// The frames at an address of the file with the names of their functions, innermost first. Empty where nothing is known.
    fn look_up(&mut self, probe: u64) -> Vec<(RawFrame, String)> {
        if self.debug.is_none()
            && let Some(image) = self.with_lines()
        {
            self.debug = Debug::new(image, &self.path).ok();
        }
        let (mut frames, root) =
            self.debug.as_mut().map(|debug| debug.frames(probe)).unwrap_or_default();
        if frames.is_empty() && self.table().name(probe).is_some() {
            frames.push(RawFrame::default());
        }
        let mut named: Vec<(RawFrame, String)> = Vec::with_capacity(frames.len());
        // From the outside in: what has no name of its own has that of what it is in.
        for frame in frames.into_iter().rev() {
            let name = match (&frame.name, named.is_empty()) {
                (Some(RawName::Linked(name)), _) => name::plain(name),
                (bare, true) => match (self.table().name(probe), bare) {
                    (Some(name), _) => name::plain(name),
                    (None, Some(RawName::Bare(name))) => in_file(name, &frame, &root),
                    (None, _) => "?".to_owned(),
                },
                (Some(RawName::Bare(name)), false) if name::is_nameless(name) => {
                    let same = named.iter().rev().find(|(outer, _)| outer.file == frame.file);
                    same.or(named.last()).map_or("?".to_owned(), |(_, name)| name.clone())
                }
                (Some(RawName::Bare(name)), false) => in_file(name, &frame, &root),
                (None, false) => "?".to_owned(),
            };
            named.push((frame, name));
        }
        named.reverse();
        named
    }

    fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let images = [Some(self.program), self.with_lines()];
            Table::of(images.into_iter().flatten())
        })
    }

    /// The crate of `main`, where no file tells whose a function is.
    fn home(&self) -> Option<&str> {
        let find = || if self.debug.is_some() { None } else { self.table().home() };
        self.home.get_or_init(find).as_deref()
    }
}

/// A bare name with the modules of the file that it is in.
fn in_file(name: &str, frame: &RawFrame, root: &Option<(String, String)>) -> String {
    let root = root.as_ref().map(|(folder, package)| (folder.as_str(), package.as_str()));
    name::in_file(name, frame.file.as_deref().unwrap_or_default(), root)
}

/// Where the main program was loaded.
fn load_bias() -> u64 {
    extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        bias: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the loader hands a valid `info`, and `bias` is the pointer to a u64 given below.
        unsafe { *bias.cast::<u64>() = (*info).dlpi_addr };
        // The first object is the program; stop there.
        1
    }
    let mut bias = 0u64;
    // SAFETY: the callback only writes to `bias`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut bias).cast()) };
    bias
}

/// The program's symbols can't be used.
#[derive(Debug)]
pub enum SymbolError {
    /// Its file can't be read.
    Unreadable(String),
    /// It has no line information.
    NoLines,
}

impl fmt::Display for SymbolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SymbolError::Unreadable(why) => {
                write!(f, "the program's debug information can't be read: {why}")
            }
            SymbolError::NoLines => f.write_str(
                "the program has no line information, so samples can't be charged to lines, and inlined functions are not seen: add to Cargo.toml\n\n    \
                 [profile.release]\n    debug = \"line-tables-only\"\n",
            ),
        }
    }
}

impl error::Error for SymbolError {}
