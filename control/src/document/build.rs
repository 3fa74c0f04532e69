//! Builds the tree of one document from the events of the parser.
//!
//! Edge cases: depth and number of values of a document are bounded; an alias counts as all values that it copies. The
//! bytes that anchors and aliases copy are bounded for all documents of a text together, so that a few lines cannot
//! expand to gigabytes. Without aliases, the size of a tree is proportional to its text, whose size is bounded too.

use std::collections::BTreeMap;

use saphyr_parser::{Event, ScalarStyle, Span};
use tidegate_core::config::Node;

use super::marks::{Children, TextPosition, ValueMark};
use super::scalar::plain;
use super::tree::{Malformed, YamlDocument};

/// Most keys and values in a document, including copies for aliases: bounds the
/// memory of a document.
const MAX_VALUES: usize = 200_000;

/// Most bytes that the anchors and aliases of a text may copy: a thousand policies that share an objective.
const MAX_COPIED_BYTES: usize = 1 << 20;

/// Memory of a value in addition to its text, in bytes: a node, its mark, and their entries in lists.
const VALUE_BYTES: usize = 128;

/// Deepest accepted nesting, the same as in core's JSON reader.
const MAX_DEPTH: usize = 128;

/// A value with its positions and its size.
#[derive(Clone, Debug)]
struct Built {
    node: Node,
    mark: ValueMark,
    size: Size,
}

/// The size of a value, including everything in it.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Number of values, without keys.
    values: usize,
    /// Memory of a copy in bytes, including keys.
    bytes: usize,
}

impl Size {
    const fn of_text(text: usize) -> Self {
        Self {
            values: 1,
            bytes: VALUE_BYTES.saturating_add(text),
        }
    }

    const fn add(&mut self, other: Self) {
        self.values = self.values.saturating_add(other.values);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// A collection that is still open.
#[derive(Debug)]
struct Open {
    place: TextPosition,
    anchor: usize,
    size: Size,
    kind: OpenKind,
}

#[derive(Debug)]
enum OpenKind {
    List(Vec<Node>, Vec<ValueMark>),
    Object {
        entries: Vec<(String, Node)>,
        marks: Vec<(String, ValueMark)>,
        key: Option<(String, TextPosition)>,
    },
}

/// Builds one document at a time.
#[derive(Default)]
pub(super) struct Builder {
    open: Vec<Open>,
    root: Option<Built>,
    anchors: BTreeMap<usize, Built>,
    /// Values of the document so far.
    values: usize,
    /// Bytes that the text's anchors and aliases have copied so far.
    copied_bytes: usize,
}

impl Builder {
    /// Returns the document that just ended; `None` if it was empty.
    pub(super) fn finish(&mut self) -> Option<YamlDocument> {
        let next = Self {
            copied_bytes: self.copied_bytes,
            ..Self::default()
        };
        let built = std::mem::replace(self, next).root?;
        (built.node != Node::Null).then_some(YamlDocument {
            root: built.node,
            marks: built.mark,
        })
    }

    pub(super) fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Malformed> {
        let place = TextPosition {
            line: span.start.line(),
            column: span.start.col().saturating_add(1),
        };
        let reject = |reason: &str| {
            Err(Malformed {
                place,
                reason: reason.to_owned(),
            })
        };
        match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => return reject("tags are not supported"),
            Event::Scalar(text, style, anchor, None) => {
                let size = Size::of_text(text.len());
                let node = match style {
                    ScalarStyle::Plain if !self.wants_key() => plain(&text),
                    _ => Node::Text(text.into_owned()),
                };
                let mark = ValueMark {
                    place,
                    children: Children::None,
                };
                self.count(1, place)?;
                self.add(Built { node, mark, size }, anchor)?;
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
                let Some(size) = self.anchors.get(&anchor).map(|built| built.size) else {
                    return reject("an alias of a value that is still open");
                };
                self.count(size.values, place)?;
                self.copy(size, place)?;
                let Some(mut built) = self.anchors.get(&anchor).cloned() else {
                    return reject("an alias of an unknown anchor");
                };
                built.mark.place = place;
                self.add(built, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, values: usize, place: TextPosition) -> Result<(), Malformed> {
        self.values = self.values.saturating_add(values);
        if self.values > MAX_VALUES {
            let reason = format!("more than {MAX_VALUES} keys and values in a document");
            return Err(Malformed { place, reason });
        }
        Ok(())
    }

    /// Counts a copy before it is made.
    fn copy(&mut self, size: Size, place: TextPosition) -> Result<(), Malformed> {
        self.copied_bytes = self.copied_bytes.saturating_add(size.bytes);
        if self.copied_bytes > MAX_COPIED_BYTES {
            let reason =
                format!("anchors and aliases that copy more than {MAX_COPIED_BYTES} bytes");
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

    fn begin(
        &mut self,
        place: TextPosition,
        anchor: usize,
        kind: OpenKind,
    ) -> Result<(), Malformed> {
        if self.open.len() >= MAX_DEPTH {
            let reason = format!("nested deeper than {MAX_DEPTH}");
            return Err(Malformed { place, reason });
        }
        if self.wants_key() {
            let reason = "a key that is not a text".to_owned();
            return Err(Malformed { place, reason });
        }
        self.count(1, place)?;
        self.open.push(Open {
            place,
            anchor,
            size: Size::of_text(0),
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
        let mark = ValueMark {
            place: open.place,
            children,
        };
        self.add(
            Built {
                node,
                mark,
                size: open.size,
            },
            open.anchor,
        )
    }

    /// Adds a complete value to the open collection, or makes it the root.
    fn add(&mut self, built: Built, anchor: usize) -> Result<(), Malformed> {
        let place = built.mark.place;
        if anchor != 0 {
            self.count(built.size.values, place)?;
            self.copy(built.size, place)?;
            self.anchors.insert(anchor, built.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(built);
            return Ok(());
        };
        open.size.add(built.size);
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
                    let mark = ValueMark {
                        place: key_place,
                        ..built.mark
                    };
                    marks.push((name.clone(), mark));
                    entries.push((name, node));
                }
                (None, Node::Text(name)) => *key = Some((name, place)),
                (None, _) => {
                    let reason = "a key that is not a text".to_owned();
                    return Err(Malformed { place, reason });
                }
            },
        }
        Ok(())
    }
}
