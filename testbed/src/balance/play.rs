//! One run: servers, their Envoys, the caller's Envoy, and load.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::contender::Contender;
use super::figures::BalanceFigures;
use crate::client::open_loop;
use crate::envoy::{Cluster, Envoy, Plugin, native_module};
use crate::upstream::Upstream;
use tidegate_sim::arrivals;
use tidegate_sim::profile::{Behaviour, ServiceTime};
use tidegate_sim::scenario::Scenario;

/// Share of the servers' capacity that is asked for by default.
pub const CALLERS_AIM: f64 = 0.7;
/// Servers, the slow one among them.
const SERVERS: u32 = 4;
/// Requests that a server works on at a time.
const SLOTS: u32 = 4;
/// Mean time of the work for a request.
const WORK: Duration = Duration::from_millis(20);
/// The same at the slow server.
const SLOW_WORK: Duration = Duration::from_millis(100);
/// Standard deviation of its logarithm.
const SIGMA: f64 = 0.5;
/// Callers give up after this, as does their Envoy: outlier detection shall see a failure.
pub(super) const DEADLINE: Duration = Duration::from_secs(1);
/// Connections are opened before the first arrival is due.
const HEAD_START: Duration = Duration::from_millis(200);

/// What is played.
#[derive(Debug, Clone, Serialize)]
pub struct BalancePlan {
    /// Share of the servers' capacity that is asked for.
    pub load: f64,
    /// Length of a run.
    pub length: Duration,
    /// What is not counted at its beginning: Envoy waits ten seconds before it trusts weights.
    pub warm_up: Duration,
    /// Latency within which an answer is good.
    pub objective: Duration,
    /// Seed of arrivals and service times.
    pub seed: u64,
}

impl BalancePlan {
    /// Requests a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let of = |work: Duration| f64::from(SLOTS) / work.as_secs_f64();
        self.load * (f64::from(SERVERS - 1) * of(WORK) + of(SLOW_WORK))
    }

    fn scenario(&self) -> Result<Scenario> {
        let text = format!(
            "name = 'balance'\ntitle = 'One slow server of four'\nprose = 'p'\nseed = {}\nduration = '{}ms'\n\
             [[clients]]\ndeadline = '{}ms'\nload = [{{ at = '0s', rps = {:.3} }}]",
            self.seed,
            self.length.as_millis(),
            DEADLINE.as_millis(),
            self.rate(),
        );
        Scenario::parse(&text, "balance").context("read the scenario")
    }
}

/// Plays the load on one contender.
///
/// # Errors
/// If a server or an Envoy cannot be started.
pub async fn play(contender: Contender, plan: &BalancePlan) -> Result<BalanceFigures> {
    let scenario = plan.scenario()?;
    let mut servers = Vec::new();
    let mut proxies = Vec::new();
    for number in 0..SERVERS {
        let server = start_server(number, plan.seed).await?;
        proxies.push(start_proxy(contender, plan, server.addr()).await?);
        servers.push(server);
    }
    let addresses = proxies.iter().map(Envoy::addr);
    let cluster = addresses.fold(Cluster::without_endpoints("main"), Cluster::endpoint);
    let caller = Envoy::builder()
        .without_access_log()
        .route_timeout(DEADLINE)
        .cluster(contender.balance(cluster))
        .start()
        .await
        .context("start the caller's Envoy")?;

    let (sender, mut receiver) = mpsc::unbounded_channel();
    let arrivals = Arc::new(arrivals::schedule(&scenario));
    let start = Instant::now() + HEAD_START;
    open_loop::replay(Arc::new(scenario), arrivals, caller.addr(), start, sender).await;
    let mut records = Vec::new();
    while let Ok(record) = receiver.try_recv() {
        records.push(record);
    }
    let received: Vec<u64> = servers.iter().map(|it| it.counts().received).collect();
    Ok(BalanceFigures::of(contender, plan, &records, &received))
}

/// The last server is the slow one.
async fn start_server(number: u32, seed: u64) -> Result<Upstream> {
    let is_slow = number + 1 == SERVERS;
    let behaviour = Behaviour {
        slots: SLOTS,
        service: ServiceTime::Lognormal {
            mean: if is_slow { SLOW_WORK } else { WORK },
            sigma: SIGMA,
        },
        ..Behaviour::default()
    };
    Upstream::builder("main")
        .behaviour(behaviour)
        .seed(seed + u64::from(number))
        .start()
        .await
        .context("start a server")
}

async fn start_proxy(
    contender: Contender,
    plan: &BalancePlan,
    server: SocketAddr,
) -> Result<Envoy> {
    let mut builder = Envoy::builder()
        .concurrency(1)
        .without_access_log()
        .cluster(Cluster::new("local", server));
    if let Some(document) = contender.module(plan.objective.as_millis()) {
        builder = builder.plugin(Plugin::tidegate(&document).module(native_module()));
    }
    builder.start().await.context("start a server's Envoy")
}
