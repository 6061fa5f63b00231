//! The project: andweorc and tokio, what its builds keep, and where profiles go.

use crate::doctor::Check;
use crate::project;
use cargo_metadata::Metadata;
use cargo_metadata::semver::Version;
use nix::unistd::{AccessFlags, access};
use std::path::Path;
use std::{env, fs};
use toml::{Table, Value};

/// The oldest tokio that andweorc works with.
const OLDEST_TOKIO: Version = Version::new(1, 47, 0);

pub(super) fn checks() -> Vec<Check> {
    let metadata = match project::metadata(Path::new(".")) {
        Ok(metadata) => metadata,
        Err(why) if has_manifest() => {
            return vec![Check::bad("project", "cargo can't read it", why.replace('\n', " "))];
        }
        Err(_) => {
            let advice = "start the command in the folder of a project to have it checked too";
            return vec![Check::doubt("project", "no cargo project is here", advice)];
        }
    };
    let root = metadata.workspace_root.as_std_path();
    let manifest = read(&root.join("Cargo.toml"));
    vec![
        dependency(&metadata),
        tokio(&read(&root.join("Cargo.lock"))),
        debug_info(&manifest, |name| env::var(name).ok()),
        frame_pointers(root),
        output(&metadata.target_directory.as_std_path().join("andweorc")),
    ]
}

/// Whether the current folder is meant to be in a project.
fn has_manifest() -> bool {
    let folder = env::current_dir().unwrap_or_default();
    folder.ancestors().any(|one| one.join("Cargo.toml").exists())
}

/// A TOML file; empty when it can't be read, since cargo says more about that than we could.
fn read(path: &Path) -> Table {
    fs::read_to_string(path).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn dependency(metadata: &Metadata) -> Check {
    let mut users = metadata.workspace_packages().into_iter().filter(|package| {
        package.name == "andweorc" || package.dependencies.iter().any(|one| one.name == "andweorc")
    });
    match users.next() {
        Some(package) => Check::good("andweorc", format!("used by {}", package.name)),
        None => Check::bad(
            "andweorc",
            "no package of this project depends on it",
            "add `andweorc` to [dependencies], and `#[andweorc::main]` to the main function",
        ),
    }
}

fn tokio(lock: &Table) -> Check {
    let packages = lock.get("package").and_then(Value::as_array).into_iter().flatten();
    let newest = packages
        .filter(|package| package.get("name").and_then(Value::as_str) == Some("tokio"))
        .filter_map(|package| Version::parse(package.get("version")?.as_str()?).ok())
        .max();
    match newest {
        Some(version) if version >= OLDEST_TOKIO => Check::good("tokio", version.to_string()),
        Some(version) => Check::bad(
            "tokio",
            version.to_string(),
            format!("andweorc needs {OLDEST_TOKIO} or newer: `cargo update -p tokio`"),
        ),
        None if lock.is_empty() => {
            Check::doubt("tokio", "unknown: there is no Cargo.lock", "build the project once")
        }
        None => Check::doubt("tokio", "not used", "without tokio only the classic API works"),
    }
}

/// Checks that the profile `release` keeps names of lines. Variables such as
/// `CARGO_PROFILE_RELEASE_DEBUG` go before the manifest, as they do for cargo.
fn debug_info(manifest: &Table, variable: impl Fn(&str) -> Option<String>) -> Check {
    let release = manifest.get("profile").and_then(|profile| profile.get("release"));
    let setting = |name: &str| {
        let by_variable = variable(&format!("CARGO_PROFILE_RELEASE_{}", name.to_uppercase()));
        // Cargo takes there what would stand in the manifest, a word without its quotes.
        let by_variable = by_variable.map(|value| match value.parse() {
            Ok(switch) => Value::Boolean(switch),
            Err(_) => value.parse().map_or(Value::String(value), Value::Integer),
        });
        by_variable.or_else(|| release.and_then(|release| release.get(name)).cloned())
    };
    let kept = match setting("debug") {
        None | Some(Value::Boolean(false) | Value::Integer(0)) => false,
        Some(Value::String(level)) => level != "none",
        Some(_) => true,
    };
    let stripped = match setting("strip") {
        None | Some(Value::Boolean(false)) => false,
        Some(Value::String(what)) => what != "none",
        Some(_) => true,
    };
    let hint = "`cargo andweorc run` sees to it; for programs that you start yourself";
    match (kept, stripped) {
        (true, false) => Check::good("debug info", "kept in the profile `release`"),
        (_, true) => Check::doubt(
            "debug info",
            "stripped in the profile `release`, so lines have no names",
            format!("{hint} remove `strip` from [profile.release]"),
        ),
        (false, false) => Check::doubt(
            "debug info",
            "none in the profile `release`, so lines have no names",
            format!("{hint} add `debug = \"line-tables-only\"` to [profile.release]"),
        ),
    }
}

fn frame_pointers(root: &Path) -> Check {
    const FLAG: &str = "force-frame-pointers";
    let by_env = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"]
        .iter()
        .any(|name| env::var(name).is_ok_and(|flags| flags.contains(FLAG)));
    let by_config = root.ancestors().any(|folder| {
        ["config.toml", "config"].iter().any(|name| {
            let config = fs::read_to_string(folder.join(".cargo").join(name));
            config.is_ok_and(|config| config.contains(FLAG))
        })
    });
    if by_env || by_config {
        Check::good("frame pointers", "kept")
    } else {
        Check::doubt(
            "frame pointers",
            "left out by your own builds, so lines are charged to the innermost call only",
            format!(
                "`cargo andweorc run` sees to it; for programs that you start yourself add `-C{FLAG}=yes` to the rustflags in .cargo/config.toml"
            ),
        )
    }
}

fn output(folder: &Path) -> Check {
    let there = folder.ancestors().find(|one| one.exists()).unwrap_or(folder);
    match access(there, AccessFlags::W_OK) {
        Ok(()) => Check::good("profiles", format!("go to {}", folder.display())),
        Err(error) => Check::bad(
            "profiles",
            format!("can't go to {}: {}", folder.display(), error.desc()),
            "make it writable, or choose another file with `--out`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn the_newest_tokio_counts() {
        let lock = |version| {
            table(&format!(
                "[[package]]\nname = \"tokio\"\nversion = \"0.2.25\"\n[[package]]\nname = \"tokio\"\nversion = \"{version}\"\n"
            ))
        };
        assert_eq!(tokio(&lock("1.52.3")), Check::good("tokio", "1.52.3"));
        let old = tokio(&lock("1.46.1"));
        assert_eq!(old.level, Level::Bad);
        assert!(old.advice.contains("1.47.0"), "{}", old.advice);
        assert!(tokio(&Table::new()).seen.contains("no Cargo.lock"));
        assert!(tokio(&table("version = 4")).seen.contains("not used"));
    }

    #[test]
    fn debug_info_is_read_in_every_form_that_cargo_knows() {
        let level =
            |text: &str| debug_info(&table(&format!("[profile.release]\n{text}")), |_| None).level;
        for good in [
            "debug = true",
            "debug = 1",
            "debug = \"line-tables-only\"",
            "debug = 2\nstrip = \"none\"",
        ] {
            assert_eq!(level(good), Level::Good, "{good}");
        }
        for doubt in [
            "",
            "debug = false",
            "debug = 0",
            "debug = \"none\"",
            "debug = 1\nstrip = true",
            "debug = 1\nstrip = \"symbols\"",
        ] {
            assert_eq!(level(doubt), Level::Doubt, "{doubt}");
        }
        assert_eq!(debug_info(&Table::new(), |_| None).level, Level::Doubt);
        let by_variables = |debug: &str, strip: &str| {
            let manifest = table("[profile.release]\ndebug = 1\nstrip = true\n");
            let value = |name: &str| match name {
                "CARGO_PROFILE_RELEASE_DEBUG" => Some(debug.to_owned()),
                "CARGO_PROFILE_RELEASE_STRIP" => Some(strip.to_owned()),
                _ => None,
            };
            debug_info(&manifest, value).level
        };
        for debug in ["true", "1", "line-tables-only"] {
            assert_eq!(by_variables(debug, "none"), Level::Good, "{debug}");
        }
        for (debug, strip) in
            [("0", "false"), ("false", "none"), ("none", "false"), ("2", "symbols")]
        {
            assert_eq!(by_variables(debug, strip), Level::Doubt, "{debug}, {strip}");
        }
    }

    #[test]
    fn frame_pointers_are_found_in_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(frame_pointers(&inner).level, Level::Doubt);
        fs::create_dir(folder.path().join(".cargo")).unwrap();
        let config = "[build]\nrustflags = [\"-Cforce-frame-pointers=yes\"]\n";
        fs::write(folder.path().join(".cargo/config.toml"), config).unwrap();
        assert_eq!(frame_pointers(&inner).level, Level::Good);
    }
}
