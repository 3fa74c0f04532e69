//! Matches a standalone proxy by the node in its bootstrap.
//!
//! Envoy sends its `node` with every request: an id, a cluster, and the
//! metadata of the bootstrap. All conditions of an entry must hold. A
//! [`Specificity`] measures how closely an entry matches, so that the policy of
//! one proxy beats that of its fleet, independent of their order.

use std::fmt;

use serde_json::{Map, Value};
use tidegate_core::config::Pattern;

use super::ProxyNode;
use crate::document::canonical;

/// Conditions on a proxy; at least one is set, and all that are set must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyMatch {
    /// The node's id.
    pub id: Option<Pattern>,
    /// The node's cluster.
    pub cluster: Option<Pattern>,
    /// Part of the node's metadata: objects are compared key by key, texts as patterns,
    /// everything else for equality.
    pub metadata: Map<String, Value>,
}

/// How closely an entry matches: first by id, then by the number of metadata values
/// it names, then by cluster. Greater is more specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    /// How closely the id is specified.
    pub id: Grain,
    /// How many metadata values are specified.
    pub metadata_values: usize,
    /// How closely the cluster is specified.
    pub cluster: Grain,
}

/// How closely a name is specified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// Not at all.
    Any,
    /// By a pattern with this many characters other than `*`.
    Pattern(usize),
    /// In full.
    Exact,
}

impl ProxyMatch {
    /// Whether every condition holds for `proxy`.
    #[must_use]
    pub fn matches(&self, proxy: &ProxyNode) -> bool {
        let holds = |pattern: &Option<Pattern>, name: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.matches(name))
        };
        holds(&self.id, &proxy.id)
            && holds(&self.cluster, &proxy.cluster)
            && is_part(&self.metadata, &proxy.metadata)
    }

    /// How closely it matches the proxies that it matches.
    #[must_use]
    pub fn specificity(&self) -> Specificity {
        Specificity {
            id: Grain::of(self.id.as_ref()),
            metadata_values: self.metadata.values().map(leaves).sum(),
            cluster: Grain::of(self.cluster.as_ref()),
        }
    }
}

/// `id web-*, cluster web, metadata {"zone":"a"}`.
impl fmt::Display for ProxyMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lead = "";
        let mut part = |f: &mut fmt::Formatter<'_>, name: &str, value: &dyn fmt::Display| {
            let written = write!(f, "{lead}{name} {value}");
            lead = ", ";
            written
        };
        if let Some(id) = &self.id {
            part(f, "id", id)?;
        }
        if let Some(cluster) = &self.cluster {
            part(f, "cluster", cluster)?;
        }
        if !self.metadata.is_empty() {
            part(f, "metadata", &canonical(&self.metadata))?;
        }
        Ok(())
    }
}

impl Grain {
    fn of(pattern: Option<&Pattern>) -> Self {
        match pattern {
            None => Self::Any,
            Some(pattern) if pattern.as_str().contains('*') => {
                Self::Pattern(pattern.as_str().chars().filter(|c| *c != '*').count())
            }
            Some(_) => Self::Exact,
        }
    }
}

fn is_part(wanted: &Map<String, Value>, metadata: &Map<String, Value>) -> bool {
    wanted.iter().all(|(key, wanted)| {
        metadata
            .get(key)
            .is_some_and(|value| is_like(wanted, value))
    })
}

fn is_like(wanted: &Value, value: &Value) -> bool {
    match (wanted, value) {
        (Value::Object(wanted), Value::Object(value)) => is_part(wanted, value),
        (Value::String(wanted), Value::String(value)) => {
            wanted == value || Pattern::parse(wanted).is_some_and(|pattern| pattern.matches(value))
        }
        // Envoy's metadata is a protobuf struct, whose numbers are doubles.
        (Value::Number(wanted), Value::Number(value)) => wanted.as_f64() == value.as_f64(),
        _ => wanted == value,
    }
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(object) => object.values().map(leaves).sum(),
        _ => 1,
    }
}
