//! Reads a policy from a document.
//!
//! Core reads the configuration in `spec`, in the same section as the targets:
//! one list of errors, one list of known keys. `status` is ignored, and so are all
//! other keys of `metadata` (labels, annotations, keys that the API server adds).

use serde_json::{Map, Value};
use tidegate_core::config::{Config, ConfigErrors, Node, Section};

use super::module_version::{MODULE_KEY, module};
use super::name::{NAME_EXPECTED, is_label, is_name};
use super::read_targets::targets;
use super::{API_VERSION, CheckedPolicy, KIND, PolicyName, TARGET_KEYS};
use crate::document::value_of;

const NAMESPACE_EXPECTED: &str = "a namespace in lower-case letters, digits and -, at most 63 long";

impl CheckedPolicy {
    /// Reads a `BreakerPolicy`.
    ///
    /// # Errors
    /// All errors in the document.
    pub fn read(root: &Node) -> Result<Self, ConfigErrors> {
        let (name, created, (targets, module), config) = Section::read_document(root, |s| {
            constant(s, "apiVersion", API_VERSION);
            constant(s, "kind", KIND);
            let (name, created) = s.object("metadata", metadata);
            s.value("status", &"anything", |_| Some(()));
            let (targets, config) = s.object("spec", |s| {
                let targets = targets(s, name.namespace());
                let module = module(s, &targets);
                ((targets, module), Config::read(s))
            });
            (name, created, targets, config)
        })?;
        Ok(Self {
            name,
            created,
            targets,
            module,
            document: configuration(root),
            config,
        })
    }
}

/// The name in a document, even if the document is invalid, so that errors can
/// name the policy.
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

/// The `spec` without its targets and its module.
fn configuration(root: &Node) -> Map<String, Value> {
    let Some(Node::Object(entries)) = entry(root, "spec") else {
        return Map::new();
    };
    entries
        .iter()
        .filter(|(key, _)| key != MODULE_KEY && !TARGET_KEYS.contains(&key.as_str()))
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
    let name = s.text("name", &NAME_EXPECTED, |text| {
        is_name(text).then(|| text.to_owned())
    });
    if name.is_none() && !s.has("name") {
        s.require("name", &NAME_EXPECTED);
    }
    let namespace = s.text("namespace", &NAMESPACE_EXPECTED, |text| {
        is_label(text).then(|| text.to_owned())
    });
    // The API server sets it; `kubectl create --dry-run` prints null.
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
