//! From bytes to a small tree that keeps every entry.
//!
//! `serde` derives stop at the first error, and `serde_json::Value` silently
//! drops all but the last of equal keys. So the text is read into a tree that
//! keeps every entry in order. The checks happen on the tree.
//!
//! Edges: the size is checked before parsing, and UTF-8 before JSON.
//! `serde_json` bounds the nesting depth (128), and this file the number of
//! values.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::errors::{ConfigError, ConfigErrors, quoted, shortened};
use super::examples::MINIMAL_EXAMPLE;
use crate::ratio::decimal;

/// Largest accepted document, in bytes. A thousand rules with every key set
/// are about half of it.
pub const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// Most JSON values in a document: bounds the memory of a worker while it reads.
pub const MAX_VALUES: usize = 100_000;

/// A JSON value; objects keep order and duplicates.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A non-negative integer.
    Whole(u64),
    /// Any other number; finite.
    Number(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// An object, key by key.
    Object(Vec<(String, Self)>),
}

impl Node {
    /// The document as a tree.
    ///
    /// # Errors
    /// One error when the document is too large, not UTF-8, blank or not JSON.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigErrors> {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(whole_document(
                format!("{} bytes", bytes.len()),
                format!("at most {MAX_DOCUMENT_BYTES} bytes"),
            ));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            whole_document(
                format!("invalid UTF-8 at byte {}", error.valid_up_to()),
                "UTF-8 text".to_owned(),
            )
        })?;
        if text.trim_ascii().is_empty() {
            return Err(whole_document(
                "nothing".to_owned(),
                format!("at least the objective, such as {MINIMAL_EXAMPLE}"),
            ));
        }
        let mut budget = MAX_VALUES;
        let mut json = serde_json::Deserializer::from_str(text);
        NodeSeed {
            budget: &mut budget,
        }
        .deserialize(&mut json)
        .and_then(|node| json.end().map(|()| node))
        .map_err(|error| malformed(&error))
    }

    /// The value as an error shows it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(true) => "true".to_owned(),
            Self::Bool(false) => "false".to_owned(),
            Self::Whole(value) => value.to_string(),
            Self::Number(value) => shortened(&decimal(*value)),
            Self::Text(text) => quoted(text),
            Self::List(_) => "a list".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }
}

fn whole_document(found: String, expected: String) -> ConfigErrors {
    ConfigErrors::one(ConfigError::new("document".to_owned(), found, expected))
}

fn malformed(error: &serde_json::Error) -> ConfigErrors {
    let text = error.to_string();
    // The message names the place once, at its start.
    let reason = text.split(" at line ").next().unwrap_or(&text);
    ConfigErrors::one(ConfigError::new(
        format!("line {}, column {}", error.line(), error.column()),
        format!("malformed JSON ({})", shortened(reason)),
        "a JSON object".to_owned(),
    ))
}

/// Reads one value. `budget` is how many more values the document may have.
struct NodeSeed<'a> {
    budget: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let Some(rest) = self.budget.checked_sub(1) else {
            return Err(D::Error::custom(format_args!(
                "more than {MAX_VALUES} values"
            )));
        };
        *self.budget = rest;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Whole(value))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "only negative integers arrive here, and no field takes one: the value is merely shown"
    )]
    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(NodeSeed {
            budget: &mut *self.budget,
        })? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(NodeSeed {
                budget: &mut *self.budget,
            })?;
            object.push((key, value));
        }
        Ok(Node::Object(object))
    }
}
