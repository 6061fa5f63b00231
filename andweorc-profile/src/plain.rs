//! Text from anywhere, made fit to be shown.
//!
//! Names of targets and points, notes, paths, and names of programs and hosts come from the
//! profiled program, from its environment, or from a profile that anybody may have written. Every
//! report, table, page and error shows them by the functions of this module, so that they can't
//! rule a terminal, turn a line around, hide letters, or fill the screen:
//!
//! - What is not seen is written as Rust writes it, `\u{202e}`: control characters (C0, C1, line's
//!   ends), directions of text, characters without width, tags, separators other than a space, and
//!   whatever else Unicode calls ignorable, private or unassigned. So are marks that stand alone or
//!   are heaped on one letter.
//! - A name of more than 500 characters, and a sentence of more than 8,000, keeps its beginning and
//!   its end. Between them stand an ellipsis, how long the whole is, and a hash of it, so that two
//!   names which differ anywhere are still told apart.
//!
//! A name is cut already where it enters the profile: memory and file are bounded. It is not
//! escaped there; a profile is data.

use std::borrow::Cow;
use std::path::Path;

/// The longest name that is not cut, in characters.
const NAME: usize = 500;

/// The longest sentence that is not cut, in characters.
const SENTENCE: usize = 8_000;

/// So many marks one letter may have: more than any script needs.
const MARKS: usize = 4;

/// The longest text that stands between beginning and end, in characters.
const CUT: usize = "…(18446744073709551615 bytes, 0123456789abcdef)…".len();

const _: () = assert!(CUT <= NAME / 5, "what was cut once is not cut again");

/// A name on one line: escaped, and cut where it is long.
pub fn name(text: &str) -> Cow<'_, str> {
    escape(cut_name(text))
}

/// A sentence on one line: escaped, and cut where it is long.
pub fn sentence(text: &str) -> Cow<'_, str> {
    escape(cut_sentence(text))
}

/// A path, as a [`sentence`].
pub fn path(path: &Path) -> String {
    sentence(&path.to_string_lossy()).into_owned()
}

/// Text of several lines, each of them a [`sentence`].
pub fn lines(text: &str) -> String {
    text.split('\n').map(sentence).collect::<Vec<_>>().join("\n")
}

/// JSON in which what is not seen stands as `\u202e`: the same data, fit for a terminal.
pub fn json(json: String) -> String {
    if is_plain(&json) {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // Outside of strings JSON has no other character that is not seen.
        if c == '\n' || !matches!(class(c), Class::Hidden) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// A name, cut where it is long: what the profile knows it by. Different names remain different.
pub fn cut_name(text: &str) -> Cow<'_, str> {
    cut(text, NAME)
}

/// A sentence, cut where it is long.
pub fn cut_sentence(text: &str) -> Cow<'_, str> {
    cut(text, SENTENCE)
}

/// Whether the text can be shown as it is, whatever its length.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        || matches!(escape(Cow::Borrowed(text)), Cow::Borrowed(_))
}

/// The text with at most so many characters: three fifths from its beginning, a fifth from its end.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most || text.chars().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let mut starts = text.char_indices().map(|(at, _)| at);
    let head = starts.nth(most * 3 / 5).expect("it is longer");
    let tail = starts.nth_back(most / 5 - 1).expect("it is longer");
    let (length, hash) = (text.len(), hash(text));
    Cow::Owned(format!("{}…({length} bytes, {hash:016x})…{}", &text[..head], &text[tail..]))
}

/// FNV-1a, which is the same in all builds: names are compared across profiles.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn escape(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut out = String::new();
    // The text up to here is in `out`.
    let mut done = 0;
    // One at the beginning would fall on what stands before the text.
    let mut marks = MARKS;
    for (at, c) in text.char_indices() {
        let class = class(c);
        marks = if matches!(class, Class::Mark) { marks + 1 } else { 0 };
        if matches!(class, Class::Hidden) || marks > MARKS {
            out.push_str(&text[done..at]);
            out.extend(c.escape_default());
            done = at + c.len_utf8();
        }
    }
    if done == 0 {
        return text;
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// How a character is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// By itself.
    Seen,
    /// On the one before it.
    Mark,
    /// Not at all, or as an effect on others.
    Hidden,
}

fn class(c: char) -> Class {
    if (' '..='~').contains(&c) {
        return Class::Seen;
    }
    if is_ignorable(c) {
        return Class::Hidden;
    }
    // The standard library escapes controls, formats, separators, and what is private or
    // unassigned; marks only where they begin a text.
    let mut behind_a_letter = [b'a'; 5];
    let end = 1 + c.encode_utf8(&mut behind_a_letter[1..]).len();
    let text = str::from_utf8(&behind_a_letter[..end]).expect("a letter, and a character");
    if text.escape_debug().nth(1) == Some('\\') {
        Class::Hidden
    } else if c.escape_debug().next() == Some('\\') {
        Class::Mark
    } else {
        Class::Seen
    }
}

/// Of what Unicode calls default ignorable, the letters and marks: fillers, joiners, variants of
/// the letter before.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters of each kind that is not seen.
    const UNSEEN: [char; 60] = [
        '\0',
        '\u{7}',
        '\u{8}',
        '\t',
        '\n',
        '\r',
        '\u{1b}',
        '\u{7f}',
        '\u{80}',
        '\u{85}',
        '\u{90}',
        '\u{9b}',
        '\u{9c}',
        '\u{9d}',
        '\u{9f}',
        '\u{a0}',
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{115f}',
        '\u{1160}',
        '\u{17b4}',
        '\u{180b}',
        '\u{180e}',
        '\u{2000}',
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{200e}',
        '\u{200f}',
        '\u{2028}',
        '\u{2029}',
        '\u{202a}',
        '\u{202b}',
        '\u{202c}',
        '\u{202d}',
        '\u{202e}',
        '\u{2060}',
        '\u{2061}',
        '\u{2064}',
        '\u{2065}',
        '\u{2066}',
        '\u{2067}',
        '\u{2068}',
        '\u{2069}',
        '\u{206a}',
        '\u{206f}',
        '\u{3164}',
        '\u{fe00}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{ffa0}',
        '\u{fff0}',
        '\u{fff9}',
        '\u{e000}',
        '\u{1bca0}',
        '\u{1d173}',
        '\u{e0001}',
        '\u{e0041}',
        '\u{e01ef}',
    ];

    #[test]
    fn invisible_characters_are_escaped() {
        for c in UNSEEN {
            let shown = name(&format!("a{c}b")).into_owned();
            assert!(shown.is_ascii() && shown.len() > 3 && !shown.contains(c), "{c:?}: {shown}");
        }
        assert_eq!(name("gp\u{202e}pdf\n\u{9b}2J"), r"gp\u{202e}pdf\n\u{9b}2J");
    }

    #[test]
    fn visible_text_is_not_changed() {
        for text in [
            "",
            "shop::stock<'a>\\\"",
            "größe",
            "e\u{301}te\u{301}",
            "数据 🦀",
            "हिन्दी",
            "ภาษาไทย",
            "שלום",
        ] {
            assert!(matches!(name(text), Cow::Borrowed(same) if same == text), "{text}");
            assert!(is_plain(text), "{text}");
        }
        assert!(!is_plain("a\u{202e}"));
    }

    #[test]
    fn marks_without_a_letter_and_heaps_of_them_are_written_out() {
        assert_eq!(name("\u{301}a"), r"\u{301}a");
        let heap = format!("z{}y", "\u{300}".repeat(50));
        let shown = name(&heap);
        assert_eq!(shown.matches('\u{300}').count(), MARKS);
        assert_eq!(shown.matches(r"\u{300}").count(), 50 - MARKS);
    }

    #[test]
    fn long_names_are_cut_once_and_remain_different() {
        let long = |c: char| format!("{}{c}{}", "a".repeat(500_000), "b".repeat(500_000));
        let (x, y) = (long('x'), long('y'));
        let cut = cut_name(&x);
        assert!(cut.chars().count() <= NAME, "{cut}");
        assert!(cut.starts_with("aaa") && cut.ends_with("bbb"), "{cut}");
        assert!(cut.contains("…(1000001 bytes, "), "{cut}");
        assert_ne!(cut, cut_name(&y));
        assert_eq!(cut_name(&cut), cut);
        assert_eq!(name(&x), cut);
        // A limit in characters, not in bytes.
        let most = "ü".repeat(NAME);
        assert_eq!(cut_name(&most), most);
        assert_ne!(cut_name(&format!("{most}ü")), format!("{most}ü"));
    }

    #[test]
    fn whatever_is_shown_is_bounded() {
        let worst = "\u{e0041}".repeat(1_000_000);
        assert!(name(&worst).len() < 10 * NAME);
        assert!(sentence(&worst).len() < 10 * SENTENCE);
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(lines("a\u{1b}\nb\tc\n"), "a\\u{1b}\nb\\tc\n");
    }

    #[test]
    fn json_remains_the_same_data() {
        let value = serde_json::json!({"n\u{202e}": ["\u{9b}2J\u{e0041}\n", "ü"]});
        let shown = json(serde_json::to_string_pretty(&value).unwrap());
        assert!(shown.contains(r"n\u202e") && shown.contains(r"\udb40\udc41"), "{shown}");
        assert!(!shown.contains(['\u{202e}', '\u{9b}', '\u{e0041}']), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
