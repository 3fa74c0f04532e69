//! The meaning of a plain YAML scalar: the core schema of YAML 1.2, section 10.3.2.
//!
//! `yes` and `on` are texts and `0777` is a decimal number, not booleans and an
//! octal number as in YAML 1.1. Infinity and NaN stay texts, which no field
//! accepts.

use tidegate_core::config::Node;

/// The value that unquoted `text` means.
pub(super) fn plain(text: &str) -> Node {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Node::Null,
        "true" | "True" | "TRUE" => Node::Bool(true),
        "false" | "False" | "FALSE" => Node::Bool(false),
        _ => number(text).unwrap_or_else(|| Node::Text(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Node> {
    if let Some(digits) = text.strip_prefix("0x") {
        return whole(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return whole(digits, 8);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !text.starts_with('-')
        && let Some(node) = whole(unsigned, 10)
    {
        return Some(node);
    }
    let starts_like_one = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let has_only = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    let value = (starts_like_one && unsigned.chars().all(has_only))
        .then(|| text.parse::<f64>().ok())
        .flatten()?;
    value.is_finite().then_some(Node::Number(value))
}

/// Accepts digits only: the parser of `u64` would accept a sign as well.
fn whole(digits: &str, radix: u32) -> Option<Node> {
    (!digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)))
        .then(|| u64::from_str_radix(digits, radix).ok())
        .flatten()
        .map(Node::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_mean_what_yaml_1_2_says() {
        for (text, node) in [
            ("", Node::Null),
            ("~", Node::Null),
            ("true", Node::Bool(true)),
            ("False", Node::Bool(false)),
            ("20", Node::Whole(20)),
            ("+20", Node::Whole(20)),
            ("0777", Node::Whole(777)),
            ("0x1F", Node::Whole(31)),
            ("0o17", Node::Whole(15)),
            ("-3", Node::Number(-3.0)),
            ("0.5", Node::Number(0.5)),
            (".5", Node::Number(0.5)),
            ("5.", Node::Number(5.0)),
            ("1e3", Node::Number(1000.0)),
            (
                "18446744073709551616",
                Node::Number(18_446_744_073_709_551_616.0),
            ),
        ] {
            assert_eq!(plain(text), node, "{text:?}");
        }
    }

    #[test]
    fn everything_else_is_a_text() {
        for text in [
            "yes", "on", "250ms", "1.2.3", ".inf", ".nan", "1e999", "inf", "nan", "-", ".", "+-3",
            "0x", "0o8", "0x-1", "1_000", "e5",
        ] {
            assert_eq!(plain(text), Node::Text(text.to_owned()), "{text:?}");
        }
    }
}
