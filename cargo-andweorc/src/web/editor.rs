//! Links from a page to places in the source.

use clap::Args;
use std::path::Path;
use std::str::FromStr;

/// The options of every command that writes a page.
#[derive(Debug, Args)]
pub(crate) struct PageOptions {
    /// In a page: the editor that places in the source are links to: vscode, vscodium, cursor, zed,
    /// idea, none, or the template of an address with `{file}` and `{line}`
    #[arg(long, value_name = "EDITOR", default_value = "vscode")]
    pub(crate) editor: Editor,
}

/// The editor that places in the source are links to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Editor {
    /// The address of a place, with `{file}` and `{line}`; `None` for no links.
    template: Option<String>,
}

/// Addresses that editors register themselves for. A file is absolute and begins with a slash.
const KNOWN: [(&str, &str); 5] = [
    ("vscode", "vscode://file{file}:{line}"),
    ("vscodium", "vscodium://file{file}:{line}"),
    ("cursor", "cursor://file{file}:{line}"),
    ("zed", "zed://file{file}:{line}"),
    ("idea", "idea://open?file={file}&line={line}"),
];

impl Default for Editor {
    fn default() -> Editor {
        Editor { template: Some(KNOWN[0].1.to_owned()) }
    }
}

impl FromStr for Editor {
    type Err = String;

    fn from_str(value: &str) -> Result<Editor, String> {
        if value == "none" {
            return Ok(Editor { template: None });
        }
        let known = KNOWN.iter().find(|(name, _)| *name == value).map(|(_, template)| *template);
        let template = known.or_else(|| Some(value).filter(|value| value.contains("{file}")));
        template.map(|template| Editor { template: Some(template.to_owned()) }).ok_or_else(|| {
            let names: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
            format!(
                "neither {} or none, nor a template with `{{file}}`, such as `vscode://file{{file}}:{{line}}`",
                names.join(", ")
            )
        })
    }
}

impl Editor {
    /// The address of a line of a file, whose path is absolute.
    pub(crate) fn address(&self, file: &Path, line: u32) -> Option<String> {
        let template = self.template.as_ref()?;
        let file = encoded(&file.to_string_lossy());
        Some(template.replace("{line}", &line.to_string()).replace("{file}", &file))
    }
}

/// A path as it stands in an address.
fn encoded(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(editor: &str, file: &str) -> Option<String> {
        editor.parse::<Editor>().unwrap().address(Path::new(file), 12)
    }

    #[test]
    fn a_place_is_a_link_to_the_editor_that_is_named() {
        let link = |editor| address(editor, "/w/src/a b.rs").unwrap();
        assert_eq!(link("vscode"), "vscode://file/w/src/a%20b.rs:12");
        assert_eq!(link("idea"), "idea://open?file=/w/src/a%20b.rs&line=12");
        assert_eq!(link("txmt://open?url=file://{file}&line={line}").matches("12").count(), 1);
        assert_eq!(link("x:{file}"), "x:/w/src/a%20b.rs");
        assert_eq!(address("none", "/w/src/a.rs"), None);
        assert_eq!(
            address("vscode", "/w/\"{line}.rs").unwrap(),
            "vscode://file/w/%22%7Bline%7D.rs:12"
        );
    }

    #[test]
    fn editor_name_that_is_unknown_is_refused_with_the_choices() {
        let error = "emacs".parse::<Editor>().unwrap_err();
        assert!(error.contains("vscode, vscodium, cursor, zed, idea or none"), "{error}");
        assert!(error.contains("vscode://file{file}:{line}"), "{error}");
    }
}
