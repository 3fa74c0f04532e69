//! Which service a request goes to.
//!
//! Envoy names a cluster; Istio packs the direction, port, subset and host of a service into that name. State
//! is kept by cluster (and by route, where a rule asks for it), because that is what shares endpoints; rules
//! match the service, because that is what people name.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::mix::mix;

/// An upstream that was idle for this long may lose its place to another one.
pub(crate) const EVICTABLE_AFTER: Duration = Duration::from_secs(60);

/// Handle of an upstream within one engine. Only meaningful to the engine that gave it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpstreamId(pub(crate) u32);

impl UpstreamId {
    /// The upstream that stands for all beyond the cap.
    pub const OVERFLOW: Self = Self(0);

    /// A small number, for tables beside the engine: ids are given out from 0 without gaps.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What tells one destination of a cluster from others in this engine. The authority is the caller's choice: a caller that
/// could choose the number would have its failures counted for a destination of others. So it starts from a key that
/// callers do not know, and each step depends on all before.
#[must_use]
pub(crate) fn destination_hash(key: u64, cluster: u64, authority: &str) -> u64 {
    let mut hash = mix(key ^ mix(cluster));
    for part in authority.as_bytes().chunks(8) {
        let part = part.iter().fold(0, |part, byte| {
            part << 8 | u64::from(byte.to_ascii_lowercase())
        });
        hash = mix(hash ^ part);
    }
    // The last part may have been short.
    mix(hash ^ authority.len() as u64)
}

/// What state is kept for: an Envoy cluster, or one route's share of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UpstreamKey {
    /// The cluster's name as Envoy has it.
    pub cluster: String,
    /// The route's name, only where the configuration matches on routes.
    pub route: Option<String>,
}

impl UpstreamKey {
    /// A copy of a name.
    #[must_use]
    pub fn new(cluster: &str, route: Option<&str>) -> Arc<Self> {
        Arc::new(Self {
            cluster: cluster.to_owned(),
            route: route.map(str::to_owned),
        })
    }

    /// A key that stays the same in every worker and every version: 64-bit FNV-1a of cluster and route
    /// (Fowler, Noll, Vo; the parameters are those of the IETF draft draft-eastlake-fnv).
    #[must_use]
    pub fn hash(cluster: &str, route: Option<&str>) -> u64 {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        // A cluster's name has no NUL, so "a" + "b" and "ab" stay apart.
        let separator = route.map(|_| 0_u8);
        cluster
            .bytes()
            .chain(separator)
            .chain(route.unwrap_or_default().bytes())
            .fold(OFFSET, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(PRIME)
            })
    }
}

/// Gives names of upstreams to all engines of a process, which then share the copies.
pub trait KeySource: fmt::Debug + Send + Sync {
    /// The name of the upstream behind `cluster` (and `route`).
    fn key(&self, cluster: &str, route: Option<&str>) -> Arc<UpstreamKey>;
}

/// Whether a cluster's name says that it leads to several destinations that have nothing in common: those through which
/// Istio sends what no service is known of, and those of its services with a wildcard for a host, whose requests go where
/// they say (resolution `NONE` and `DYNAMIC_DNS`).
#[must_use]
pub(crate) fn leads_anywhere(cluster: &str) -> bool {
    let is_passthrough = matches!(
        cluster,
        "PassthroughCluster"
            | "InboundPassthroughCluster"
            | "InboundPassthroughClusterIpv4"
            | "InboundPassthroughClusterIpv6"
            | "BlackHoleCluster"
            | "AllowAnyDynamicDNSCluster"
    );
    let name = ServiceName::parse(cluster);
    let is_wildcard = || name.host.is_some_and(|host| host.starts_with('*'));
    is_passthrough || name.direction.is_some() && is_wildcard()
}

/// Which way a sidecar's cluster leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To other services.
    Outbound,
    /// To the workload beside the proxy.
    Inbound,
}

/// The parts of a cluster's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceName<'a> {
    /// Which way it leads; `None` when the name is not Istio's.
    pub direction: Option<Direction>,
    /// The service's port.
    pub port: Option<u16>,
    /// The subset of a `DestinationRule`.
    pub subset: Option<&'a str>,
    /// The service's host; `None` for a sidecar's own workload (`inbound|9080||`).
    pub host: Option<&'a str>,
}

impl<'a> ServiceName<'a> {
    /// Reads `direction|port|subset|host` as Istio writes it (`outbound`, `inbound`, `inbound-vip`, with the
    /// SNI-DNAT form `outbound_.port_._.subset_._.host` too). Any other name is a host of its own.
    #[must_use]
    pub fn parse(cluster: &'a str) -> Self {
        Self::parse_parts(cluster, "|")
            .or_else(|| Self::parse_parts(cluster, "_."))
            .unwrap_or(Self {
                direction: None,
                port: None,
                subset: None,
                host: Some(cluster),
            })
    }

    fn parse_parts(cluster: &'a str, separator: &str) -> Option<Self> {
        let mut parts = cluster.splitn(4, separator);
        let (direction, port, subset, host) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let direction = match direction {
            "outbound" => Direction::Outbound,
            "inbound" | "inbound-vip" => Direction::Inbound,
            _ => return None,
        };
        // In the SNI-DNAT form an empty or named subset still ends in an underscore.
        let (port, subset) = (port.trim_end_matches('_'), subset.trim_end_matches('_'));
        let some = |part: &'a str| (!part.is_empty()).then_some(part);
        Some(Self {
            direction: Some(direction),
            port: Some(port.parse().ok()?),
            subset: some(subset),
            host: some(host),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_of_istio_with_many_destinations_are_no_upstreams() {
        for cluster in [
            "PassthroughCluster",
            "InboundPassthroughClusterIpv6",
            "AllowAnyDynamicDNSCluster",
            "outbound|443||*.example.com",
            "inbound-vip|443|http|*.example.com",
        ] {
            assert!(leads_anywhere(cluster), "{cluster}");
        }
        for cluster in [
            "passthrough",
            "outbound|80||web.shop.svc.cluster.local",
            "outbound|80||a*.example.com",
            "inbound|80||",
            "*.example.com",
            "",
        ] {
            assert!(!leads_anywhere(cluster), "{cluster}");
        }
    }

    #[test]
    fn istio_names_are_services() {
        let name = ServiceName::parse("outbound|9080|v2|reviews.shop.svc.cluster.local");
        assert_eq!(name.direction, Some(Direction::Outbound));
        assert_eq!(name.port, Some(9080));
        assert_eq!(name.subset, Some("v2"));
        assert_eq!(name.host, Some("reviews.shop.svc.cluster.local"));

        let own = ServiceName::parse("inbound|9080||");
        assert_eq!(
            (own.direction, own.port, own.host),
            (Some(Direction::Inbound), Some(9080), None)
        );

        let waypoint = ServiceName::parse("inbound-vip|80|http|reviews.shop.svc.cluster.local");
        assert_eq!(waypoint.subset, Some("http"));
        assert_eq!(waypoint.host, Some("reviews.shop.svc.cluster.local"));

        let sni = ServiceName::parse("outbound_.80_._.web.shop.svc.cluster.local");
        assert_eq!((sni.port, sni.subset), (Some(80), None));
        assert_eq!(sni.host, Some("web.shop.svc.cluster.local"));
    }

    #[test]
    fn any_other_name_is_a_host() {
        for name in [
            "backend",
            "outbound",
            "outbound|x||host",
            "a|80||b",
            "outbound|80|",
            "",
        ] {
            assert_eq!(ServiceName::parse(name).host, Some(name), "{name}");
            assert_eq!(ServiceName::parse(name).direction, None, "{name}");
        }
    }

    #[test]
    fn destinations_differ_by_key_cluster_and_authority_but_not_by_case() {
        let hash = destination_hash(1, 2, "api.example.com:443");
        assert_eq!(hash, destination_hash(1, 2, "API.example.COM:443"));
        for other in [
            destination_hash(3, 2, "api.example.com:443"),
            destination_hash(1, 3, "api.example.com:443"),
            destination_hash(1, 2, "api.example.com"),
            destination_hash(1, 2, ""),
        ] {
            assert_ne!(hash, other);
        }
    }

    #[test]
    fn keys_with_and_without_a_route_differ() {
        assert_ne!(
            UpstreamKey::hash("ab", None),
            UpstreamKey::hash("a", Some("b"))
        );
        assert_ne!(
            UpstreamKey::hash("a", None),
            UpstreamKey::hash("a", Some(""))
        );
        assert_eq!(UpstreamKey::hash("a", None), UpstreamKey::hash("a", None));
    }
}
