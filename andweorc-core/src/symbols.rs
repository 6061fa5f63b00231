//! From addresses to lines: the program's own debug information, inlined frames included.

use addr2line::Loader;
use std::collections::HashMap;
use std::path::Path;
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

/// The symbols of the running program. Shared libraries are out of scope.
///
/// The debug information is mapped and parsed as it is asked for, on the thread that owns this.
#[expect(missing_debug_implementations, reason = "the loader has none")]
pub struct Symbols {
    loader: Loader,
    /// Where the program was loaded: what to take off an address to get the one in the file.
    bias: u64,
    /// The frames in scope of each address seen, innermost first.
    known: HashMap<u64, Vec<Place>>,
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

    /// The line that a sample is charged to: of its chain's innermost frame in scope, inlined frames included. Time in std, in
    /// dependencies and in andweorc is so charged to the caller's line.
    pub fn charged(&mut self, chain: &[u64]) -> Option<Place> {
        chain.iter().enumerate().find_map(|(i, &address)| {
            // All but the innermost are return addresses: the call is the instruction before.
            let address = if i == 0 { address } else { address.wrapping_sub(1) };
            self.in_scope(address).first().cloned()
        })
    }

    fn in_scope(&mut self, address: u64) -> &[Place] {
        if !self.known.contains_key(&address) {
            let frames = self.frames(address).into_iter().filter(|place| is_in_scope(&place.file));
            let frames = frames.collect();
            self.known.insert(address, frames);
        }
        &self.known[&address]
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
