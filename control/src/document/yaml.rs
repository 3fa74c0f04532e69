//! From YAML to trees with places.
//!
//! Anchors and aliases are resolved; tags and merge keys are not taken, since
//! the API server takes neither. What comes before a syntax error is kept, so
//! that one broken document does not hide the errors of those before it.
//!
//! Edges: the size of a text, the depth and the number of values of a document
//! are bounded, an alias counting as all that it stands for, so that a few
//! lines cannot unfold into gigabytes.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use tidegate_core::config::Node;

use super::marks::{Children, Mark, Place};
use super::scalar::plain;

/// Largest text taken, in bytes: ten thousand large policies.
const MAX_BYTES: usize = 16 << 20;

/// Most keys and values in a document, copies for aliases included: bounds the
/// memory that one takes.
const MAX_VALUES: usize = 200_000;

/// Deepest nesting taken, as in core's reader of JSON.
const MAX_DEPTH: usize = 128;

/// One document of a text.
#[derive(Clone, Debug)]
pub struct Document {
    root: Node,
    marks: Mark,
}

impl Document {
    /// What it says.
    #[must_use]
    pub const fn root(&self) -> &Node {
        &self.root
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
/// that error.
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
            found.extend(builder.finish());
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

/// A value with its places and how many values it consists of.
#[derive(Clone, Debug)]
struct Built {
    node: Node,
    mark: Mark,
    values: usize,
}

/// A collection that has not ended.
#[derive(Debug)]
struct Open {
    place: Place,
    anchor: usize,
    values: usize,
    kind: OpenKind,
}

#[derive(Debug)]
enum OpenKind {
    List(Vec<Node>, Vec<Mark>),
    Object {
        entries: Vec<(String, Node)>,
        marks: Vec<(String, Mark)>,
        key: Option<(String, Place)>,
    },
}

/// Builds one document at a time.
#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Built>,
    anchors: BTreeMap<usize, Built>,
    /// Values of the document so far.
    values: usize,
}

impl Builder {
    /// The document that just ended; `None` if it was empty.
    fn finish(&mut self) -> Option<Document> {
        let built = std::mem::take(self).root?;
        (built.node != Node::Null).then_some(Document {
            root: built.node,
            marks: built.mark,
        })
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Malformed> {
        let place = Place {
            line: span.start.line(),
            column: span.start.col().saturating_add(1),
        };
        let refuse = |reason: &str| {
            Err(Malformed {
                place,
                reason: reason.to_owned(),
            })
        };
        match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => return refuse("tags are not taken"),
            Event::Scalar(text, style, anchor, None) => {
                let node = match style {
                    ScalarStyle::Plain if !self.wants_key() => plain(&text),
                    _ => Node::Text(text.into_owned()),
                };
                let mark = Mark {
                    place,
                    children: Children::None,
                };
                self.count(1, place)?;
                self.add(
                    Built {
                        node,
                        mark,
                        values: 1,
                    },
                    anchor,
                )?;
            }
            Event::SequenceStart(anchor, None) => {
                self.begin(place, anchor, OpenKind::List(Vec::new(), Vec::new()))?;
            }
            Event::MappingStart(anchor, None) => {
                let kind = OpenKind::Object {
                    entries: Vec::new(),
                    marks: Vec::new(),
                    key: None,
                };
                self.begin(place, anchor, kind)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
            Event::Alias(anchor) => {
                let values = self.anchors.get(&anchor).map_or(0, |built| built.values);
                self.count(values, place)?;
                let Some(mut built) = self.anchors.get(&anchor).cloned() else {
                    return refuse("an alias of what has not ended");
                };
                built.mark.place = place;
                self.add(built, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, values: usize, place: Place) -> Result<(), Malformed> {
        self.values = self.values.saturating_add(values);
        if self.values > MAX_VALUES {
            let reason = format!("more than {MAX_VALUES} keys and values in a document");
            return Err(Malformed { place, reason });
        }
        Ok(())
    }

    fn wants_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(Open {
                kind: OpenKind::Object { key: None, .. },
                ..
            })
        )
    }

    fn begin(&mut self, place: Place, anchor: usize, kind: OpenKind) -> Result<(), Malformed> {
        if self.open.len() >= MAX_DEPTH {
            let reason = format!("nested deeper than {MAX_DEPTH}");
            return Err(Malformed { place, reason });
        }
        if self.wants_key() {
            let reason = "a key that is no text".to_owned();
            return Err(Malformed { place, reason });
        }
        self.count(1, place)?;
        self.open.push(Open {
            place,
            anchor,
            values: 1,
            kind,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Malformed> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let (node, children) = match open.kind {
            OpenKind::List(nodes, marks) => (Node::List(nodes), Children::List(marks)),
            OpenKind::Object { entries, marks, .. } => {
                (Node::Object(entries), Children::Object(marks))
            }
        };
        let mark = Mark {
            place: open.place,
            children,
        };
        self.add(
            Built {
                node,
                mark,
                values: open.values,
            },
            open.anchor,
        )
    }

    /// Puts a finished value where it belongs.
    fn add(&mut self, built: Built, anchor: usize) -> Result<(), Malformed> {
        let place = built.mark.place;
        if anchor != 0 {
            self.count(built.values, place)?;
            self.anchors.insert(anchor, built.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(built);
            return Ok(());
        };
        open.values = open.values.saturating_add(built.values);
        match &mut open.kind {
            OpenKind::List(nodes, marks) => {
                nodes.push(built.node);
                marks.push(built.mark);
            }
            OpenKind::Object {
                entries,
                marks,
                key,
            } => match (key.take(), built.node) {
                (Some((name, key_place)), node) => {
                    let mark = Mark {
                        place: key_place,
                        ..built.mark
                    };
                    marks.push((name.clone(), mark));
                    entries.push((name, node));
                }
                (None, Node::Text(name)) => *key = Some((name, place)),
                (None, _) => {
                    let reason = "a key that is no text".to_owned();
                    return Err(Malformed { place, reason });
                }
            },
        }
        Ok(())
    }
}
