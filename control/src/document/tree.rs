//! A document with the position of each of its values.

use tidegate_core::config::Node;

use super::marks::{Children, TextPosition, ValueMark};

/// One document of a text.
#[derive(Clone, Debug)]
pub struct YamlDocument {
    pub(super) root: Node,
    pub(super) marks: ValueMark,
}

impl YamlDocument {
    /// Its content.
    #[must_use]
    pub const fn root(&self) -> &Node {
        &self.root
    }

    /// The entries of a `kind: List`; any other document as it is.
    pub(super) fn unfolded(self) -> Vec<Self> {
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
    pub const fn start(&self) -> TextPosition {
        self.marks.place
    }

    /// The position of the value at `path`, spelled as in core's errors; if the value
    /// is missing, the position of the deepest value on the way to it.
    #[must_use]
    pub fn locate(&self, path: &str) -> TextPosition {
        self.marks.locate(path)
    }
}

/// Why a text was rejected as YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct Malformed {
    /// Where reading stopped.
    pub place: TextPosition,
    /// Why it stopped.
    pub reason: String,
}
