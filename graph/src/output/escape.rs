//! Characters that must not reach a terminal or a picture as they are.
//!
//! Control characters include those that start terminal commands (ESC, and CSI in one character). Others have no width
//! or turn the direction of the text around them, so that a name looks like another one.

use std::fmt::Write as _;

/// Longest name that is shown to people, in characters. A name in Kubernetes has at most 253.
const MAX_NAME: usize = 260;

/// Whether a character has an effect instead of being visible.
pub(super) fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A name for people, on one line: hostile characters are written as `\u{1b}`, and a name that is too long is cut.
#[must_use]
pub fn plain(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (position, c) in name.chars().enumerate() {
        if position == MAX_NAME {
            out.push('…');
            break;
        }
        if is_hostile(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// A JSON text without hostile characters: they can occur only in its strings, where `\u001b` means the same.
/// Line ends and spaces between values stay.
#[must_use]
pub fn plain_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut units = [0; 2];
    for c in text.chars() {
        if c == '\n' || !is_hostile(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            // Writing to a String does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_becomes_text() {
        assert_eq!(
            plain("a\u{1b}[31mb\nc\u{9b}2J"),
            r"a\u{1b}[31mb\u{a}c\u{9b}2J"
        );
        assert_eq!(plain("user\u{202e}nimda"), r"user\u{202e}nimda");
        assert_eq!(plain("héé/日本"), "héé/日本");
    }

    #[test]
    fn a_long_name_is_cut() {
        let shown = plain(&"a".repeat(1_000));

        assert_eq!(shown.chars().count(), MAX_NAME + 1);
        assert!(shown.ends_with("a…"));
    }

    #[test]
    fn escaped_json_means_the_same() {
        let name = "a\u{7f}\u{9b}\u{202e}\u{e0041}\n\"";
        let text = serde_json::to_string(name).unwrap();

        let escaped = plain_json(&text);

        assert!(escaped.is_ascii(), "{escaped}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), name);
    }
}
