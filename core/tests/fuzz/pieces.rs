//! Bytes as a text in the words of a language, so that random ones get past its first check; and numbers in it that are
//! read exactly.

use serde_json::Value;

/// The text of `bytes`: those that are printable ASCII, an end of line or a tab stand for themselves, 255 for a byte
/// that is not UTF-8, and every other one for one of `pieces`.
pub(crate) fn text(bytes: &[u8], pieces: &[&str]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b' '..=b'~' | b'\n' | b'\t' => text.push(byte),
            u8::MAX => text.push(u8::MAX),
            byte => text.extend_from_slice(pieces[usize::from(byte) % pieces.len()].as_bytes()),
        }
    }
    text
}

/// Whether every fraction in `value` has at most fifteen digits. Others are read from JSON with an error of one in the
/// last bit (`serde_json` without `float_roundtrip`, which is 24 KiB of the module), from YAML exactly.
pub(crate) fn is_short(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_none_or(|number| {
            let short: f64 = format!("{number:.14e}").parse().unwrap();
            short.to_bits() == number.to_bits()
        }),
        Value::Array(items) => items.iter().all(is_short),
        Value::Object(entries) => entries.values().all(is_short),
        _ => true,
    }
}
