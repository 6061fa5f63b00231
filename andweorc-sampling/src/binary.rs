//! Facts about the running program. They are read from its file by the feature `symbols`; without
//! it nothing is known.

#[cfg(feature = "symbols")]
mod read;

/// Facts about the program that the profile's header tells.
#[derive(Debug, Default)]
pub struct Binary {
    /// The build id in hex. Rust binaries have one where the linker was told so (`-Wl,--build-id`).
    pub build_id: Option<String>,
    /// The version of tokio.
    pub tokio: Option<String>,
    /// Crates that tell the time by the processor's counter, past the clock that `Instant` reads.
    pub by_counter: Vec<&'static str>,
}

impl Binary {
    /// That of this process.
    pub fn running() -> Binary {
        #[cfg(feature = "symbols")]
        return read::running();
        #[cfg(not(feature = "symbols"))]
        return Binary::default();
    }
}
