//! Parses YAML into trees with positions.
//!
//! Anchors and aliases are resolved; tags and merge keys are rejected, because the API server rejects them too.
//! Documents before a syntax error are kept, so that one broken document does not hide the errors of those before it.
//!
//! Edge cases: this module bounds the size of a text; the builder bounds depth, number of values and copies by aliases.

use saphyr_parser::{Event, Parser, ScanError};

use super::build::Builder;
use super::marks::TextPosition;
use super::tree::{Malformed, YamlDocument};

/// Largest accepted text, in bytes: ten thousand large policies.
const MAX_BYTES: usize = 16 << 20;

/// The non-empty documents of `bytes` up to the first error, and that error.
/// A list of objects as kubectl prints it counts as its entries.
#[must_use]
pub fn documents(bytes: &[u8]) -> (Vec<YamlDocument>, Option<Malformed>) {
    let mut found = Vec::new();
    let end = read(bytes, &mut found).err();
    (found, end)
}

fn read(bytes: &[u8], found: &mut Vec<YamlDocument>) -> Result<(), Malformed> {
    let start = TextPosition { line: 1, column: 1 };
    if bytes.len() > MAX_BYTES {
        let reason = format!("{} bytes, at most {MAX_BYTES} are accepted", bytes.len());
        return Err(Malformed {
            place: start,
            reason,
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| Malformed {
        place: place_in(bytes, error.valid_up_to()),
        reason: "invalid UTF-8".to_owned(),
    })?;
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        if matches!(event, Event::DocumentEnd) {
            let document = builder.finish();
            found.extend(document.into_iter().flat_map(YamlDocument::unfolded));
        } else {
            builder.take(event, span)?;
        }
    }
    Ok(())
}

fn syntax(error: &ScanError) -> Malformed {
    Malformed {
        place: TextPosition {
            line: error.marker().line(),
            column: error.marker().col().saturating_add(1),
        },
        reason: error.info().to_owned(),
    }
}

fn place_in(bytes: &[u8], at: usize) -> TextPosition {
    let before = bytes.get(..at).unwrap_or(bytes);
    let line_start = before.iter().rposition(|byte| *byte == b'\n');
    TextPosition {
        line: before
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            .saturating_add(1),
        column: line_start
            .map_or(at, |start| at.saturating_sub(start).saturating_sub(1))
            .saturating_add(1),
    }
}
