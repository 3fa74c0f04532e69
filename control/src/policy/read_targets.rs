//! Reads the targets from the `spec` of a policy.

use std::collections::BTreeMap;

use serde_json::Value;
use tidegate_core::config::schema::{MAX_ENTRIES, NAME_EXPECTED as PATTERN_EXPECTED};
use tidegate_core::config::{Choice, Node, Pattern, Section};

use super::name::{MAX_LABEL, NAME_EXPECTED, is_name};
use super::{MAX_TARGETS, PolicyTargets, ProxyMatch, TARGET_KEYS, TargetKind, TargetRef};
use crate::document::value_of;

const LABELS_EXPECTED: &str = "an object of 1 to 64 labels, each a text";
const METADATA_EXPECTED: &str = "an object with at least one entry";

/// Most labels in a selector.
const MAX_LABELS: usize = 64;

/// Reads the targets; `namespace` is the policy's own, if known.
pub(super) fn targets(s: &mut Section<'_>, namespace: Option<&str>) -> PolicyTargets {
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
        // Read it anyway, so that it is one of the known keys.
        s.value("selector", &"an object", |_| None)
    };
    let has_proxies = s.has("proxies");
    let proxies = s.objects("proxies", MAX_ENTRIES, proxy_match);
    let proxies = has_proxies.then_some(proxies);
    let given = [proxies.is_some(), selector.is_some(), has_refs];
    match given.iter().filter(|given| **given).count() {
        1 => {}
        0 => s.reject_whole("no target".to_owned(), one_of_targets()),
        _ => s.reject_whole("targets of more than one kind".to_owned(), one_of_targets()),
    }
    let is_empty = proxies.as_ref().is_some_and(Vec::is_empty) || (has_refs && refs.is_empty());
    if is_empty && errors == s.error_count() {
        s.reject_whole(
            "an empty list of targets".to_owned(),
            "at least one entry".to_owned(),
        );
    }
    match (proxies, selector) {
        (Some(proxies), _) => PolicyTargets::Proxies(proxies),
        (None, Some(labels)) => PolicyTargets::Selector(labels),
        (None, None) => PolicyTargets::Refs(refs),
    }
}

fn one_of_targets() -> String {
    format!("exactly one of {}", TARGET_KEYS.join(", "))
}

fn proxy_match(s: &mut Section<'_>) -> ProxyMatch {
    let errors = s.error_count();
    let read = ProxyMatch {
        id: s.text("id", &PATTERN_EXPECTED, Pattern::parse),
        cluster: s.text("cluster", &PATTERN_EXPECTED, Pattern::parse),
        metadata: s
            .value("metadata", &METADATA_EXPECTED, |node| {
                match value_of(node) {
                    Value::Object(object) if !object.is_empty() => Some(object),
                    _ => None,
                }
            })
            .unwrap_or_default(),
    };
    let is_empty = read.id.is_none() && read.cluster.is_none() && read.metadata.is_empty();
    if is_empty && errors == s.error_count() {
        s.reject_whole(
            "no condition".to_owned(),
            "at least one of id, cluster, metadata".to_owned(),
        );
    }
    read
}

fn selector(s: &mut Section<'_>) -> BTreeMap<String, String> {
    let labels = s.value("matchLabels", &LABELS_EXPECTED, labels);
    if labels.is_none() && !s.has("matchLabels") {
        s.require("matchLabels", &LABELS_EXPECTED);
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
    let name = s.text("name", &NAME_EXPECTED, |text| {
        is_name(text).then(|| text.to_owned())
    });
    if name.is_none() && !s.has("name") {
        s.require("name", &NAME_EXPECTED);
    }
    let target = TargetRef {
        kind: kind?,
        name: name?,
    };
    if target.kind == TargetKind::Namespace
        && let Some(own) = namespace
        && own != target.name
    {
        s.reject("name", format!("\"{own}\", the policy's own namespace"));
    } else if let Some(index) = earlier.iter().position(|earlier| *earlier == target) {
        s.reject_whole(
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
