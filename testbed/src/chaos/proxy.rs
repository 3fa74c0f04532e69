//! The Envoy under test, and its successors.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_supervise::Signal;

use super::backend::free_port;
use super::clock::WallClock;
use super::fault::UpstreamSide;
use crate::envoy::{
    Cluster, DiscoveryProtocol, Envoy, EnvoyBuilder, Generation, Metrics, Plugin, Route,
    test_module,
};

/// Worker threads.
pub const WORKERS: u32 = 2;

/// Envoy times a request out after this.
pub const ROUTE_TIMEOUT: Duration = Duration::from_secs(5);

/// Envoy closes upstream connections that were idle for this time, so that a burst leaves none behind.
const IDLE: Duration = Duration::from_secs(2);

/// How long an old Envoy drains, and when it ends, both counted from the start of its successor.
const DRAIN: Duration = Duration::from_secs(2);
const PARENT_SHUTDOWN: Duration = Duration::from_secs(3);

/// An old Envoy that runs longer has failed to end.
const END_BOUND: Duration = Duration::from_secs(20);

/// Envoy's counter of requests on the listener.
const ARRIVED: &str = "http.ingress.downstream_rq_total";

/// Counters; they only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownCounters {
    /// Requests that arrived at Envoy.
    pub arrived: u64,
    /// Requests for which the filter had to decide.
    pub asked: u64,
    /// Requests that the filter admitted.
    pub admitted: u64,
    /// Requests that it shed.
    pub shed: u64,
}

impl ShownCounters {
    /// What was counted since `before`; `None` if a counter decreased.
    #[must_use]
    pub fn since(&self, before: &Self) -> Option<Self> {
        Some(Self {
            arrived: self.arrived.checked_sub(before.arrived)?,
            asked: self.asked.checked_sub(before.asked)?,
            admitted: self.admitted.checked_sub(before.admitted)?,
            shed: self.shed.checked_sub(before.shed)?,
        })
    }
}

/// What the filter shows of one upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests that have not ended and no longer count as in flight.
    pub streams: u64,
    /// The concurrency limit.
    pub limit: u64,
    /// 0 closed, 1 half-open, 2 open.
    pub breaker: u64,
}

/// The guard of each upstream.
pub type Guards = BTreeMap<UpstreamSide, Guard>;

/// Everything that Envoy shows at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// Counters.
    pub counters: ShownCounters,
    /// Gauges, by upstream.
    pub guards: Guards,
}

/// The succession of Envoys behind one port.
#[derive(Debug)]
pub struct ChaosProxy {
    envoy: Envoy,
    base: u32,
    epoch: u32,
    port: u16,
    builder: EnvoyBuilder,
}

impl ChaosProxy {
    /// Starts the first Envoy.
    ///
    /// # Errors
    /// When Envoy does not become ready.
    pub async fn start(
        upstreams: &[(UpstreamSide, SocketAddr)],
        control: SocketAddr,
        clock: Option<&WallClock>,
    ) -> Result<Self> {
        let port = free_port()?;
        let plugin = Plugin::tidegate(&Value::Null).module(test_module());
        let mut builder = Envoy::builder()
            .concurrency(WORKERS)
            .port(port)
            .without_access_log()
            .route_timeout(ROUTE_TIMEOUT)
            .plugin(plugin.served("control", DiscoveryProtocol::Ecds))
            .cluster(Cluster::new("control", control).http2());
        for (side, addr) in upstreams {
            builder = builder
                .cluster(Cluster::new(side.name(), *addr).idle_timeout(IDLE))
                .route(Route::host(side.name()).to(side.name()));
        }
        for (name, value) in clock.map(WallClock::variables).into_iter().flatten() {
            builder = builder.variable(name, value);
        }
        let envoy = builder
            .clone()
            .generation(generation(None, 0))
            .start()
            .await?;
        let base = envoy.base_id().context("no base id")?;
        Ok(Self {
            envoy,
            base,
            epoch: 0,
            port,
            builder,
        })
    }

    /// The address for requests.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// The current Envoy.
    #[must_use]
    pub const fn envoy(&self) -> &Envoy {
        &self.envoy
    }

    /// Starts a successor, and waits until the old one has drained and ended.
    ///
    /// # Errors
    /// When the successor does not become ready, or the old one does not end by itself.
    pub async fn hot_restart(&mut self) -> Result<()> {
        let next = generation(Some(self.base), self.epoch + 1);
        let successor = self.builder.clone().generation(next).start().await?;
        let mut old = std::mem::replace(&mut self.envoy, successor);
        self.epoch += 1;
        let begun = Instant::now();
        while old.is_running() {
            if begun.elapsed() > END_BOUND {
                bail!("the old Envoy runs still {END_BOUND:?} after its successor took over");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Suspends its process (SIGSTOP).
    ///
    /// # Errors
    /// When there is no such process.
    pub fn stop(&mut self) -> Result<()> {
        Ok(self.envoy.signal(Signal::STOP)?)
    }

    /// Resumes its process (SIGCONT).
    ///
    /// # Errors
    /// When there is no such process.
    pub fn go_on(&mut self) -> Result<()> {
        Ok(self.envoy.signal(Signal::CONT)?)
    }

    /// What it shows now.
    ///
    /// # Errors
    /// When its admin interface does not answer.
    pub async fn shown(&self) -> Result<Shown> {
        let stats = self
            .envoy
            .admin()
            .stats(r"tidegate_|\.downstream_rq_total$")
            .await?;
        let metrics = Metrics::parse(&stats);
        let guard = |side: UpstreamSide| {
            let sum = |metric: &str| metrics.sum(metric, side.name());
            Guard {
                in_flight: sum("in_flight"),
                streams: sum("streams"),
                limit: sum("limit"),
                breaker: sum("breaker_state"),
            }
        };
        Ok(Shown {
            counters: ShownCounters {
                arrived: stats.get(ARRIVED).copied().unwrap_or(0),
                asked: metrics.sum("requests_total", ""),
                admitted: metrics.sum("requests_admitted_total", ""),
                shed: metrics.sum("requests_shed_total", ""),
            },
            guards: UpstreamSide::ALL.map(|side| (side, guard(side))).into(),
        })
    }

    /// How many crashed VMs have been replaced so far.
    ///
    /// # Errors
    /// When its admin interface does not answer.
    pub async fn reloads(&self) -> Result<u64> {
        let stats = self.envoy.admin().stats("vm_reload").await?;
        let replaced = stats.iter().filter(|(name, _)| name.ends_with("success"));
        Ok(replaced.map(|(_, value)| value).sum())
    }
}

const fn generation(base: Option<u32>, epoch: u32) -> Generation {
    Generation {
        base,
        epoch,
        drain: DRAIN,
        parent_shutdown: PARENT_SHUTDOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_goes_down_is_noticed() {
        let of = |arrived, shed| ShownCounters {
            arrived,
            asked: arrived,
            admitted: arrived - shed,
            shed,
        };
        assert_eq!(of(9, 3).since(&of(4, 1)), Some(of(5, 2)));
        assert_eq!(of(4, 1).since(&of(9, 3)), None);
    }
}
