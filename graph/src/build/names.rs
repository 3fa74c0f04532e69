//! From labels to the ends of an edge.
//!
//! Istio writes `unknown` for what it does not know, and has clusters of its own for destinations that it does not know.
//! Unknown callers and unknown upstreams are two vertices, because one vertex would look as if it called itself.

use std::collections::BTreeMap;

use tidegate_core::{Direction, ServiceName};

use crate::model::{VertexKey, VertexKind};
use crate::queries::{EndKind, EndLabels};

/// What Istio writes for a name that it does not know.
const UNKNOWN: &str = "unknown";
/// Clusters of Istio for destinations that no service names.
const NAMELESS: [&str; 5] = [
    "PassthroughCluster",
    "BlackHoleCluster",
    "InboundPassthroughCluster",
    "InboundPassthroughClusterIpv4",
    "InboundPassthroughClusterIpv6",
];

/// Which end of an edge labels name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeEnd {
    Caller,
    Upstream,
}

/// One end of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedEnd {
    pub(super) key: VertexKey,
    /// The name of Envoy's cluster, if the labels name one.
    pub(super) cluster: Option<String>,
}

/// The end that labels name; `None` for a cluster that leads to the proxy's own workload.
pub(super) fn named(
    metric: &BTreeMap<String, String>,
    labels: &EndLabels,
    end: EdgeEnd,
) -> Option<NamedEnd> {
    let value = |label: &str| metric.get(label).map_or("", String::as_str);
    let name = value(&labels.name);
    if matches!(name, "" | UNKNOWN) {
        return Some(unknown(match end {
            EdgeEnd::Caller => "unknown caller",
            EdgeEnd::Upstream => "unknown upstream",
        }));
    }
    if NAMELESS.contains(&name) {
        return Some(unknown(name));
    }
    if labels.kind == EndKind::Cluster {
        return cluster(name);
    }
    let namespace = labels.namespace.as_deref().map_or("", value);
    Some(NamedEnd {
        key: VertexKey {
            namespace: if namespace == UNKNOWN { "" } else { namespace }.to_owned(),
            name: name.to_owned(),
            kind: labels.kind.vertex(),
        },
        cluster: None,
    })
}

fn unknown(name: &str) -> NamedEnd {
    NamedEnd {
        key: VertexKey {
            namespace: String::new(),
            name: name.to_owned(),
            kind: VertexKind::Unknown,
        },
        cluster: None,
    }
}

/// The service that a cluster of Envoy leads to.
fn cluster(name: &str) -> Option<NamedEnd> {
    let parsed = ServiceName::parse(name);
    if matches!(parsed.direction, Some(Direction::Inbound)) {
        return None;
    }
    let host = parsed.host?;
    let mut labels = host.splitn(4, '.');
    let (service, namespace) = match (labels.next(), labels.next(), labels.next()) {
        // The name of a service in Kubernetes: service.namespace.svc and the domain of the cluster.
        (Some(service), Some(namespace), Some("svc")) => (service, namespace),
        _ => (host, ""),
    };
    Some(NamedEnd {
        key: VertexKey {
            namespace: namespace.to_owned(),
            name: service.to_owned(),
            kind: VertexKind::Service,
        },
        cluster: Some(name.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(kind: EndKind, labels: &[(&str, &str)], end: EdgeEnd) -> Option<NamedEnd> {
        let metric = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let spec = EndLabels {
            namespace: Some("ns".to_owned()),
            name: "name".to_owned(),
            kind,
        };
        named(&metric, &spec, end)
    }

    #[test]
    fn a_workload_is_named_with_its_namespace() {
        let found = end(
            EndKind::Workload,
            &[("ns", "shop"), ("name", "web")],
            EdgeEnd::Caller,
        )
        .unwrap();

        assert_eq!(found.key.to_string(), "shop/web");
        assert_eq!(found.key.kind, VertexKind::Workload);
    }

    #[test]
    fn unknown_callers_and_upstreams_are_two_vertices() {
        let caller = end(
            EndKind::Workload,
            &[("ns", "unknown"), ("name", "unknown")],
            EdgeEnd::Caller,
        )
        .unwrap();
        let upstream = end(EndKind::Service, &[], EdgeEnd::Upstream).unwrap();

        assert_eq!(caller.key.to_string(), "unknown caller");
        assert_eq!(upstream.key.to_string(), "unknown upstream");
        assert_eq!(upstream.key.kind, VertexKind::Unknown);
    }

    #[test]
    fn passthrough_is_unknown() {
        let found = end(
            EndKind::Service,
            &[("name", "PassthroughCluster")],
            EdgeEnd::Upstream,
        )
        .unwrap();

        assert_eq!(found.key.kind, VertexKind::Unknown);
        assert_eq!(found.key.to_string(), "PassthroughCluster");
    }

    #[test]
    fn a_cluster_of_istio_leads_to_a_service() {
        let of = |name| end(EndKind::Cluster, &[("name", name)], EdgeEnd::Upstream);
        for (cluster, expected) in [
            (
                "outbound|9080|v2|reviews.shop.svc.cluster.local",
                "shop/reviews",
            ),
            ("outbound|443||api.example.com", "api.example.com"),
            ("backend", "backend"),
        ] {
            let found = of(cluster).unwrap();
            assert_eq!(found.key.to_string(), expected);
            assert_eq!(found.cluster.as_deref(), Some(cluster));
        }
        assert_eq!(
            of("inbound|9080||"),
            None,
            "a proxy's own workload is no upstream"
        );
    }
}
