//! From YAML to trees with places.
//!
//! Anchors and aliases are resolved; tags and merge keys are not taken, since
//! the API server takes neither. What comes before a syntax error is kept, so
//! that one broken document does not hide the errors of those before it.
//!
//! Edges: the size of a text is bounded here; depth and number of values of a
//! document, and what aliases copy, where it is built.

use saphyr_parser::{Event, Parser, ScanError};
use tidegate_core::config::Node;

use super::build::Builder;
use super::marks::{Children, Mark, Place};

/// Largest text taken, in bytes: ten thousand large policies.
const MAX_BYTES: usize = 16 << 20;

/// One document of a text.
#[derive(Clone, Debug)]
pub struct Document {
    pub(super) root: Node,
    pub(super) marks: Mark,
}

impl Document {
    /// What it says.
    #[must_use]
    pub const fn root(&self) -> &Node {
        &self.root
    }

    /// The entries of a `kind: List`; of any other document itself.
    fn unfolded(self) -> Vec<Self> {
        let (Node::Object(entries), Children::Object(marks)) = (&self.root, &self.marks.children)
        else {
            return vec![self];
        };
        let is_list = entries.iter().any(|(key, node)| {
            key == "kind" && matches!(node, Node::Text(kind) if kind.ends_with("List"))
        });
        let items = entries
            .iter()
            .zip(marks)
            .find(|((key, _), _)| key == "items");
        match items {
            Some(((_, Node::List(items)), (_, mark))) if is_list => match &mark.children {
                Children::List(marks) => items
                    .iter()
                    .zip(marks)
                    .map(|(root, marks)| Self {
                        root: root.clone(),
                        marks: marks.clone(),
                    })
                    .collect(),
                _ => vec![self],
            },
            _ => vec![self],
        }
    }

    /// Where it starts.
    #[must_use]
    pub const fn start(&self) -> Place {
        self.marks.place
    }

    /// Where the value at `path` stands, spelled as in core's errors; where it
    /// is missing, the deepest value on the way to it.
    #[must_use]
    pub fn locate(&self, path: &str) -> Place {
        self.marks.locate(path)
    }
}

/// Why a text is no YAML that is taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct Malformed {
    /// Where reading stopped.
    pub place: Place,
    /// Why.
    pub reason: String,
}

/// The documents of `bytes` up to the first error, empty ones left out, and
/// that error. A list of objects as kubectl prints it counts as its entries.
#[must_use]
pub fn documents(bytes: &[u8]) -> (Vec<Document>, Option<Malformed>) {
    let mut found = Vec::new();
    let end = read(bytes, &mut found).err();
    (found, end)
}

fn read(bytes: &[u8], found: &mut Vec<Document>) -> Result<(), Malformed> {
    let start = Place { line: 1, column: 1 };
    if bytes.len() > MAX_BYTES {
        let reason = format!("{} bytes, at most {MAX_BYTES} are taken", bytes.len());
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
            found.extend(document.into_iter().flat_map(Document::unfolded));
        } else {
            builder.take(event, span)?;
        }
    }
    Ok(())
}

fn syntax(error: &ScanError) -> Malformed {
    Malformed {
        place: Place {
            line: error.marker().line(),
            column: error.marker().col().saturating_add(1),
        },
        reason: error.info().to_owned(),
    }
}

fn place_in(bytes: &[u8], at: usize) -> Place {
    let before = bytes.get(..at).unwrap_or(bytes);
    let line_start = before.iter().rposition(|byte| *byte == b'\n');
    Place {
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
