//! Converts a limit per proxy to a bound per endpoint.
//!
//! Envoy's static limits apply to one proxy and all endpoints behind it. The
//! filter's bound applies to one proxy and *one* endpoint, and the filter counts
//! the endpoints. All proxies together should send at most as much as before:
//!
//! - sidecars: each keeps its limit, spread over the endpoints, `limit / replicas`;
//! - a waypoint: it carries the traffic of all clients, `limit x clients /
//!   (replicas x waypoints)`.
//!
//! Edge cases: the bound is rounded up, so that no traffic that passed before is
//! shed, and is at least 1; a limit too large to be reached counts as no limit.

use tidegate_core::config::schema::{FIELDS, Values};

/// Values from this one on mean that a limit is turned off.
const UNLIMITED: u64 = 1_000_000_000;

/// Which proxies enforce a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyTopology {
    /// Each client has its own proxy.
    Sidecars {
        /// Number of clients, if it is known: the bound does not depend on it.
        clients: Option<u32>,
        /// Number of endpoints of the service.
        replicas: u32,
    },
    /// All clients share the proxies.
    Waypoint {
        /// Number of clients.
        clients: u32,
        /// Number of endpoints of the service.
        replicas: u32,
        /// Number of pods of the waypoint.
        waypoints: u32,
    },
}

/// The bound per endpoint that replaces a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointBound {
    /// The limit is effectively unlimited.
    Unlimited,
    /// A bound.
    PerEndpoint {
        /// Requests in flight per endpoint and proxy.
        max: u32,
        /// How it was computed.
        why: String,
    },
}

impl EndpointBound {
    /// `limit` requests in flight per client, as a bound per endpoint.
    #[must_use]
    pub fn of(limit: u64, topology: ProxyTopology) -> Self {
        if limit >= UNLIMITED {
            return Self::Unlimited;
        }
        match topology {
            ProxyTopology::Sidecars { clients, replicas } => {
                let max = clamped(limit.div_ceil(replicas.max(1).into()));
                let sidecars = clients.unwrap_or(1);
                let before = limit.saturating_mul(sidecars.into());
                let after = product([max, replicas, sidecars]);
                let (of, all) = match clients {
                    Some(clients) => (
                        format!("each of {}", counted(clients, "sidecar")),
                        format!("; {}", in_all(before, after)),
                    ),
                    None => ("each sidecar".to_owned(), String::new()),
                };
                Self::PerEndpoint {
                    max,
                    why: format!(
                        "{limit} in {of} against {}: {limit} / {replicas}{} = {max} per endpoint in each sidecar{all}",
                        counted(replicas, "endpoint"),
                        rounded(before, after),
                    ),
                }
            }
            ProxyTopology::Waypoint {
                clients,
                replicas,
                waypoints,
            } => {
                let before = limit.saturating_mul(clients.into());
                let shares = u64::from(replicas.max(1)).saturating_mul(waypoints.max(1).into());
                let max = clamped(before.div_ceil(shares));
                let after = product([max, replicas, waypoints]);
                let (divisor, each) = match waypoints {
                    1 => (format!("{replicas}"), "in the waypoint that they share"),
                    _ => (format!("({replicas} x {waypoints})"), "in each of its pods"),
                };
                Self::PerEndpoint {
                    max,
                    why: format!(
                        "{limit} for each of {} against {}: {limit} x {clients} / {divisor}{} = {max} per endpoint {each}; {}",
                        counted(clients, "client"),
                        counted(replicas, "endpoint"),
                        rounded(before, after),
                        in_all(before, after),
                    ),
                }
            }
        }
    }
}

fn product(factors: [u32; 3]) -> u64 {
    factors.into_iter().fold(1, |product: u64, factor| {
        product.saturating_mul(factor.into())
    })
}

fn rounded(before: u64, after: u64) -> &'static str {
    if after > before { ", rounded up," } else { "" }
}

fn in_all(before: u64, after: u64) -> String {
    if before == after {
        format!("{after} in all, as before")
    } else {
        format!("{after} in all instead of {before}")
    }
}

fn counted(number: u32, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Clamps to the range that core accepts for `limit.max`.
fn clamped(bound: u64) -> u32 {
    let range = FIELDS
        .iter()
        .find(|field| field.path == "limit.max")
        .and_then(|field| match field.values {
            Values::Count(count) => Some(count.min..=count.max),
            _ => None,
        })
        .unwrap_or(1..=u32::MAX);
    u32::try_from(bound)
        .unwrap_or(u32::MAX)
        .clamp(*range.start(), *range.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn max(limit: u64, topology: ProxyTopology) -> u32 {
        match EndpointBound::of(limit, topology) {
            EndpointBound::PerEndpoint { max, .. } => max,
            EndpointBound::Unlimited => panic!("unlimited"),
        }
    }

    #[test]
    fn ten_sidecars_and_their_waypoint_pass_the_same_traffic() {
        let sidecars = ProxyTopology::Sidecars {
            clients: Some(10),
            replicas: 5,
        };
        let waypoint = ProxyTopology::Waypoint {
            clients: 10,
            replicas: 5,
            waypoints: 1,
        };

        // 10 sidecars x 5 endpoints x 20 = 1 waypoint x 5 endpoints x 200.
        assert_eq!(max(100, sidecars), 20);
        assert_eq!(max(100, waypoint), 200);
    }

    #[test]
    fn the_pods_of_a_waypoint_share_what_the_clients_had() {
        let waypoint = ProxyTopology::Waypoint {
            clients: 10,
            replicas: 5,
            waypoints: 2,
        };

        assert_eq!(max(100, waypoint), 100);
    }

    #[test]
    fn rounding_sheds_nothing_that_passed() {
        for limit in 1..50 {
            for replicas in 1..10 {
                for clients in 1..5 {
                    let sidecars = ProxyTopology::Sidecars {
                        clients: Some(clients),
                        replicas,
                    };
                    let waypoint = ProxyTopology::Waypoint {
                        clients,
                        replicas,
                        waypoints: 3,
                    };
                    let per_proxy = u64::from(max(limit, sidecars)) * u64::from(replicas);
                    assert!((limit..limit + u64::from(replicas)).contains(&per_proxy));
                    let in_all = u64::from(max(limit, waypoint)) * u64::from(replicas) * 3;
                    assert!(in_all >= limit * u64::from(clients));
                }
            }
        }
    }

    #[test]
    fn a_limit_of_zero_becomes_one_and_a_huge_limit_becomes_none() {
        let sidecars = ProxyTopology::Sidecars {
            clients: None,
            replicas: 5,
        };

        assert_eq!(max(0, sidecars), 1);
        assert_eq!(max(999_999_999, sidecars), 100_000);
        assert_eq!(
            EndpointBound::of(u64::from(u32::MAX), sidecars),
            EndpointBound::Unlimited
        );
        assert_eq!(
            EndpointBound::of(2_147_483_647, sidecars),
            EndpointBound::Unlimited
        );
    }

    #[test]
    fn the_reason_shows_the_calculation() {
        let EndpointBound::PerEndpoint { why, .. } = EndpointBound::of(
            7,
            ProxyTopology::Waypoint {
                clients: 1,
                replicas: 5,
                waypoints: 1,
            },
        ) else {
            panic!("unlimited");
        };

        assert_eq!(
            why,
            "7 for each of 1 client against 5 endpoints: 7 x 1 / 5, rounded up, = 2 per endpoint in the waypoint that they share; 10 in all instead of 7"
        );
    }
}
