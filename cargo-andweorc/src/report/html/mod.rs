//! The report as one page that needs nothing else: no network, no other file.
//!
//! The page is a shell (`page/shell.html`), its style, its script, and the data as JSON. The script makes the rest of it, and only by
//! `textContent` and attributes, so that a name can't become mark-up; `script_safe` keeps the JSON inside its element. A
//! content security policy allows this style and this script, by their hashes, and nothing else.

mod data;
mod source;

use andweorc_core::profile::Run;
use andweorc_core::report::{self, Looks};
use andweorc_core::{estimate, plain};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};
use source::Sources;
use std::path::PathBuf;

const SHELL: &str = include_str!("page/shell.html");
const STYLE: &str = include_str!("page/style.css");
/// In the order in which each needs the ones before it.
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("page/format.js"),
    include_str!("page/model.js"),
    include_str!("page/chart.js"),
    include_str!("page/ranking.js"),
    include_str!("page/experiments.js"),
    include_str!("page/waits.js"),
    include_str!("page/app.js"),
);

/// The page of these runs. Source lines are looked for in the project here, and in those that the profiles lie in.
pub(crate) fn html(runs: &[Run], profiles: &[PathBuf]) -> String {
    let analysis = estimate::analyse(runs);
    let data = data::page(runs, &analysis, &mut Sources::near(profiles));
    let json = serde_json::to_string(&data).expect("names are strings and numbers are numbers");
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    let program = runs.first().map_or("no run", |run| &run.header.program);
    fill(
        SHELL,
        &[
            ("policy", &policy),
            ("title", &escaped(&plain::name(program))),
            ("style", STYLE),
            ("words", &escaped(&report::text(runs, &analysis, Looks::default()))),
            ("data", &script_safe(&json)),
            ("script", SCRIPT),
        ],
    )
}

/// The shell with each `{{name}}` replaced, in their order; what is put in is not searched again.
fn fill(shell: &str, parts: &[(&str, &str)]) -> String {
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

/// JSON that can stand in a `script` element: nothing in it ends the element, or begins a comment.
fn script_safe(json: &str) -> String {
    // In JSON these are found only inside strings.
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Text that can stand in an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What a content security policy knows a style or script by.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json_and_inside_its_element() {
        let value = serde_json::json!({"</script><!--": "a & b \u{2028}"});
        let safe = script_safe(&value.to_string());
        assert!(!safe.contains(['<', '>', '&']), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }

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
    fn the_script_does_not_end_itself() {
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
        assert!(!SCRIPT.contains("innerHTML"));
    }
}
