//! Name under which the crate that is compiled knows the facade, where `crate = ".."` does not say.
//!
//! A dependency with `package = "andweorc"` has a name of its own, which only the compiler is told,
//! by `--extern name=path`. An attribute sees the compiler's arguments as those of its own process.
//! Where they are not there to be seen, as in an editor, the name is taken to be `andweorc`.

use std::env;

/// The path of the facade.
pub(crate) fn facade() -> String {
    let arguments: Vec<String> =
        env::args_os().filter_map(|argument| argument.into_string().ok()).collect();
    format!("::{}", name(&arguments).unwrap_or("andweorc"))
}

/// The other name that these arguments of the compiler give the facade. `None` where it has its
/// own, which then works.
fn name(arguments: &[String]) -> Option<&str> {
    let mut renamed = None;
    for (i, argument) in arguments.iter().enumerate() {
        let value = match argument.strip_prefix("--extern=") {
            Some(value) => Some(value),
            None if argument == "--extern" => arguments.get(i + 1).map(String::as_str),
            None => None,
        };
        let Some((name, path)) = value.and_then(|value| value.split_once('=')) else { continue };
        // Options may stand before the name: `priv,noprelude:name`.
        let name = name.rsplit(':').next().unwrap_or(name);
        if name == "andweorc" {
            return None;
        }
        let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
        // Cargo adds a hash to the name of a library.
        if stem.strip_prefix("libandweorc").is_some_and(|it| it.is_empty() || it.starts_with('-')) {
            renamed = Some(name);
        }
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::name;

    fn of(arguments: &[&str]) -> Option<String> {
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        name(&arguments).map(str::to_owned)
    }

    #[test]
    fn dependency_that_was_renamed_is_found() {
        let tokio = ["rustc", "--extern", "tokio=/deps/libtokio-1f.rmeta"];
        let with = |more: &[&'static str]| of(&[&tokio[..], more].concat());
        let found = Some("profiler".to_owned());
        assert_eq!(with(&["--extern", "profiler=/deps/libandweorc-0a1b.rlib"]), found);
        assert_eq!(with(&["--extern=profiler=libandweorc.rmeta"]), found);
        assert_eq!(with(&["--extern", "priv,noprelude:profiler=/d/libandweorc-0a.so"]), found);
    }

    #[test]
    fn dependency_with_its_own_name_or_unseen_keeps_it() {
        let other = ["--extern", "profiler=/deps/libandweorc-0a.rlib"];
        let own = ["--extern", "andweorc=/deps/libandweorc-0a.rlib"];
        assert_eq!(of(&[&own[..], &other[..]].concat()), None);
        assert_eq!(of(&[&other[..], &own[..]].concat()), None);
        assert_eq!(of(&["--extern", "core=/deps/libandweorc_core-0a.rlib"]), None);
        assert_eq!(of(&["rust-analyzer", "--extern"]), None);
    }
}
