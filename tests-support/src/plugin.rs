//! Shared objects that tests build and load.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A shared object, in a folder of its own with the source that it was built from.
#[derive(Debug)]
pub struct Plugin {
    folder: TempDir,
    name: String,
}

impl Plugin {
    /// A source: `run` calls `stock::update`, which works for so many rounds, and `inside` tells
    /// where that is.
    pub const STOCK: &str = r#"
pub mod stock {
    #[inline(never)]
    pub fn update(rounds: u64) -> u64 {
        (0..rounds).fold(1, |x, round| std::hint::black_box(x ^ (x << 7) ^ round)) // line 5
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn run(rounds: u64) -> u64 {
    stock::update(rounds)
}
#[unsafe(no_mangle)]
pub extern "C" fn inside(_: u64) -> u64 {
    stock::update as fn(u64) -> u64 as usize as u64
}
"#;

    /// Builds the crate `name` from this source, in `src/lib.rs`, with these flags for rustc.
    ///
    /// # Errors
    ///
    /// When it does not compile, with what the compiler says.
    pub fn build(name: &str, source: &str, flags: &[&str]) -> Result<Plugin, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let plugin = Plugin { folder, name: name.to_owned() };
        plugin.rebuild(source, flags)?;
        Ok(plugin)
    }

    /// Builds it anew in the same place, as a new file.
    ///
    /// # Errors
    ///
    /// When it does not compile, with what the compiler says.
    pub fn rebuild(&self, source: &str, flags: &[&str]) -> Result<(), String> {
        let told = |error: std::io::Error| error.to_string();
        std::fs::create_dir_all(self.folder.path().join("src")).map_err(told)?;
        std::fs::write(self.folder.path().join("src/lib.rs"), source).map_err(told)?;
        // A loaded object keeps the file that it was loaded from.
        match std::fs::remove_file(self.path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(told(error)),
            _ => {}
        }
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let built = Command::new(rustc)
            .args(["--edition=2024", "--crate-type=cdylib", "-O", "--crate-name", &self.name])
            .args(flags)
            .arg("-o")
            .arg(self.path())
            .arg("src/lib.rs")
            .current_dir(self.folder.path())
            .output()
            .map_err(told)?;
        if built.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&built.stderr).into_owned())
        }
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(format!("lib{}.so", self.name))
    }

    /// Loads it.
    ///
    /// # Panics
    ///
    /// When the loader refuses it.
    pub fn load(&self) -> Loaded {
        Loaded::open(&self.path())
    }
}

/// A loaded shared object; unloaded when dropped.
#[derive(Debug)]
pub struct Loaded(*mut c_void);

// SAFETY: the loader locks what it does with a handle.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Loaded {
    /// Loads a file.
    ///
    /// # Panics
    ///
    /// When the loader refuses it.
    pub fn open(path: &Path) -> Loaded {
        let path_bytes = CString::new(path.as_os_str().as_bytes()).expect("paths have no zeros");
        // SAFETY: the path is a string, and what tests load does nothing as it is loaded.
        let handle =
            unsafe { libc::dlopen(path_bytes.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{} can't be loaded", path.display());
        Loaded(handle)
    }

    /// Address of what it exports under this name.
    ///
    /// # Panics
    ///
    /// When it exports no such thing.
    pub fn address(&self, name: &str) -> u64 {
        let bytes = CString::new(name).expect("names have no zeros");
        // SAFETY: the object is loaded.
        let address = unsafe { libc::dlsym(self.0, bytes.as_ptr()) };
        assert!(!address.is_null(), "it has no `{name}`");
        address as u64
    }

    /// A function that it exports under this name.
    ///
    /// # Safety
    ///
    /// The function is of this type, and is called only while the object is loaded.
    pub unsafe fn function(&self, name: &str) -> extern "C" fn(u64) -> u64 {
        let address = self.address(name) as *const ();
        // SAFETY: as the caller says.
        unsafe { std::mem::transmute(address) }
    }

    /// The place of `stock::update` of [`Plugin::STOCK`].
    pub fn inside(&self) -> u64 {
        // SAFETY: it is of this type there.
        let inside = unsafe { self.function("inside") };
        inside(0)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: it is loaded, and nobody else unloads it.
        unsafe { libc::dlclose(self.0) };
    }
}
