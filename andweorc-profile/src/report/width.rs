//! Widths of texts in columns, and lines of a width.

use unicode_width::UnicodeWidthChar;

/// The columns that a text takes; control characters take none.
pub(super) fn display_width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// The columns that a character takes.
pub(super) fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The text in lines of at most `width` columns, where words are no longer than that: the first
/// begins with `first`, the others with `rest`. Lines break at spaces alone, and where the text has
/// breaks.
pub(super) fn wrapped(text: &str, width: usize, first: &str, rest: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.split('\n') {
        let indent = |lines: &[String]| if lines.is_empty() { first } else { rest }.to_owned();
        let (mut line, mut is_begun) = (indent(&lines), false);
        for word in paragraph.split_inclusive(' ') {
            let bare = word.trim_end_matches(' ');
            if is_begun && !bare.is_empty() && display_width(&line) + display_width(bare) > width {
                lines.push(line.trim_end_matches(' ').to_owned());
                line = indent(&lines);
            }
            line.push_str(word);
            is_begun = true;
        }
        lines.push(if is_begun { line.trim_end_matches(' ').to_owned() } else { String::new() });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_wide_as_they_may_be() {
        let lines = wrapped("one two  three four\nfive", 11, "- ", "  ");
        assert_eq!(lines, ["- one two", "  three", "  four", "  five"]);
        assert_eq!(wrapped("one two", 9, "- ", "  "), ["- one two"]);
        assert_eq!(wrapped("a verylongword b", 6, "", ""), ["a", "verylongword", "b"]);
        assert_eq!(wrapped("", 6, "- ", "  "), [""]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(display_width("a\u{301}\u{1b}\u{4e00}"), 3);
        assert_eq!(
            wrapped("\u{4e00}\u{4e00} \u{4e00}", 6, "", ""),
            ["\u{4e00}\u{4e00}", "\u{4e00}"]
        );
    }
}
