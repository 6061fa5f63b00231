//! From addresses to lines: the program's own debug information, inlined frames included.

use addr2line::Loader;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::{error, fmt};

/// A source line, and the function that it is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Source file, as the compiler was told.
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

/// The symbols of the running program. Shared libraries are out of scope.
///
/// The debug information is mapped and parsed as it is asked for, on the thread that owns this.
#[expect(missing_debug_implementations, reason = "the loader has none")]
pub struct Symbols {
    loader: Loader,
    /// Where the program was loaded: what to take off an address to get the one in the file.
    bias: u64,
    /// The frames in scope of each address seen, innermost first.
    known: HashMap<u64, Arc<[Frame]>>,
}

// SAFETY: the loader owns its mapping and its arena and hands out nothing that outlives a call; it is not Sync because it caches
// through cells, and `Symbols` is used through `&mut self` only.
unsafe impl Send for Symbols {}

impl Symbols {
    /// Opens the symbols of the running program.
    ///
    /// # Errors
    ///
    /// When its file can't be read, or has no line information.
    pub fn of_this_program() -> Result<Symbols, SymbolError> {
        let path = Path::new("/proc/self/exe");
        let loader =
            Loader::new(path).map_err(|error| SymbolError::Unreadable(error.to_string()))?;
        let has_lines = loader.get_section_range(".debug_line".as_ref()).is_some();
        if !has_lines {
            return Err(SymbolError::NoLines);
        }
        Ok(Symbols { loader, bias: load_bias(), known: HashMap::new() })
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
        let frames = self.frames(address).into_iter().filter(|place| is_in_scope(&place.file));
        let frames: Arc<[Frame]> = frames
            .map(|place| Frame {
                function: place.function.as_str().into(),
                line: Some(Arc::new(place)),
            })
            .collect();
        self.known.insert(address, Arc::clone(&frames));
        frames
    }

    /// The frames at an address, innermost first. Empty where nothing is known.
    pub fn frames(&self, address: u64) -> Vec<Place> {
        let mut places = Vec::new();
        let Some(probe) = address.checked_sub(self.bias) else { return places };
        let Ok(mut frames) = self.loader.find_frames(probe) else { return places };
        while let Ok(Some(frame)) = frames.next() {
            let name =
                frame.function.as_ref().and_then(|f| f.demangle().ok().map(|n| n.into_owned()));
            if let Some(location) = frame.location
                && let (Some(file), Some(line)) = (location.file, location.line)
            {
                let function = name.as_deref().map_or("?".to_owned(), plain_name);
                places.push(Place { file: file.to_owned(), line, function });
            }
        }
        places
    }
}

/// Whether a file is the user's own: not std's, not a dependency's, not andweorc's.
fn is_in_scope(file: &str) -> bool {
    const FOREIGN: [&str; 4] = ["/rustc/", "/.rustup/", "/.cargo/registry/", "/.cargo/git/"];
    let own = env!("CARGO_MANIFEST_DIR");
    let ours = ["", "-tokio", "-tracing"].iter().any(|part| {
        let folder = own.replace(
            "andweorc-core",
            &format!("andweorc{}", if part.is_empty() { "-core" } else { part }),
        );
        file.starts_with(&format!("{folder}/src/"))
    });
    !ours && !FOREIGN.iter().any(|part| file.contains(part)) && !file.starts_with("library/")
}

/// A function's name without what the compiler added: hashes, closures, type arguments of impls.
fn plain_name(name: &str) -> String {
    let mut parts: Vec<&str> = name.split("::").collect();
    if parts.last().is_some_and(|last| last.len() == 17 && last.starts_with('h')) {
        parts.pop();
    }
    while parts.len() > 1
        && parts.last().is_some_and(|last| last.starts_with("{{") || last.starts_with('{'))
    {
        parts.pop();
    }
    parts.join("::")
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
                "the program has no line information, so samples can't be charged to lines: add to Cargo.toml\n\n    \
                 [profile.release]\n    debug = \"line-tables-only\"\n",
            ),
        }
    }
}

impl error::Error for SymbolError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_function_is_in_this_file() {
        let symbols = Symbols::of_this_program().unwrap();
        let address = an_address_of_this_function_is_in_this_file as fn() as usize as u64;
        let frames = symbols.frames(address);
        let last = frames.last().expect("the function has a frame");
        assert!(last.file.ends_with("symbols.rs"), "{frames:?}");
        assert!(
            last.function.ends_with("an_address_of_this_function_is_in_this_file"),
            "{frames:?}"
        );
    }

    #[test]
    fn a_chain_is_charged_to_its_innermost_frame_and_all_its_functions() {
        let mut symbols = Symbols::of_this_program().unwrap();
        let own = |place: &Place| place.file.ends_with("symbols.rs");
        let here = a_chain_is_charged_to_its_innermost_frame_and_all_its_functions as fn();
        let here = here as usize as u64;
        let place = symbols.frames(here).into_iter().find(own).expect("it has a line");
        // andweorc's own code is out of scope.
        assert_eq!(symbols.resolve(&[here, here]), None);
        let frame = Frame { function: place.function.as_str().into(), line: Some(Arc::new(place)) };
        let outer = Frame { function: "shop::main".into(), line: None };
        symbols.known.insert(1, [frame.clone(), outer.clone()].into());
        symbols.known.insert(6, [outer.clone()].into());
        let charged = symbols.resolve(&[here, 2, 7, 2]).unwrap();
        assert_eq!((charged.line, &charged.function), (frame.line, &frame.function));
        assert_eq!(charged.functions, [frame.function, outer.function.clone()]);
        assert_eq!(symbols.resolve(&[here, 7]).unwrap().line, None);
        assert_eq!(symbols.charged(&[here, 7]), None);
    }

    #[test]
    fn scope_is_the_users_own_code() {
        assert!(is_in_scope("/home/me/shop/src/main.rs"));
        assert!(is_in_scope("src/main.rs"));
        assert!(!is_in_scope("/rustc/abc/library/core/src/hint.rs"));
        assert!(!is_in_scope("/home/me/.cargo/registry/src/x/tokio-1/src/lib.rs"));
        assert!(!is_in_scope(concat!(env!("CARGO_MANIFEST_DIR"), "/src/pause.rs")));
    }

    #[test]
    fn names_are_as_a_person_would_write_them() {
        assert_eq!(
            plain_name("shop::stock::update::{{closure}}::h0123456789abcdef"),
            "shop::stock::update"
        );
        assert_eq!(plain_name("shop::main"), "shop::main");
    }
}
