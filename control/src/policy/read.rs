//! A policy out of a document.
//!
//! The configuration in `spec` is read by core, in the same section as the
//! targets: one list of errors, one list of known keys. In `metadata` the keys
//! of others (labels, annotations, what the API server adds) are passed by,
//! and so is `status`.

use serde_json::{Map, Value};
use tidegate_core::config::{Config, ConfigErrors, Node, Section};

use super::read_targets::targets;
use super::{API_VERSION, KIND, Policy, PolicyName, TARGET_KEYS};
use crate::document::value_of;

pub(super) const NAME_TAKEN: &str =
    "a name in lower-case letters, digits, - and ., at most 253 long";
const NAMESPACE_TAKEN: &str = "a namespace in lower-case letters, digits and -, at most 63 long";

/// Most characters of a name, of a label and of a namespace: what Kubernetes takes.
const MAX_NAME: usize = 253;
pub(super) const MAX_LABEL: usize = 63;

impl Policy {
    /// Reads a `BreakerPolicy`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(root: &Node) -> Result<Self, ConfigErrors> {
        let (name, created, targets, config) = Section::read_document(root, |s| {
            constant(s, "apiVersion", API_VERSION);
            constant(s, "kind", KIND);
            let (name, created) = s.object("metadata", metadata);
            s.value("status", &"anything", |_| Some(()));
            let (targets, config) = s.object("spec", |s| {
                let targets = targets(s, name.namespace());
                (targets, Config::read(s))
            });
            (name, created, targets, config)
        })?;
        Ok(Self {
            name,
            created,
            targets,
            document: configuration(root),
            config,
        })
    }
}

/// The name that a document bears, sound or not, so that errors can say whose
/// they are.
pub(super) fn name_in(root: &Node) -> Option<PolicyName> {
    let metadata = entry(root, "metadata")?;
    let text = |key| match entry(metadata, key) {
        Some(Node::Text(text)) => Some(text.clone()),
        _ => None,
    };
    Some(PolicyName::new(text("namespace"), text("name")?))
        .filter(|name| is_name(name.name()) && name.namespace().is_none_or(is_label))
}

fn entry<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    match node {
        Node::Object(entries) => entries
            .iter()
            .find_map(|(name, node)| (name == key).then_some(node)),
        _ => None,
    }
}

/// The `spec` without its targets.
fn configuration(root: &Node) -> Map<String, Value> {
    let Some(Node::Object(entries)) = entry(root, "spec") else {
        return Map::new();
    };
    entries
        .iter()
        .filter(|(key, _)| !TARGET_KEYS.contains(&key.as_str()))
        .map(|(key, node)| (key.clone(), value_of(node)))
        .collect()
}

fn constant(s: &mut Section<'_>, key: &'static str, wanted: &'static str) {
    let expected = format!("\"{wanted}\"");
    if s.text(key, &expected, |text| (text == wanted).then_some(()))
        .is_none()
        && !s.has(key)
    {
        s.require(key, &expected);
    }
}

fn metadata(s: &mut Section<'_>) -> (PolicyName, Option<jiff::Timestamp>) {
    s.allow_unknown();
    let name = s.text("name", &NAME_TAKEN, |text| {
        is_name(text).then(|| text.to_owned())
    });
    if name.is_none() && !s.has("name") {
        s.require("name", &NAME_TAKEN);
    }
    let namespace = s.text("namespace", &NAMESPACE_TAKEN, |text| {
        is_label(text).then(|| text.to_owned())
    });
    // The API server writes it; null in what `kubectl create --dry-run` prints.
    let created = s.value(
        "creationTimestamp",
        &"a time such as \"2026-01-31T12:00:00Z\"",
        |node| match node {
            Node::Null => Some(None),
            Node::Text(text) => text.parse().ok().map(Some),
            _ => None,
        },
    );
    (
        PolicyName::new(namespace, name.unwrap_or_default()),
        created.flatten(),
    )
}

/// Whether Kubernetes takes `text` as a name.
pub(crate) fn is_name(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= MAX_NAME
        && text.split('.').all(|part| {
            !part.is_empty()
                && !part.starts_with('-')
                && !part.ends_with('-')
                && part.bytes().all(is_allowed)
        })
}

fn is_label(text: &str) -> bool {
    text.len() <= MAX_LABEL && !text.contains('.') && is_name(text)
}
