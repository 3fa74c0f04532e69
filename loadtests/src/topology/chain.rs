//! A chain of services, each behind its Envoy.
//!
//! The scenario names the services and their calls. Only the last one calls no other; it is the one that fails.

use std::net::SocketAddr;
use std::sync::Arc;

use tidegate_sim::scenario::Scenario;
use tidegate_testbed::envoy::Envoy;
use tidegate_testbed::upstream::{Outbound, Upstream};

use super::{Ports, TopologyError, alive, proxy};
use crate::contender::Protection;
use crate::matrix::Wire;

/// The services and their Envoys; dropping this ends all.
#[derive(Debug)]
pub struct ServiceChain {
    last: Upstream,
    _callers: Vec<Upstream>,
    proxies: Vec<Envoy>,
    entry: SocketAddr,
}

impl ServiceChain {
    /// Starts everything; clients call the first service of the scenario.
    ///
    /// # Errors
    /// When a service or an Envoy does not start, or the scenario has no service.
    pub async fn start(
        contender: &Protection,
        scenario: &Scenario,
        ports: Ports,
    ) -> Result<Self, TopologyError> {
        let mut services: Vec<Upstream> = Vec::new();
        let mut proxies: Vec<Envoy> = Vec::new();
        let mut entry = None;
        for (seed, profile) in (scenario.seed..).zip(scenario.upstreams.iter().rev()) {
            let outbound = Arc::new(Outbound::of(scenario, &profile.name));
            if let Some(next) = entry {
                outbound.connect(next);
            }
            let service = Upstream::builder(&profile.name)
                .behaviour(profile.behaviour.clone())
                .outbound(outbound)
                .seed(seed);
            let service = service
                .start()
                .await
                .map_err(|source| TopologyError::Service {
                    name: profile.name.clone(),
                    source,
                })?;
            let index = u16::try_from(proxies.len()).unwrap_or(u16::MAX);
            let endpoints = [service.addr()];
            let upstream = (profile.name.as_str(), &endpoints[..]);
            let listener = (ports.port(index)?, Wire::Fast, None);
            let before = proxy::start(contender, scenario, upstream, listener).await?;
            entry = Some(before.addr());
            proxies.push(before);
            services.push(service);
        }
        let callers = services.split_off(services.len().min(1));
        let last = services.pop().zip(entry);
        let (last, entry) = last.ok_or(TopologyError::NoService)?;
        Ok(Self {
            last,
            _callers: callers,
            proxies,
            entry,
        })
    }

    /// The address at which users call the first service.
    #[must_use]
    pub const fn entry(&self) -> SocketAddr {
        self.entry
    }

    /// The last service.
    #[must_use]
    pub const fn last(&self) -> &Upstream {
        &self.last
    }

    /// All Envoys, from the last service's to the first one's.
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
