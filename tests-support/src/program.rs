//! Programs that tests build and read.

use object::{Object, ObjectSymbol, SymbolKind};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Builds a program from this source as `shop`, in a folder of its own, from `src/main.rs`, with
/// these flags for rustc.
///
/// # Panics
///
/// When it does not compile, with what the compiler says.
pub fn build_program(source: &str, flags: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/main.rs"), source).unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let built = Command::new(rustc)
        .args([
            "--edition=2024",
            "--crate-name=shop",
            "-O",
            "-Clink-arg=-Wl,--build-id",
            "-o",
            "shop",
        ])
        .args(flags)
        .arg("src/main.rs")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(built.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&built.stderr));
    folder
}

/// The addresses in the functions of such a program whose symbols have `part` in them.
///
/// # Panics
///
/// When the file can't be read.
pub fn code_of(file: &Path, part: &str) -> Vec<u64> {
    let data = std::fs::read(file).unwrap();
    let object = object::File::parse(&*data).unwrap();
    let found = object.symbols().filter(|it| it.kind() == SymbolKind::Text);
    let found = found.filter(|it| {
        it.name().is_ok_and(|name| {
            name.contains(part) && (part.starts_with('_') || name.contains("shop"))
        })
    });
    found.flat_map(|it| it.address()..it.address() + it.size()).collect()
}
