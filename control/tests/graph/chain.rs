//! The chain: services that call each other, each through its own Envoy, and a gateway in front of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tidegate_testbed::client::Caller;
use tidegate_testbed::envoy::{Cluster, Envoy, Route};

use crate::prometheus::Target;
use crate::service::{Conduct, Egress, Service, ServiceCall};
use crate::truth::Truth;

/// The Envoy that receives requests from outside.
pub(crate) const GATEWAY: &str = "gateway";
/// The service that the gateway calls.
pub(crate) const ENTRY: &str = "web";
/// The longest path through the chain.
pub(crate) const LONGEST: [&str; 6] = [GATEWAY, ENTRY, "cart", "pay", "ledger", "store"];
/// A service without endpoints, which no proxy can reach.
pub(crate) const ABSENT: &str = "offers";
/// The slow service.
pub(crate) const SLOW: &str = "catalog";

/// The services. Each comes after those that it calls. Some requests to `ledger` fail, and so some to `pay` fail.
/// `ABSENT` is not in the list.
const SERVICES: [Conduct; 7] = [
    service("store", 5, None, &[]),
    service("ledger", 10, Some(10), &[needed("store")]),
    service("stock", 10, None, &[needed("store")]),
    service("pay", 10, None, &[needed("ledger")]),
    service(SLOW, 150, None, &[optional("stock")]),
    service(
        "cart",
        10,
        None,
        &[optional("pay"), optional("stock"), optional(ABSENT)],
    ),
    service(ENTRY, 10, None, &[needed("cart"), needed(SLOW)]),
];

const fn service(
    name: &'static str,
    work_ms: u64,
    fails_each: Option<u64>,
    calls: &'static [ServiceCall],
) -> Conduct {
    Conduct {
        name,
        work: Duration::from_millis(work_ms),
        fails_each,
        calls,
    }
}

const fn needed(upstream: &'static str) -> ServiceCall {
    ServiceCall {
        upstream,
        is_needed: true,
    }
}

const fn optional(upstream: &'static str) -> ServiceCall {
    ServiceCall {
        upstream,
        is_needed: false,
    }
}

/// The running chain; dropping it ends all of it.
#[derive(Debug)]
pub(crate) struct Chain {
    services: BTreeMap<&'static str, Service>,
    envoys: BTreeMap<&'static str, Envoy>,
    /// Sends requests from outside.
    pub(crate) gateway: Egress,
}

impl Chain {
    pub(crate) async fn start(truth: &Arc<Truth>) -> anyhow::Result<Self> {
        let mut services = BTreeMap::new();
        let mut envoys = BTreeMap::new();
        for conduct in SERVICES {
            let egress = if conduct.calls.is_empty() {
                None
            } else {
                let upstreams = upstreams(conduct.name);
                let envoy = proxy(&services, &upstreams, None).await?;
                let egress = egress(conduct.name, &envoy, truth);
                envoys.insert(conduct.name, envoy);
                Some(egress)
            };
            services.insert(conduct.name, Service::start(conduct, egress).await?);
        }
        let envoy = proxy(&services, &[ENTRY], None).await?;
        let gateway = egress(GATEWAY, &envoy, truth);
        envoys.insert(GATEWAY, envoy);
        Ok(Self {
            services,
            envoys,
            gateway,
        })
    }

    /// The admin interface of each Envoy, by the name of its caller.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let target =
            |(name, envoy): (&&'static str, &Envoy)| Target::new(name, envoy.admin().addr());
        self.envoys.iter().map(target).collect()
    }

    /// Kills the Envoy of a service. From now on, the calls of the service fail.
    pub(crate) fn remove(&mut self, name: &str) {
        self.envoys.remove(name);
    }

    /// Kills the Envoy of a service and starts another one at the same addresses: its counters begin at 0.
    pub(crate) async fn restart(&mut self, name: &'static str) -> anyhow::Result<()> {
        let old = self.envoys.remove(name).context("it runs")?;
        let ports = (old.addr().port(), old.admin().addr().port());
        drop(old);
        let envoy = proxy(&self.services, &upstreams(name), Some(ports)).await?;
        self.envoys.insert(name, envoy);
        Ok(())
    }
}

fn upstreams(name: &str) -> Vec<&'static str> {
    let conduct = SERVICES.iter().find(|conduct| conduct.name == name);
    let calls = conduct.into_iter().flat_map(|conduct| conduct.calls);
    calls.map(|call| call.upstream).collect()
}

/// An Envoy with a cluster for each upstream. The cluster has the upstream's name.
async fn proxy(
    services: &BTreeMap<&'static str, Service>,
    upstreams: &[&'static str],
    ports: Option<(u16, u16)>,
) -> anyhow::Result<Envoy> {
    let mut builder = Envoy::builder().concurrency(1).without_access_log();
    for name in upstreams {
        let cluster = match services.get(name) {
            Some(service) => Cluster::new(name, service.addr),
            None => Cluster::without_endpoints(name),
        };
        builder = builder.cluster(cluster).route(Route::host(name).to(name));
    }
    if let Some((port, admin)) = ports {
        builder = builder.port(port).admin_port(admin);
    }
    Ok(builder.start().await?)
}

fn egress(name: &'static str, envoy: &Envoy, truth: &Arc<Truth>) -> Egress {
    Egress {
        name,
        proxy: Caller::http1(envoy.addr()),
        truth: Arc::clone(truth),
    }
}
