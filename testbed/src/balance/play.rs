//! One run: servers, their Envoys, the caller's Envoy, and load.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::contender::BalanceContender;
use super::figures::BalanceFigures;
use super::plan::{BalancePlan, DEADLINE, SERVERS, SIGMA, SLOTS, SLOW_WORK, WORK};
use crate::client::open_loop;
use crate::envoy::{Cluster, Envoy, Plugin, native_module};
use crate::upstream::Upstream;
use tidegate_sim::arrivals;
use tidegate_sim::profile::{Behaviour, ServiceTime};

/// Time before the first arrival in which connections are opened.
const HEAD_START: Duration = Duration::from_millis(200);

/// Plays the load on one contender.
///
/// # Errors
/// If a server or an Envoy cannot be started.
pub async fn play(contender: BalanceContender, plan: &BalancePlan) -> Result<BalanceFigures> {
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
    contender: BalanceContender,
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
