//! Reads the parts of Istio's `DestinationRule` that limit and eject.
//!
//! Other keys (load balancing, TLS) are ignored. Levels override each other as in
//! Istio: a port's settings replace all settings of the destination, a subset's
//! replace them block by block.

use std::collections::BTreeMap;

use tidegate_core::config::schema::MAX_RULES;
use tidegate_core::config::{ConfigErrors, Node, Section};

use super::traffic::{TrafficPolicy, number, traffic};

/// API group of the documents.
pub(super) const API_GROUP: &str = "networking.istio.io";
/// Kind of the documents.
pub(super) const KIND: &str = "DestinationRule";

/// A rule for one host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DestinationRule {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) host: String,
    pub(super) selector: BTreeMap<String, String>,
    /// The most specific first.
    pub(super) parts: Vec<RulePart>,
}

/// Settings for the whole host, a port, a subset, or a port of a subset.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RulePart {
    pub(super) subset: Option<String>,
    pub(super) port: Option<u64>,
    pub(super) traffic: TrafficPolicy,
}

/// Whether a document is a `DestinationRule`, valid or not.
pub(super) fn is_one(root: &Node) -> bool {
    let Node::Object(entries) = root else {
        return false;
    };
    let has = |key: &str, holds: &dyn Fn(&str) -> bool| {
        entries
            .iter()
            .any(|(name, node)| name == key && matches!(node, Node::Text(text) if holds(text)))
    };
    has("kind", &|kind| kind == KIND)
        && has("apiVersion", &|version| {
            version
                .split_once('/')
                .is_some_and(|(group, _)| group == API_GROUP)
        })
}

impl DestinationRule {
    /// Reads a rule; `namespace` is the default for rules without one.
    pub(super) fn read(root: &Node, namespace: &str) -> Result<Self, ConfigErrors> {
        Section::read_document(root, |s| {
            s.allow_unknown();
            let (name, own) = s.object("metadata", |s| {
                s.allow_unknown();
                (required_name(s, "name"), name(s, "namespace"))
            });
            let namespace = own.unwrap_or_else(|| namespace.to_owned());
            s.object("spec", |s| {
                s.allow_unknown();
                let host = s.text("host", &HOST, |text| {
                    is_host(text).then(|| text.to_ascii_lowercase())
                });
                if host.is_none() && !s.has("host") {
                    s.require("host", &HOST);
                }
                let selector = s.object("workloadSelector", |s| {
                    s.allow_unknown();
                    s.value("matchLabels", &"labels", labels)
                        .unwrap_or_default()
                });
                Self {
                    name,
                    host: qualified(&host.unwrap_or_default(), &namespace),
                    namespace,
                    selector,
                    parts: parts(s),
                }
            })
        })
    }

    /// Whether it contains any limit or ejection.
    pub(super) fn has_limits(&self) -> bool {
        self.parts
            .iter()
            .any(|part| part.traffic != TrafficPolicy::default())
    }
}

const HOST: &str = "a host such as reviews or *.example.com";
const NAME: &str = "a name in lower-case letters, digits, - and .";

fn required_name(s: &mut Section<'_>, key: &'static str) -> String {
    let read = name(s, key);
    if read.is_none() && !s.has(key) {
        s.require(key, &NAME);
    }
    read.unwrap_or_default()
}

fn name(s: &mut Section<'_>, key: &'static str) -> Option<String> {
    s.text(key, &NAME, |text| {
        crate::policy::is_name(text).then(|| text.to_owned())
    })
}

fn is_host(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b".-_*".contains(&b);
    (1..=253).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// A short name means the service in the rule's own namespace.
fn qualified(host: &str, namespace: &str) -> String {
    if host.contains(['.', '*']) {
        host.to_owned()
    } else {
        format!("{host}.{namespace}")
    }
}

fn labels(node: &Node) -> Option<BTreeMap<String, String>> {
    let Node::Object(entries) = node else {
        return None;
    };
    entries
        .iter()
        .map(|(key, value)| match value {
            Node::Text(value) => Some((key.clone(), value.clone())),
            _ => None,
        })
        .collect()
}

fn parts(s: &mut Section<'_>) -> Vec<RulePart> {
    let (base, base_ports) = policy(s, &TrafficPolicy::default());
    let mut parts = Vec::new();
    let subsets = s.objects("subsets", MAX_RULES, |s| {
        s.allow_unknown();
        (required_name(s, "name"), policy(s, &base))
    });
    for (name, (_, ports)) in &subsets {
        for (port, traffic) in ports {
            parts.push(RulePart {
                subset: Some(name.clone()),
                port: Some(*port),
                traffic: traffic.clone(),
            });
        }
    }
    for (name, (traffic, _)) in subsets {
        // A subset without settings of its own needs no rule.
        if traffic != base {
            parts.push(RulePart {
                subset: Some(name),
                port: None,
                traffic,
            });
        }
    }
    for (port, traffic) in base_ports {
        parts.push(RulePart {
            subset: None,
            port: Some(port),
            traffic,
        });
    }
    parts.push(RulePart {
        subset: None,
        port: None,
        traffic: base,
    });
    parts
}

/// The `trafficPolicy` at this level: for all ports, and for single ports.
fn policy(
    s: &mut Section<'_>,
    above: &TrafficPolicy,
) -> (TrafficPolicy, Vec<(u64, TrafficPolicy)>) {
    s.object("trafficPolicy", |s| {
        s.allow_unknown();
        let own = traffic(s);
        let ports = s.objects("portLevelSettings", MAX_RULES, |s| {
            s.allow_unknown();
            let port = s.object("port", |s| {
                s.allow_unknown();
                number(s, "number")
            });
            (port.unwrap_or_default(), traffic(s))
        });
        let merged = TrafficPolicy {
            pool: own.pool.or_else(|| above.pool.clone()),
            outlier: own.outlier.or_else(|| above.outlier.clone()),
        };
        (merged, ports)
    })
}
