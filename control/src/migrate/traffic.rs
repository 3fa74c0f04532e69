//! The limits and ejection settings of one level of a `DestinationRule`.

use std::time::Duration;

use tidegate_core::config::{Node, Section, parse_duration};

const NUMBER: &str = "a whole number of at least 0";

/// Settings of connections, not requests: they stay in the rule.
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
/// Settings that the breaker learns instead.
const LEARNED: [&str; 5] = [
    "consecutiveErrors",
    "consecutive5xxErrors",
    "consecutiveGatewayErrors",
    "consecutiveLocalOriginFailures",
    "interval",
];

/// The settings of one level.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TrafficPolicy {
    pub(super) pool: Option<ConnectionPool>,
    pub(super) outlier: Option<OutlierDetection>,
}

/// `connectionPool`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ConnectionPool {
    pub(super) max_connections: Option<u64>,
    pub(super) max_requests: Option<u64>,
    pub(super) max_streams: Option<u64>,
    pub(super) max_pending: Option<u64>,
    pub(super) max_retries: Option<u64>,
    pub(super) is_http2: bool,
    /// Keys that stay in the rule.
    pub(super) staying: Vec<String>,
}

/// `outlierDetection`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OutlierDetection {
    pub(super) base_ejection: Option<Duration>,
    pub(super) max_ejection_percent: Option<u64>,
    pub(super) min_health_percent: Option<u64>,
    /// Keys whose values are learned instead.
    pub(super) learned: Vec<String>,
}

/// Reads both blocks.
pub(super) fn traffic(s: &mut Section<'_>) -> TrafficPolicy {
    TrafficPolicy {
        pool: s
            .has("connectionPool")
            .then(|| s.object("connectionPool", pool)),
        outlier: s
            .has("outlierDetection")
            .then(|| s.object("outlierDetection", outlier)),
    }
}

fn pool(s: &mut Section<'_>) -> ConnectionPool {
    s.allow_unknown();
    let mut read = s.object("http", |s| {
        s.allow_unknown();
        ConnectionPool {
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

fn outlier(s: &mut Section<'_>) -> OutlierDetection {
    s.allow_unknown();
    OutlierDetection {
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

/// A count; Istio's are unsigned or `int32`.
pub(super) fn number(s: &mut Section<'_>, key: &'static str) -> Option<u64> {
    s.value(key, &NUMBER, |node| match node {
        Node::Whole(number) => Some(*number),
        _ => None,
    })
}
