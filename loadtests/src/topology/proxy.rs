//! One Envoy of a cell, and its counters.

use std::net::SocketAddr;
use std::ops::{AddAssign, Sub};

use tidegate_sim::scenario::Scenario;
use tidegate_testbed::envoy::{Admin, AdminError, Cluster, Envoy};

use super::error::TopologyError;
use super::tls::TlsFiles;
use crate::contender::Protection;
use crate::matrix::Wire;

/// Counts of Envoys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Requests that reached them.
    pub requests: u64,
    /// Requests that they shed, for any reason.
    pub shed: u64,
}

/// Counters that Envoy raises for each request it sheds: static breakers, no host left by outlier detection, and
/// its adaptive filters.
const SHED: &str =
    "upstream_rq_pending_overflow$|upstream_cx_none_healthy$|rq_blocked$|rq_rejected$";

/// Counter of the requests that reached Envoy's listener.
const REQUESTS: &str = "http.ingress.downstream_rq_total";

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.shed += other.shed;
    }
}

impl Sub for Seen {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            shed: self.shed.saturating_sub(before.shed),
        }
    }
}

/// Starts an Envoy with one worker in front of a service with these endpoints. Its listener uses the protocol of `wire`, with
/// the files if it uses TLS.
pub(super) async fn start(
    contender: &Protection,
    scenario: &Scenario,
    (name, endpoints): (&str, &[SocketAddr]),
    (port, wire, tls): (u16, Wire, Option<&TlsFiles>),
) -> Result<Envoy, TopologyError> {
    let cluster = Cluster::without_endpoints(name);
    let mut cluster = endpoints.iter().copied().fold(cluster, Cluster::endpoint);
    if wire.is_http2() {
        cluster = cluster.http2();
    }
    let mut builder = Envoy::builder()
        .concurrency(1)
        .port(port)
        .without_access_log()
        .cluster(contender.cluster(cluster));
    if let Some(files) = tls.filter(|_| wire.is_tls()) {
        builder = builder.mutual_tls(&files.authority, &files.certificate, &files.key);
    }
    let envoy = contender.envoy(builder, scenario).start().await;
    envoy.map_err(|source| TopologyError::Envoy {
        contender: contender.name(),
        source,
    })
}

/// The counts of one Envoy so far.
pub(super) async fn seen(admin: &Admin) -> Result<Seen, AdminError> {
    let of_envoy = admin.stats(&format!("^{REQUESTS}$|{SHED}")).await?;
    let requests = of_envoy.get(REQUESTS).copied().unwrap_or(0);
    let all: u64 = of_envoy.values().sum();
    let of_tidegate = admin.tidegate().await?.sum("requests_shed_total", "");
    Ok(Seen {
        requests,
        shed: all - requests + of_tidegate,
    })
}
