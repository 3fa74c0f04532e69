//! The parts of Istio's `DestinationRule` that limit and eject.
//!
//! Read as far as they matter here; keys of other concerns (load balancing,
//! TLS) are passed by. What Istio says of levels holds: a port's settings take
//! the place of the destination's as a whole, a subset's block by block.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_core::config::schema::MAX_RULES;
use tidegate_core::config::{ConfigErrors, Node, Section, parse_duration};

/// API group of the documents.
pub(super) const API_GROUP: &str = "networking.istio.io";
/// Kind of the documents.
pub(super) const KIND: &str = "DestinationRule";

/// Settings that concern connections and not requests: they stay where they are.
const STAYING_TCP: [&str; 4] = [
    "connectTimeout",
    "tcpKeepalive",
    "maxConnectionDuration",
    "idleTimeout",
];
const STAYING_HTTP: [&str; 3] = [
    "maxRequestsPerConnection",
    "idleTimeout",
    "useClientProtocol",
];
/// What a breaker that learns has no setting for.
const LEARNED: [&str; 5] = [
    "consecutiveErrors",
    "consecutive5xxErrors",
    "consecutiveGatewayErrors",
    "consecutiveLocalOriginFailures",
    "interval",
];

/// A rule for one host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DestinationRule {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) host: String,
    pub(super) selector: BTreeMap<String, String>,
    /// The most special first.
    pub(super) parts: Vec<Part>,
}

/// Settings for the whole host, a port, a subset, or a port of a subset.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) subset: Option<String>,
    pub(super) port: Option<u64>,
    pub(super) traffic: Traffic,
}

/// What a level says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Traffic {
    pub(super) pool: Option<Pool>,
    pub(super) outlier: Option<Outlier>,
}

/// `connectionPool`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pool {
    pub(super) max_connections: Option<u64>,
    pub(super) max_requests: Option<u64>,
    pub(super) max_streams: Option<u64>,
    pub(super) max_pending: Option<u64>,
    pub(super) max_retries: Option<u64>,
    pub(super) is_http2: bool,
    /// Keys of it that stay in the rule.
    pub(super) staying: Vec<String>,
}

/// `outlierDetection`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outlier {
    pub(super) base_ejection: Option<Duration>,
    pub(super) max_ejection_percent: Option<u64>,
    pub(super) min_health_percent: Option<u64>,
    /// Keys of it that are learned instead.
    pub(super) learned: Vec<String>,
}

/// Whether a document is a `DestinationRule`, sound or not.
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
    /// Reads one; `namespace` is that of rules that name none.
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

    /// Whether it limits or ejects anywhere.
    pub(super) fn has_limits(&self) -> bool {
        self.parts
            .iter()
            .any(|part| part.traffic != Traffic::default())
    }
}

const HOST: &str = "a host such as reviews or *.example.com";
const NAME: &str = "a name in lower-case letters, digits, - and .";
const NUMBER: &str = "a whole number of at least 0";

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

fn parts(s: &mut Section<'_>) -> Vec<Part> {
    let (base, base_ports) = policy(s, &Traffic::default());
    let mut parts = Vec::new();
    let subsets = s.objects("subsets", MAX_RULES, |s| {
        s.allow_unknown();
        (required_name(s, "name"), policy(s, &base))
    });
    for (name, (_, ports)) in &subsets {
        for (port, traffic) in ports {
            parts.push(Part {
                subset: Some(name.clone()),
                port: Some(*port),
                traffic: traffic.clone(),
            });
        }
    }
    for (name, (traffic, _)) in subsets {
        // One that says nothing of its own needs no rule.
        if traffic != base {
            parts.push(Part {
                subset: Some(name),
                port: None,
                traffic,
            });
        }
    }
    for (port, traffic) in base_ports {
        parts.push(Part {
            subset: None,
            port: Some(port),
            traffic,
        });
    }
    parts.push(Part {
        subset: None,
        port: None,
        traffic: base,
    });
    parts
}

/// The `trafficPolicy` here: for all ports, and for single ones.
fn policy(s: &mut Section<'_>, above: &Traffic) -> (Traffic, Vec<(u64, Traffic)>) {
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
        let merged = Traffic {
            pool: own.pool.or_else(|| above.pool.clone()),
            outlier: own.outlier.or_else(|| above.outlier.clone()),
        };
        (merged, ports)
    })
}

fn traffic(s: &mut Section<'_>) -> Traffic {
    Traffic {
        pool: s
            .has("connectionPool")
            .then(|| s.object("connectionPool", pool)),
        outlier: s
            .has("outlierDetection")
            .then(|| s.object("outlierDetection", outlier)),
    }
}

fn pool(s: &mut Section<'_>) -> Pool {
    s.allow_unknown();
    let mut read = s.object("http", |s| {
        s.allow_unknown();
        Pool {
            max_requests: number(s, "http2MaxRequests"),
            max_streams: number(s, "maxConcurrentStreams"),
            max_pending: number(s, "http1MaxPendingRequests"),
            max_retries: number(s, "maxRetries"),
            is_http2: s.text("h2UpgradePolicy", &"a text", |text| Some(text == "UPGRADE"))
                == Some(true),
            staying: present(s, "http.", &STAYING_HTTP),
            max_connections: None,
        }
    });
    let (connections, staying) = s.object("tcp", |s| {
        s.allow_unknown();
        (
            number(s, "maxConnections"),
            present(s, "tcp.", &STAYING_TCP),
        )
    });
    read.max_connections = connections;
    read.staying.extend(staying);
    read
}

fn outlier(s: &mut Section<'_>) -> Outlier {
    s.allow_unknown();
    Outlier {
        base_ejection: s.text(
            "baseEjectionTime",
            &"a duration such as \"30s\"",
            parse_duration,
        ),
        max_ejection_percent: number(s, "maxEjectionPercent"),
        min_health_percent: number(s, "minHealthPercent"),
        learned: present(s, "", &LEARNED),
    }
}

fn present(s: &Section<'_>, lead: &str, keys: &[&'static str]) -> Vec<String> {
    keys.iter()
        .filter(|key| s.has(key))
        .map(|key| format!("{lead}{key}"))
        .collect()
}

fn number(s: &mut Section<'_>, key: &'static str) -> Option<u64> {
    s.value(key, &NUMBER, |node| match node {
        Node::Whole(number) => Some(*number),
        _ => None,
    })
}
