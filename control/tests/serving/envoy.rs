//! A real Envoy whose filter the service configures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tidegate_control::xds::Module;
use tidegate_testbed::client::{Call, Caller};
use tidegate_testbed::envoy::{Cluster, DiscoveryProtocol, Envoy, Plugin, binary, release_module};
use tidegate_testbed::upstream::Upstream;

use crate::stage::{ServingStage, policy, until};

/// The slots and the service time of the upstream. They are far more than the callers need.
const SLOTS: u32 = 64;
const SERVICE: Duration = Duration::from_millis(2);

/// Callers that send requests all the time.
const CALLERS: usize = 4;

async fn envoy(stage: &ServingStage, upstream: &Upstream, by: DiscoveryProtocol) -> Envoy {
    for part in [binary(), release_module()] {
        let path = part.display();
        assert!(part.is_file(), "{path} is not there: make tools module");
    }
    Envoy::builder()
        .cluster(Cluster::new("main", upstream.addr()))
        .cluster(Cluster::new("control", stage.settings.xds).http2())
        .plugin(Plugin::tidegate(&Value::Null).served("control", by))
        .start()
        .await
        .unwrap()
}

async fn upstream() -> Upstream {
    Upstream::constant("main", SLOTS, SERVICE).await.unwrap()
}

/// Callers that count their answers until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    callers: Vec<tokio::task::JoinHandle<Vec<String>>>,
}

impl Load {
    fn start(envoy: &Envoy) -> Self {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let callers = (0..CALLERS).map(|_| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            let caller = Caller::http1(envoy.addr());
            tokio::spawn(async move {
                let mut lost = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    match caller.get("/").await {
                        Ok(reply) if reply.status == 200 => {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(reply) => lost.push(format!("{} {:?}", reply.status, reply.details())),
                        Err(error) => lost.push(error.to_string()),
                    }
                }
                lost
            })
        });
        Self {
            callers: callers.collect(),
            stop,
            answered,
        }
    }

    /// Waits until a hundred more requests are answered.
    async fn goes_on(&self) {
        let before = self.answered.load(Ordering::Relaxed);
        until("a hundred more requests are answered", async || {
            self.answered.load(Ordering::Relaxed) > before + 100
        })
        .await;
    }

    /// Stops the callers, and returns the answers other than 200.
    async fn end(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        let mut lost = Vec::new();
        for caller in self.callers {
            lost.extend(caller.await.unwrap());
        }
        lost
    }
}

/// Waits until Envoy runs the configuration that the service wants.
async fn current(stage: &ServingStage, policy: &str) {
    until(&format!("envoy runs policy {policy}"), async || {
        let proxies = stage.json("/v1/proxies").await;
        let proxy = &proxies["proxies"][0];
        let resource = &proxy["resources"]["tidegate"];
        proxy["policy"] == policy
            && resource["running"].is_string()
            && resource["running"] == resource["wanted"]
    })
    .await;
}

/// Waits until the filter names the configuration that the service lists for its only policy, and no other.
async fn reports_the_listed_configuration(stage: &ServingStage, envoy: &Envoy) {
    let policies = stage.json("/v1/policies").await;
    let digest = policies["policies"][0]["config"].as_str().unwrap();
    until("tidegate_info has the digest of the policy", async || {
        let metrics = envoy.admin().tidegate().await.unwrap();
        metrics.value("info", "", &[("config", digest)]) == Some(1) && metrics.sum("info", "") == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_lose_no_request_under_load_in_every_dialect() {
    for by in DiscoveryProtocol::ALL {
        let stage = ServingStage::start().await;
        stage.write("a.yaml", &policy("a", "tidegate-testbed", 100));
        let upstream = upstream().await;
        let envoy = envoy(&stage, &upstream, by).await;
        current(&stage, "a").await;
        let load = Load::start(&envoy);
        load.goes_on().await;

        for max in [200, 300] {
            let before = stage.resource().await["running"].clone();
            stage.write("a.yaml", &policy("a", "tidegate-testbed", max));
            until("the service wants the change", async || {
                stage.resource().await["wanted"] != before
            })
            .await;
            current(&stage, "a").await;
            load.goes_on().await;
            reports_the_listed_configuration(&stage, &envoy).await;
        }

        assert_eq!(load.end().await, [""; 0], "{by:?}");
        until("the filter has counted them", async || {
            let metrics = envoy.admin().tidegate().await.unwrap();
            metrics.sum("requests_total", "main") > 200
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_with_a_limit_of_one_sheds_requests() {
    let stage = ServingStage::start().await;
    let upstream = Upstream::constant("main", 1, Duration::from_secs(2))
        .await
        .unwrap();
    let envoy = envoy(&stage, &upstream, DiscoveryProtocol::Ecds).await;
    let tight =
        policy("tight", "tidegate-testbed", 1).replace("{max: 1}", "{min: 1, max: 1, initial: 1}");
    stage.write("a.yaml", &tight);
    current(&stage, "tight").await;

    let caller = Caller::http1(envoy.addr());
    let calls = (0..8).map(|_| {
        let caller = caller.clone();
        tokio::spawn(async move { caller.call(&Call::get("/")).await.unwrap() })
    });
    let mut shed = 0;
    for call in calls.collect::<Vec<_>>() {
        let reply = call.await.unwrap();
        shed += u32::from(reply.details() == Some("tidegate_shed_limit"));
    }
    assert!(shed >= 6, "only {shed} of 8 were shed at a limit of 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn traffic_continues_without_the_service_and_changes_follow_its_return() {
    let mut stage = ServingStage::start().await;
    stage.write("a.yaml", &policy("a", "tidegate-testbed", 100));
    let upstream = upstream().await;
    let envoy = envoy(&stage, &upstream, DiscoveryProtocol::Ecds).await;
    current(&stage, "a").await;
    let load = Load::start(&envoy);

    stage.stop().await;
    load.goes_on().await;
    stage.write("a.yaml", &policy("a", "tidegate-testbed", 200));
    stage.resume().await;
    current(&stage, "a").await;
    load.goes_on().await;

    assert_eq!(load.end().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_s_rejection_is_shown_and_traffic_continues() {
    let mut stage = ServingStage::start().await;
    let upstream = upstream().await;
    let envoy = envoy(&stage, &upstream, DiscoveryProtocol::Ecds).await;
    until("it runs the default", async || {
        stage.resource().await["running"].is_string()
    })
    .await;
    let running = stage.resource().await["running"].clone();
    let load = Load::start(&envoy);

    // From now on, the service names a module that the proxy does not have.
    stage.stop().await;
    let module = std::mem::replace(
        &mut stage.settings.plugin.module,
        Module::File("/nowhere/tidegate.wasm".to_owned()),
    );
    stage.resume().await;
    until("the rejection is shown", async || {
        stage.resource().await["lastRejected"].is_object()
    })
    .await;
    let resource = stage.resource().await;
    assert_eq!(resource["lastRejected"]["version"], resource["wanted"]);
    assert_eq!(resource["running"], running);
    load.goes_on().await;

    // Now the service names the right module again.
    stage.stop().await;
    stage.settings.plugin.module = module;
    stage.resume().await;
    until("it runs the default again", async || {
        stage.resource().await["running"] == running
    })
    .await;
    assert_eq!(load.end().await, [""; 0]);
}
