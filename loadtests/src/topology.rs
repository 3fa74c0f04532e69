//! Real processes around one upstream: an Envoy beside each client, one for all, or none.
//!
//! | topology | Envoys | as in |
//! |---|---|---|
//! | direct | none | no mesh |
//! | sidecar | one for each client, with pools, breakers and filters of its own | a sidecar mesh |
//! | shared | one for all clients | a waypoint of an ambient mesh |
//!
//! Everything else is the same: the clients, the upstream, and each Envoy with one worker thread, so that a limit of
//! Envoy's counts once for each Envoy (a worker may always open its first connection, whatever the limit says).
//! Envoys write no access log, so that the disk has no part in what is measured. Dropping a mesh ends them.

pub mod bookinfo;
mod error;
mod proxy;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tidegate_sim::scenario::Scenario;
use tidegate_testbed::envoy::{AdminError, Envoy};
use tidegate_testbed::upstream::{Counts, Upstream};

use crate::contender::Protection;
use crate::result::Topology;

pub use error::TopologyError;
pub use proxy::Seen;

/// On which ports Envoys listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ports {
    /// On whichever the kernel chooses.
    #[default]
    Any,
    /// On this one and those after it.
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
        // Envoy would say so as well, but in the middle of its log.
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
    entries: Vec<SocketAddr>,
}

/// The description of a mesh.
#[derive(Debug, Clone, Copy)]
pub struct MeshPlan<'a> {
    /// Where the Envoys stand.
    pub topology: Topology,
    /// What protects the upstream.
    pub contender: &'a Protection,
    /// The upstream and the objective.
    pub scenario: &'a Scenario,
    /// Clients.
    pub clients: u32,
    /// On which ports Envoys listen.
    pub ports: Ports,
}

impl Mesh {
    /// Starts the upstream and the Envoys, and waits until all are ready.
    ///
    /// # Errors
    /// When one of them does not start; those that did are ended.
    pub async fn start(plan: MeshPlan<'_>) -> Result<Self, TopologyError> {
        let profile = plan.scenario.upstreams.first();
        let behaviour = profile
            .map(|profile| profile.behaviour.clone())
            .unwrap_or_default();
        let name = profile.map_or("main", |profile| profile.name.as_str());
        let upstream = Upstream::builder(name)
            .behaviour(behaviour)
            .seed(plan.scenario.seed);
        let upstream = upstream
            .start()
            .await
            .map_err(|source| TopologyError::Service {
                name: name.to_owned(),
                source,
            })?;
        let count = match plan.topology {
            Topology::Direct => 0,
            Topology::Shared => 1,
            Topology::Sidecar => plan.clients,
        };
        let mut proxies = Vec::new();
        for index in 0..count {
            let port = plan.ports.port(u16::try_from(index).unwrap_or(u16::MAX))?;
            proxies.push(
                proxy::start(plan.contender, plan.scenario, (name, upstream.addr()), port).await?,
            );
        }
        let entry = |client: usize| match plan.topology {
            Topology::Direct => Some(upstream.addr()),
            Topology::Shared => proxies.first().map(Envoy::addr),
            Topology::Sidecar => proxies.get(client).map(Envoy::addr),
        };
        let clients = usize::try_from(plan.clients).unwrap_or(usize::MAX);
        let entries = (0..clients).filter_map(entry).collect();
        Ok(Self {
            proxies,
            upstream,
            entries,
        })
    }

    /// Where each client sends its requests.
    #[must_use]
    pub fn entries(&self) -> &[SocketAddr] {
        &self.entries
    }

    /// The upstream.
    #[must_use]
    pub const fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// What the upstream has counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.upstream.counts()
    }

    /// The Envoys.
    #[must_use]
    pub fn proxies(&self) -> &[Envoy] {
        &self.proxies
    }

    /// An error when one of the Envoys has ended.
    ///
    /// # Errors
    /// See [`TopologyError::Ended`].
    pub fn check(&mut self) -> Result<(), TopologyError> {
        alive(&mut self.proxies)
    }
}

/// An error when one of the Envoys has ended.
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

/// The largest number of letters of a log that are shown.
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

/// What all Envoys have counted so far.
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
