//! Pages that need nothing else: no network, no other file.
//!
//! A page is a shell (`shell.html`), its style, and a body. A content security policy allows this
//! style, and the script of the page if it has one, by their hashes, and nothing else.

mod editor;
mod source;

pub(crate) use editor::{Editor, PageOptions};
pub(crate) use source::{Snippet, Sources};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

const SHELL: &str = include_str!("shell.html");
const STYLE: &str = include_str!("style.css");

/// A page with this title and this body, which is HTML. `script` is the one script in it that may
/// run.
pub(crate) fn page(title: &str, body: &str, script: Option<&str>) -> String {
    let script = script.map_or("'none'".to_owned(), |script| format!("'{}'", hash(script)));
    let policy = format!(
        "default-src 'none'; script-src {script}; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(STYLE)
    );
    fill(
        SHELL,
        &[("policy", &policy), ("title", &escaped(title)), ("style", STYLE), ("body", body)],
    )
}

/// The shell with each `{{name}}` replaced, in their order; what is put in is not searched again.
pub(crate) fn fill(shell: &str, parts: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = shell;
    for (name, part) in parts {
        let (before, after) =
            rest.split_once(&format!("{{{{{name}}}}}")).expect("the shell has its parts in order");
        out.push_str(before);
        out.push_str(part);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Text that can stand in an element, or in an attribute between double quotes.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The name of a style or script in a content security policy.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_not_searched_for_parts() {
        assert_eq!(fill("a{{x}}b{{y}}c", &[("x", "{{y}}"), ("y", "1")]), "a{{y}}b1c");
    }

    #[test]
    fn the_policy_knows_a_script_by_the_hash_that_browsers_compute() {
        // Of the empty text, as in many policies.
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn the_style_does_not_end_itself_and_names_are_no_mark_up() {
        assert!(!STYLE.contains("</"));
        assert_eq!(escaped("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
        let page = page("</title>", "<p>", None);
        assert!(page.contains("script-src 'none'") && page.contains("<title>&lt;/title&gt; - "));
    }
}
