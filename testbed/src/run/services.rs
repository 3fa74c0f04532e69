//! The services of a scenario on real sockets: a server for each endpoint.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::error::RunError;
use crate::envoy::{Cluster, LoadBalancing};
use crate::upstream::{Counts, Outbound, Quotas, Upstream};
use tidegate_sim::scenario::{Scenario, TimedChange, UpstreamProfile};
use tidegate_sim::score::{Reached, WorkLedger};

/// Every server: the endpoints of each service in turn.
#[derive(Debug, Clone)]
pub(super) struct Services {
    endpoints: Arc<Vec<ServiceEndpoint>>,
}

#[derive(Debug)]
struct ServiceEndpoint {
    service: String,
    server: Upstream,
    outbound: Arc<Outbound>,
    timeline: Vec<TimedChange>,
}

/// The tasks that change the endpoints over time; dropping this ends them.
#[derive(Debug)]
pub(super) struct Acting(Vec<JoinHandle<()>>);

impl Drop for Acting {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Services {
    /// Starts all servers; each endpoint draws its service times from its own seed.
    pub(super) async fn start(scenario: &Scenario) -> Result<Self, RunError> {
        let all = scenario.upstreams.iter().flat_map(|profile| {
            let quotas = Arc::new(Quotas::of(scenario, &profile.name));
            let outbound = Arc::new(Outbound::of(scenario, &profile.name));
            let indices = 0..profile.behaviour.endpoints;
            indices.map(move |index| {
                let shared = (Arc::clone(&quotas), Arc::clone(&outbound));
                (profile, index, shared)
            })
        });
        let mut endpoints = Vec::new();
        for (seed, (profile, index, (quotas, outbound))) in (scenario.seed..).zip(all) {
            let builder = Upstream::builder(&profile.name)
                .behaviour(profile.behaviour.clone())
                .endpoint(index, profile.behaviour.endpoints)
                .quotas(quotas)
                .outbound(Arc::clone(&outbound))
                .seed(seed);
            let server = builder.start().await.map_err(|source| RunError::Upstream {
                name: profile.name.clone(),
                source,
            })?;
            endpoints.push(ServiceEndpoint {
                service: profile.name.clone(),
                server,
                outbound,
                timeline: profile.timeline_of(index),
            });
        }
        Ok(Self {
            endpoints: Arc::new(endpoints),
        })
    }

    /// From now on, services call each other through the proxy at `proxy`.
    pub(super) fn connect(&self, proxy: SocketAddr) {
        for endpoint in self.endpoints.iter() {
            endpoint.outbound.connect(proxy);
        }
    }

    /// One service as a cluster of Envoy.
    pub(super) fn cluster(&self, profile: &UpstreamProfile) -> Cluster {
        let of_this = |endpoint: &&ServiceEndpoint| endpoint.service == profile.name;
        let addresses = self.endpoints.iter().filter(of_this);
        let addresses: Vec<SocketAddr> = addresses.map(|one| one.server.addr()).collect();
        let cluster = Cluster::without_endpoints(&profile.name);
        let cluster = addresses.into_iter().fold(cluster, Cluster::endpoint);
        cluster.balancing(match profile.balancing {
            tidegate_sim::scenario::Balancing::RoundRobin => LoadBalancing::RoundRobin,
            tidegate_sim::scenario::Balancing::Random => LoadBalancing::Random,
            tidegate_sim::scenario::Balancing::LeastRequest => LoadBalancing::LeastRequest,
        })
    }

    /// Plays every endpoint's timeline from `start` on.
    pub(super) fn act(&self, start: Instant) -> Acting {
        let act = |index: usize| {
            let endpoints = Arc::clone(&self.endpoints);
            tokio::spawn(async move {
                if let Some(endpoint) = endpoints.get(index) {
                    endpoint.server.follow(&endpoint.timeline, start).await;
                }
            })
        };
        Acting((0..self.endpoints.len()).map(act).collect())
    }

    /// What each endpoint has counted.
    pub(super) fn counts(&self) -> impl Iterator<Item = Counts> {
        self.endpoints
            .iter()
            .map(|endpoint| endpoint.server.counts())
    }

    /// The work for requests that came to their service since `from`; work for the callers' requests in `answered` is useful.
    pub(super) fn work_since(&self, from: Instant, answered: &BTreeSet<u64>) -> WorkLedger {
        let mut ledger = WorkLedger::default();
        for endpoint in self.endpoints.iter() {
            for done in endpoint.server.work() {
                if done.arrived_at >= from {
                    let is_of_use = answered.contains(&done.origin);
                    ledger.add(&endpoint.service, done.work, is_of_use);
                }
            }
        }
        ledger
    }

    /// The requests that reached all of them together.
    pub(super) fn reached(&self) -> Reached {
        self.counts()
            .fold(Reached::default(), |sum, counts| Reached {
                received: sum.received + counts.received,
                received_while_down: sum.received_while_down + counts.received_while_down,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::headers::ORIGIN_HEADER;
    use crate::client::{Call, Caller};
    use std::time::Duration;
    use tidegate_sim::profile::UpstreamMode;

    fn scenario() -> Scenario {
        let text = "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='10s'\n\
            [[clients]]\nupstream='a'\nload=[{at='0s', x=0.5}]\n\
            [[upstreams]]\nname='a'\nbehaviour={endpoints=3, slots=5}\nbalancing='least-request'\n\
            timeline=[{at='1s', slots=6}]\n[[upstreams.exceptions]]\nendpoint=1\ntimeline=[{at='0s', mode='fail'}]\n\
            [[upstreams]]\nname='b'";
        Scenario::parse(text, "test").unwrap()
    }

    #[tokio::test]
    async fn a_cluster_has_the_endpoints_of_its_service_alone() {
        let scenario = scenario();
        let services = Services::start(&scenario).await.unwrap();
        let text = services.cluster(&scenario.upstreams[0]).json().to_string();
        let own: Vec<u16> = services
            .endpoints
            .iter()
            .map(|endpoint| endpoint.server.addr().port())
            .collect();
        assert_eq!(own.len(), 4);
        let is_in = |port: &u16| text.contains(&format!("\"port_value\":{port}"));
        let found: Vec<bool> = own.iter().map(is_in).collect();
        assert_eq!(found, [true, true, true, false], "{text}");
        assert!(text.contains("LEAST_REQUEST"), "{text}");
    }

    #[tokio::test]
    async fn an_exception_has_a_fate_of_its_own() {
        let services = Services::start(&scenario()).await.unwrap();
        let modes = services.endpoints.iter().map(|endpoint| {
            let changes = endpoint.timeline.iter();
            changes.filter_map(|change| change.change.mode).next()
        });
        let modes: Vec<_> = modes.collect();
        assert_eq!(modes, [None, Some(UpstreamMode::Fail), None, None]);
        let at: Vec<Duration> = services.endpoints[1]
            .timeline
            .iter()
            .map(|c| c.at)
            .collect();
        assert_eq!(
            at,
            [Duration::ZERO, Duration::from_secs(1)],
            "in order of time"
        );
    }

    #[tokio::test]
    async fn work_is_wasted_at_each_hop_for_callers_without_an_answer() {
        let text = "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='10s'\n\
            [[clients]]\nupstream='a'\nload=[{at='0s', rps=1.0}]\n\
            [[upstreams]]\nname='a'\ncalls=[{upstream='b', deadline='9s'}]\n\
            behaviour={service={kind='constant', mean='2ms'}}\n\
            [[upstreams]]\nname='b'\nbehaviour={service={kind='constant', mean='6ms'}}";
        let scenario = Scenario::parse(text, "test").unwrap();
        let services = Services::start(&scenario).await.unwrap();
        let [entry, next] = [0, 1].map(|index| services.endpoints[index].server.addr());
        services.connect(next);
        let early = Call::get("/").header(ORIGIN_HEADER, "9");
        let caller = Caller::http1(entry);
        caller.call(&early).await.unwrap();

        let from = Instant::now();
        for number in ["1", "2", "2", "3"] {
            let call = Call::get("/").header(ORIGIN_HEADER, number);
            assert_eq!(caller.call(&call).await.unwrap().status, 200);
        }
        // A probe that no caller caused.
        caller.call(&Call::get("/")).await.unwrap();
        let ledger = services.work_since(from, &BTreeSet::from([1, 3, 9]));

        let is_half = |share: f64| (share - 0.5).abs() < 1e-9;
        assert!(is_half(ledger.wasted().unwrap()), "{ledger:?}");
        let by_service = ledger.wasted_by_service();
        assert!(by_service.len() == 2 && by_service.values().all(|share| is_half(*share)));
    }
}
