//! Reading facts about the running program from its file.
//!
//! A library does not learn the versions of other crates when it is built. But the paths of their
//! sources are in each program that can panic in them, stripped or not:
//! `.../tokio-1.54.1/src/runtime/builder.rs`, as cargo unpacks them. A crate from git or a folder
//! has no version there.

use super::Binary;
use object::{Object, ObjectSection, ObjectSymbol, ReadCache};
use std::fs::File;
use std::path::Path;

/// Crates that do so on x86-64.
const BY_COUNTER: [&str; 3] = ["quanta", "minstant", "fastant"];

/// The facts about this process.
pub(super) fn running() -> Binary {
    read(Path::new("/proc/self/exe")).unwrap_or_default()
}

fn read(path: &Path) -> Option<Binary> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect();
    let constants = file.section_by_name(".rodata").and_then(|section| section.data().ok());
    Some(Binary {
        build_id: file.build_id().ok().flatten().map(hex),
        tokio: constants.and_then(|data| version_in(data, "tokio")),
        by_counter: crates_in(file.symbols().filter_map(|it| it.name().ok()), &BY_COUNTER),
    })
}

/// The crates, of those `asked` for, that have functions or statics among these symbols. A stripped
/// program has none.
fn crates_in<'s>(
    symbols: impl Iterator<Item = &'s str>,
    asked: &[&'static str],
) -> Vec<&'static str> {
    // By the legacy mangling a path begins `_ZN6quanta`; by v0 its crate is `Cs1x_6quanta`.
    let of = |name: &&'static str| ["N", "_"].map(|before| format!("{before}{}{name}", name.len()));
    let mut found: Vec<_> = asked.iter().map(|name| (*name, of(name), false)).collect();
    for symbol in symbols {
        for (_, marks, is_there) in &mut found {
            *is_there |= marks.iter().any(|mark| symbol.contains(mark.as_str()));
        }
    }
    found.into_iter().filter_map(|(name, _, is_there)| is_there.then_some(name)).collect()
}

/// The version in the paths `/<name>-<version>/src/`. `None` when there is no such path, or several
/// versions: which one runs is not known then.
fn version_in(data: &[u8], name: &str) -> Option<String> {
    let mut parts = data.split(|&byte| byte == b'/').peekable();
    let mut found: Option<&str> = None;
    while let Some(part) = parts.next() {
        let version = part
            .strip_prefix(name.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"-"))
            .filter(|_| parts.peek() == Some(&&b"src"[..]))
            .and_then(|version| str::from_utf8(version).ok())
            .filter(|version| is_version(version));
        if let Some(version) = version
            && found.replace(version).is_some_and(|other| other != version)
        {
            return None;
        }
    }
    found.map(str::to_owned)
}

/// Whether it is `1.54.1`, or such with a suffix as in `1.0.0-alpha.1`.
fn is_version(text: &str) -> bool {
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    core.split('.').count() == 3 && core.split('.').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path as rustc puts it into a binary, of a crate that this one does not have.
    fn path(folder: &str) -> String {
        format!(
            "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/{folder}/src/rt/x.rs"
        )
    }

    #[test]
    fn the_version_is_that_in_the_paths_of_the_sources() {
        let find = |folders: &[&str]| {
            let paths: String = folders.iter().map(|folder| path(folder)).collect();
            version_in(paths.as_bytes(), "juggler")
        };
        assert_eq!(find(&["juggler-1.54.1", "other-2.0.0", "juggler-1.54.1"]).unwrap(), "1.54.1");
        assert_eq!(find(&["juggler-2.0.0-alpha.1"]).unwrap(), "2.0.0-alpha.1");
        assert_eq!(find(&["juggler-1.54.1", "juggler-0.2.25"]), None, "which one?");
        for other in
            ["juggler", "juggler-1f2e3d", "juggler-util-0.7.1", "my-juggler-1.0.0", "juggler-1.2"]
        {
            assert_eq!(find(&[other]), None, "{other}");
        }
        assert_eq!(version_in(b"see /juggler-1.0.0/README", "juggler"), None);
        assert_eq!(version_in(b"\xff/juggler-\xff/src/juggler-", "juggler"), None);
        assert_eq!(version_in(b"", "juggler"), None);
    }

    #[test]
    fn crates_are_known_by_their_symbols() {
        let find = |symbol: &'static str| crates_in([symbol].into_iter(), &BY_COUNTER);
        assert_eq!(find("_ZN6quanta5Clock3raw17hbb9d0dbc3550f2c1E"), ["quanta"]);
        assert_eq!(find("_RNvMs_Cs4fqI2P2rA04_6quantaNtB4_5Clock3raw"), ["quanta"]);
        for other in ["_ZN16quanta_of_others3raw17hE", "_ZN3own6quanta_3raw17hE", "quanta"] {
            assert_eq!(find(other), [""; 0], "{other}");
        }
        let file = std::fs::read("/proc/self/exe").unwrap();
        let file = object::File::parse(&*file).unwrap();
        let symbols = || file.symbols().filter_map(|it| it.name().ok());
        assert_eq!(crates_in(symbols(), &["gimli", "juggler"]), ["gimli"]);
    }

    #[test]
    fn this_program_has_crates_with_versions() {
        assert!(read(Path::new("/proc/self/exe")).is_some());
        assert!(read(Path::new("Cargo.toml")).is_none());
        let cache = ReadCache::new(File::open("/proc/self/exe").unwrap());
        let file = object::File::parse(&cache).unwrap();
        let data = file.section_by_name(".rodata").unwrap().data().unwrap();
        let version = version_in(data, "regex-lite").expect("it can panic");
        assert!(version.starts_with("0."), "{version}");
    }
}
