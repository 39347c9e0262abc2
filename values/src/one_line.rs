//! One-line text that is safe on any terminal: output of a recorded program may not move the cursor or change colours.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Marks text that was cut to fit a terminal.
const CUT: &str = "...";

/// Returns the number of terminal columns `text` takes (wide characters take two, combining ones none).
pub fn width(text: &str) -> usize {
    text.width()
}

/// Returns `text` on one line: control characters, line and paragraph separators and the characters that reorder
/// text are written as escapes (`\n`, `\x1b`, `\u{202e}`). Everything else stays as it is.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(must_be_escaped) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if must_be_escaped(c) {
            push_escape(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Returns whether a terminal would do anything with `c` other than show it.
fn must_be_escaped(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn push_escape(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0' => out.push_str("\\0"),
        // Writing to a String cannot fail.
        c if (c as u32) < 0x100 => _ = write!(out, "\\x{:02x}", c as u32),
        c => _ = write!(out, "\\u{{{:x}}}", c as u32),
    }
}

/// Returns `text` cut to at most `columns` terminal columns, with `...` at the end when something was cut.
pub fn fitted(text: &str, columns: usize) -> Cow<'_, str> {
    if text.len() <= columns || width(text) <= columns {
        return Cow::Borrowed(text);
    }
    if columns <= CUT.len() {
        return Cow::Owned(CUT[..columns].to_owned());
    }
    let room = columns - CUT.len();
    let mut used = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        end = at + c.len_utf8();
    }
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_can_steer_the_terminal() {
        let evil = "a\x1b[31mred\nline\ttab\0nul\u{9b}csi\u{202e}rtl\u{feff}";
        assert_eq!(
            escaped(evil),
            r"a\x1b[31mred\nline\ttab\0nul\x9bcsi\u{202e}rtl\u{feff}"
        );
    }

    #[test]
    fn harmless_text_is_not_copied() {
        assert!(matches!(
            escaped("caf\u{e9} \u{4e16}\u{754c} \\n"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn wide_characters_are_never_cut_in_half() {
        let text = "\u{4e16}\u{754c}\u{4e16}\u{754c}";
        assert_eq!(width(text), 8);
        assert_eq!(fitted(text, 8), text);
        let cut = fitted(text, 6);
        assert_eq!(cut, "\u{4e16}...");
        assert_eq!(width(&cut), 5);
    }

    #[test]
    fn a_tiny_column_shows_dots_only() {
        assert_eq!(fitted("abcdef", 0), "");
        assert_eq!(fitted("abcdef", 2), "..");
        assert_eq!(fitted("abcdef", 3), "...");
        assert_eq!(fitted("abcdef", 4), "a...");
        assert_eq!(fitted("abcdef", 6), "abcdef");
    }
}
