//! A policy out of a document.
//!
//! The configuration in `spec` is read by core, in the same section as the
//! targets: one list of errors, one list of known keys. In `metadata` the keys
//! of others (labels, annotations, what the API server adds) are passed by,
//! and so is `status`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tidegate_core::config::schema::{MAX_ENTRIES, NAME_EXPECTED};
use tidegate_core::config::{Choice, Config, ConfigErrors, Node, Pattern, Section};

use super::{API_VERSION, KIND, MAX_TARGETS, TARGET_KEYS};
use super::{Policy, PolicyName, ProxyMatch, TargetKind, TargetRef, Targets};
use crate::document::value_of;

const NAME_TAKEN: &str = "a name in lower-case letters, digits, - and ., at most 253 long";
const NAMESPACE_TAKEN: &str = "a namespace in lower-case letters, digits and -, at most 63 long";
const LABELS_TAKEN: &str = "an object of 1 to 64 labels, each a text";
const METADATA_TAKEN: &str = "an object with at least one entry";

/// Most labels in a selector.
const MAX_LABELS: usize = 64;

/// Most characters of a name, of a label and of a namespace: what Kubernetes takes.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

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

fn targets(s: &mut Section<'_>, namespace: Option<&str>) -> Targets {
    let errors = s.error_count();
    let mut refs: Vec<TargetRef> = Vec::new();
    let has_refs = s.has("targetRefs");
    s.objects("targetRefs", MAX_TARGETS, |s| {
        if let Some(target) = target_ref(s, namespace, &refs) {
            refs.push(target);
        }
    });
    let selector = if s.has("selector") {
        Some(s.object("selector", selector))
    } else {
        // Asked for all the same, so that it counts among the known keys.
        s.value("selector", &"an object", |_| None)
    };
    let has_proxies = s.has("proxies");
    let proxies = s.objects("proxies", MAX_ENTRIES, proxy_match);
    let proxies = has_proxies.then_some(proxies);
    let given = [proxies.is_some(), selector.is_some(), has_refs];
    match given.iter().filter(|given| **given).count() {
        1 => {}
        0 => s.refuse_whole("no target".to_owned(), one_of_targets()),
        _ => s.refuse_whole("targets of more than one kind".to_owned(), one_of_targets()),
    }
    let is_empty = proxies.as_ref().is_some_and(Vec::is_empty) || (has_refs && refs.is_empty());
    if is_empty && errors == s.error_count() {
        s.refuse_whole(
            "an empty list of targets".to_owned(),
            "at least one entry".to_owned(),
        );
    }
    match (proxies, selector) {
        (Some(proxies), _) => Targets::Proxies(proxies),
        (None, Some(labels)) => Targets::Selector(labels),
        (None, None) => Targets::Refs(refs),
    }
}

fn one_of_targets() -> String {
    format!("exactly one of {}", TARGET_KEYS.join(", "))
}

fn proxy_match(s: &mut Section<'_>) -> ProxyMatch {
    let errors = s.error_count();
    let read = ProxyMatch {
        id: s.text("id", &NAME_EXPECTED, Pattern::parse),
        cluster: s.text("cluster", &NAME_EXPECTED, Pattern::parse),
        metadata: s
            .value("metadata", &METADATA_TAKEN, |node| match value_of(node) {
                Value::Object(object) if !object.is_empty() => Some(object),
                _ => None,
            })
            .unwrap_or_default(),
    };
    let is_empty = read.id.is_none() && read.cluster.is_none() && read.metadata.is_empty();
    if is_empty && errors == s.error_count() {
        s.refuse_whole(
            "no condition".to_owned(),
            "at least one of id, cluster, metadata".to_owned(),
        );
    }
    read
}

fn selector(s: &mut Section<'_>) -> BTreeMap<String, String> {
    let labels = s.value("matchLabels", &LABELS_TAKEN, labels);
    if labels.is_none() && !s.has("matchLabels") {
        s.require("matchLabels", &LABELS_TAKEN);
    }
    labels.unwrap_or_default()
}

fn labels(node: &Node) -> Option<BTreeMap<String, String>> {
    let Node::Object(entries) = node else {
        return None;
    };
    let labels: BTreeMap<String, String> = entries
        .iter()
        .filter_map(|(key, value)| match value {
            Node::Text(value) if is_label_key(key) && is_label_value(value) => {
                Some((key.clone(), value.clone()))
            }
            _ => None,
        })
        .collect();
    let is_sound = labels.len() == entries.len() && (1..=MAX_LABELS).contains(&labels.len());
    is_sound.then_some(labels)
}

fn is_label_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    prefix.is_none_or(is_name) && !name.is_empty() && is_label_value(name)
}

fn is_label_value(value: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    value.len() <= MAX_LABEL
        && is_end(value.chars().next())
        && is_end(value.chars().next_back())
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn target_ref(
    s: &mut Section<'_>,
    namespace: Option<&str>,
    earlier: &[TargetRef],
) -> Option<TargetRef> {
    let kind = s.choice::<TargetKind>("kind");
    if kind.is_none() && !s.has("kind") {
        s.require("kind", &kinds());
    }
    let groups = match kind {
        Some(TargetKind::Gateway) => "\"gateway.networking.k8s.io\"",
        Some(_) => "\"\" or \"core\"",
        None => "the group of the kind",
    };
    let group = s.text("group", &groups, |text| {
        kind.is_none_or(|kind| kind.is_in_group(text)).then_some(())
    });
    if group.is_none() && !s.has("group") && kind == Some(TargetKind::Gateway) {
        s.require("group", &groups);
    }
    let name = s.text("name", &NAME_TAKEN, |text| {
        is_name(text).then(|| text.to_owned())
    });
    if name.is_none() && !s.has("name") {
        s.require("name", &NAME_TAKEN);
    }
    let target = TargetRef {
        kind: kind?,
        name: name?,
    };
    if target.kind == TargetKind::Namespace
        && let Some(own) = namespace
        && own != target.name
    {
        s.refuse("name", format!("\"{own}\", the policy's own namespace"));
    } else if let Some(index) = earlier.iter().position(|earlier| *earlier == target) {
        s.refuse_whole(
            format!("the target of targetRefs[{index}] again"),
            "each target once".to_owned(),
        );
    }
    Some(target)
}

fn kinds() -> String {
    let names: Vec<String> = <TargetKind as Choice>::ALL
        .iter()
        .map(|kind| format!("\"{}\"", kind.name()))
        .collect();
    format!("one of {}", names.join(", "))
}
