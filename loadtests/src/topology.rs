//! Real processes around an upstream: an Envoy beside each client, one for all, or none.
//!
//! | topology | Envoys | as in |
//! |---|---|---|
//! | direct | none | no mesh |
//! | sidecar | one for each client, with pools, breakers and filters of its own | a sidecar mesh |
//! | shared | one for all clients | a waypoint of an ambient mesh |
//!
//! With several replicas of the upstream, sidecars are beside the replicas instead of the clients, each client calls one
//! replica, and a shared Envoy spreads over all of them.
//!
//! Everything else is the same: the clients, the upstream, and each Envoy with one worker thread, so that a limit in Envoy
//! counts once per Envoy (a worker may always open its first connection, whatever the limit). Envoys write no access log, so
//! that the disk does not influence the measurement. Dropping a mesh ends them.

pub mod bookinfo;
pub mod chain;
mod error;
mod proxy;
mod tls;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tidegate_sim::profile::Behaviour;
use tidegate_sim::scenario::Scenario;
use tidegate_testbed::envoy::{AdminError, Envoy};
use tidegate_testbed::upstream::Upstream;

use crate::contender::Protection;
use crate::matrix::Wire;
use crate::result::Topology;

pub use error::TopologyError;
pub use proxy::Seen;
pub use tls::TlsFiles;

/// The ports on which Envoys listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ports {
    /// Ports that the kernel chooses.
    #[default]
    Any,
    /// This port and the following ones.
    From(u16),
}

impl Ports {
    /// The port of Envoy number `index`; 0: any.
    fn port(self, index: u16) -> Result<u16, TopologyError> {
        let Self::From(first) = self else {
            return Ok(0);
        };
        let port = first
            .checked_add(index)
            .ok_or(TopologyError::NoPort { first, index })?;
        // Envoy would report it too, but in the middle of its log.
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_free) => Ok(port),
            Err(_) => Err(TopologyError::PortInUse { port }),
        }
    }
}

/// An upstream, and the Envoys in front of it.
#[derive(Debug)]
pub struct Mesh {
    proxies: Vec<Envoy>,
    upstream: Upstream,
    more: Vec<Upstream>,
    entries: Vec<SocketAddr>,
}

/// The parameters of a mesh.
#[derive(Debug, Clone, Copy)]
pub struct MeshPlan<'a> {
    /// Where the Envoys are.
    pub topology: Topology,
    /// What protects the upstream.
    pub contender: &'a Protection,
    /// The upstream and the objective.
    pub scenario: &'a Scenario,
    /// Number of clients.
    pub clients: u32,
    /// Number of replicas of the upstream, at least 1.
    pub servers: u32,
    /// The clients' protocol, and the files if it uses TLS.
    pub wire: (Wire, Option<&'a TlsFiles>),
    /// The ports on which Envoys listen.
    pub ports: Ports,
}

impl Mesh {
    /// Starts the upstream and the Envoys, and waits until all are ready.
    ///
    /// # Errors
    /// If one of them does not start; the others are then ended.
    pub async fn start(plan: MeshPlan<'_>) -> Result<Self, TopologyError> {
        let profile = plan.scenario.upstreams.first();
        let behaviour = profile
            .map(|profile| profile.behaviour.clone())
            .unwrap_or_default();
        let name = profile.map_or("main", |profile| profile.name.as_str());
        let upstream = replica(name, &behaviour, plan.scenario.seed).await?;
        let mut more = Vec::new();
        for seed in (plan.scenario.seed + 1..).take(count(plan.servers).saturating_sub(1)) {
            more.push(replica(name, &behaviour, seed).await?);
        }
        let servers = std::iter::once(&upstream).chain(&more);
        let servers: Vec<SocketAddr> = servers.map(Upstream::addr).collect();
        let beside = |client: usize| servers.get(client % servers.len().max(1)).copied();
        let clients = 0..count(plan.clients);
        let endpoints: Vec<Vec<SocketAddr>> = match plan.topology {
            Topology::Direct => Vec::new(),
            Topology::Shared => vec![servers.clone()],
            Topology::Sidecar => clients
                .clone()
                .map(|client| beside(client).into_iter().collect())
                .collect(),
        };
        let mut proxies = Vec::new();
        for (index, endpoints) in (0..).zip(&endpoints) {
            let (wire, tls) = plan.wire;
            let listener = (plan.ports.port(index)?, wire, tls);
            proxies.push(
                proxy::start(plan.contender, plan.scenario, (name, endpoints), listener).await?,
            );
        }
        let entry = |client: usize| match plan.topology {
            Topology::Direct => beside(client),
            Topology::Shared => proxies.first().map(Envoy::addr),
            Topology::Sidecar => proxies.get(client).map(Envoy::addr),
        };
        let entries = clients.filter_map(entry).collect();
        Ok(Self {
            proxies,
            upstream,
            more,
            entries,
        })
    }

    /// The address to which each client sends its requests.
    #[must_use]
    pub fn entries(&self) -> &[SocketAddr] {
        &self.entries
    }

    /// The upstream; the first of several replicas.
    #[must_use]
    pub const fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Requests that have reached the upstream, all replicas together.
    #[must_use]
    pub fn received(&self) -> u64 {
        let all = std::iter::once(&self.upstream).chain(&self.more);
        all.map(|one| one.counts().received).sum()
    }

    /// The Envoys.
    #[must_use]
    pub fn proxies(&self) -> &[Envoy] {
        &self.proxies
    }

    /// Fails if one of the Envoys has ended.
    ///
    /// # Errors
    /// See [`TopologyError::Ended`].
    pub fn check(&mut self) -> Result<(), TopologyError> {
        alive(&mut self.proxies)
    }
}

async fn replica(name: &str, behaviour: &Behaviour, seed: u64) -> Result<Upstream, TopologyError> {
    let builder = Upstream::builder(name).behaviour(behaviour.clone());
    let started = builder.seed(seed).start().await;
    started.map_err(|source| TopologyError::Service {
        name: name.to_owned(),
        source,
    })
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Fails if one of the Envoys has ended.
fn alive(proxies: &mut [Envoy]) -> Result<(), TopologyError> {
    for proxy in proxies {
        if !proxy.is_running() {
            let log = proxy.log();
            let from = log
                .char_indices()
                .rev()
                .nth(LOG_END)
                .map_or(0, |(at, _)| at);
            let log = log.get(from..).unwrap_or_default().to_owned();
            return Err(TopologyError::Ended { log });
        }
    }
    Ok(())
}

/// Maximum of characters that are shown from the end of a log.
const LOG_END: usize = 1_500;

/// CPU time of all Envoys so far.
#[must_use]
pub fn cpu(proxies: &[Envoy]) -> Duration {
    proxies.iter().filter_map(Envoy::cpu_time).sum()
}

/// Resident memory of all Envoys, in bytes.
#[must_use]
pub fn resident_bytes(proxies: &[Envoy]) -> u64 {
    proxies.iter().filter_map(Envoy::resident_bytes).sum()
}

/// The sum of all Envoys' counters so far.
///
/// # Errors
/// When one of them does not answer.
pub async fn seen(proxies: &[Envoy]) -> Result<Seen, AdminError> {
    let mut sum = Seen::default();
    for proxy in proxies {
        sum += proxy::seen(proxy.admin()).await?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_named() {
        let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = held.local_addr().unwrap().port();
        let said = Ports::From(port - 1).port(1).unwrap_err().to_string();
        assert_eq!(
            said,
            format!("port {port} of 127.0.0.1 is in use: choose another first port")
        );
        assert_eq!(Ports::Any.port(7).unwrap(), 0);
        assert!(matches!(
            Ports::From(65_535).port(1),
            Err(TopologyError::NoPort { .. })
        ));
    }
}
