//! The services, the Envoy of each caller, and the load on them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tidegate_testbed::client::Caller;
use tidegate_testbed::dashboards::stats_config;
use tidegate_testbed::envoy::{Cluster, DiscoveryProtocol, Envoy, Plugin, Route};
use tidegate_testbed::upstream::Upstream;
use tokio::task::JoinSet;

use crate::prometheus::Target;
use crate::service::{Conduct, Egress, Service, ServiceCall};
use crate::truth::Truth;

/// The capacity of `offers`: 100 requests a second.
const SLOTS: u32 = 4;
const SERVICE: Duration = Duration::from_millis(40);
/// Requests from outside in a second: half of that capacity, and twice that capacity.
pub(crate) const USUAL: u32 = 50;
pub(crate) const OVERLOAD: u32 = 200;
/// An answer within this time is good.
pub(crate) const GOOD: Duration = Duration::from_millis(500);
/// The Envoys of the gateway, `web` and `cart`.
pub(crate) const ENVOYS: usize = 3;

const fn conduct(name: &'static str, work_ms: u64, calls: &'static [ServiceCall]) -> Conduct {
    Conduct {
        name,
        work: Duration::from_millis(work_ms),
        fails_each: None,
        calls,
    }
}

const fn call(upstream: &'static str, is_needed: bool) -> ServiceCall {
    ServiceCall {
        upstream,
        is_needed,
    }
}

const STOCK: Conduct = conduct("stock", 5, &[]);
const CART: Conduct = conduct("cart", 5, &[call("stock", true)]);
// Its objective leaves room for the calls of its upstreams, even while one of them has a queue.
const WEB: Conduct = conduct("web", 80, &[call("cart", true), call("offers", false)]);

/// The running chain; dropping it ends all of it.
pub(crate) struct DemoChain {
    gateway: Egress,
    proxies: [(&'static str, Envoy); ENVOYS],
    _services: [Service; 3],
    _offers: Upstream,
}

impl DemoChain {
    /// Starts the chain. Its Envoys get their configuration from `control`.
    pub(crate) async fn start(control: SocketAddr) -> Self {
        let stock = Service::start(STOCK, None).await.unwrap();
        let offers = Upstream::constant("offers", SLOTS, SERVICE).await.unwrap();
        let to_stock = proxy(&[("stock", stock.addr)], control).await;
        let cart = Service::start(CART, Some(egress("cart", &to_stock))).await;
        let cart = cart.unwrap();
        let upstreams = [("cart", cart.addr), ("offers", offers.addr())];
        let to_both = proxy(&upstreams, control).await;
        let web = Service::start(WEB, Some(egress("web", &to_both))).await;
        let web = web.unwrap();
        let to_web = proxy(&[("web", web.addr)], control).await;
        Self {
            gateway: egress("gateway", &to_web),
            proxies: [("gateway", to_web), ("web", to_both), ("cart", to_stock)],
            _services: [stock, cart, web],
            _offers: offers,
        }
    }

    /// The admin interface of each Envoy, by the name of its caller.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let proxies = self.proxies.iter();
        proxies
            .map(|(name, envoy)| Target::new(name, envoy.admin().addr()))
            .collect()
    }

    /// Sends requests at a steady pace, without waiting for answers. Returns how many were sent, and how many answers
    /// were good.
    pub(crate) async fn load(&self, rate: u32, time: Duration) -> (usize, usize) {
        let mut due = tokio::time::interval(Duration::from_secs(1) / rate);
        let (begun, mut under_way) = (Instant::now(), JoinSet::new());
        while begun.elapsed() < time {
            due.tick().await;
            let gateway = self.gateway.clone();
            under_way.spawn(async move {
                let begun = Instant::now();
                gateway.call("web").await && begun.elapsed() <= GOOD
            });
        }
        let all = under_way.join_all().await;
        (
            all.len(),
            all.into_iter().filter(|is_good| *is_good).count(),
        )
    }
}

/// The Envoy of a caller. The control service configures its filter.
async fn proxy(upstreams: &[(&str, SocketAddr)], control: SocketAddr) -> Envoy {
    let builder = Envoy::builder().concurrency(1).without_access_log();
    let builder = upstreams.iter().fold(builder, |builder, (name, addr)| {
        let builder = builder.cluster(Cluster::new(name, *addr));
        builder.route(Route::host(name).to(name))
    });
    builder
        .cluster(Cluster::new("control", control).http2())
        .plugin(Plugin::tidegate(&Value::Null).served("control", DiscoveryProtocol::Ecds))
        .edit(publish_tags)
        .start()
        .await
        .unwrap()
}

/// Puts the published `stats_tags` into the bootstrap, so that the dashboard's queries find labels.
fn publish_tags(bootstrap: &mut Value) {
    bootstrap["stats_config"] = stats_config().unwrap();
}

fn egress(name: &'static str, envoy: &Envoy) -> Egress {
    Egress {
        name,
        proxy: Caller::http1(envoy.addr()),
        truth: Arc::new(Truth::default()),
    }
}
