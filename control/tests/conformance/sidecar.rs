//! Case 2: a sidecar, in both directions at once.
//!
//! One policy puts the filter in front of the workload and in front of the services that the workload calls. Each
//! cluster has its own state. A rule finds its service by the host in Istio's name of the cluster.

use std::sync::Arc;

use serde_json::json;
use tidegate_meshbed::{MeshNode, ProxyRole, ports, until};

use crate::door::{self, MeshDoor, one_at_a_time};
use crate::load::SHED;
use crate::mesh::{ConformanceMesh, is_guarded};

/// The status that the rule for one service sets.
const SHED_BY_RULE: u16 = SHED + 1;

pub(crate) async fn one_policy_guards_both_directions_with_a_state_for_each_service(
    mesh: Arc<ConformanceMesh>,
) {
    let namespace = mesh.world.namespace("both").await;
    let (web, stock, prices) = (
        door::upstream("web").await,
        door::upstream("stock").await,
        door::upstream("prices").await,
    );
    let (stock_host, prices_host) = (
        "stock.both.svc.cluster.local",
        "prices.both.svc.cluster.local",
    );
    let (inbound, outbound) = (ports::free(), ports::free());
    // Istio puts the services with a listener's port into that listener.
    mesh.register_at(&namespace, stock_host, outbound, &stock)
        .await;
    mesh.register_at(&namespace, prices_host, outbound, &prices)
        .await;
    let node = MeshNode::new(ProxyRole::Sidecar, &namespace, "web");
    let listener = |port: u16| {
        json!({
            "port": {"number": port, "name": format!("http-{port}"), "protocol": "HTTP"},
            "bind": "127.0.0.1", "captureMode": "NONE",
        })
    };
    let (mut ingress, mut egress) = (listener(inbound), listener(outbound));
    ingress["defaultEndpoint"] = json!(web.addr().to_string());
    egress["hosts"] = json!(["./*"]);
    mesh.apply(&namespace, &node.pod()).await;
    mesh.apply(
        &namespace,
        &json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Sidecar", "metadata": {"name": "web"},
            "spec": {
                "workloadSelector": {"labels": node.labels},
                "ingress": [ingress], "egress": [egress],
            },
        }),
    )
    .await;
    let envoy = mesh.proxy(&node).await;
    let to_web = MeshDoor::at(([127, 0, 0, 1], inbound).into());
    let from_web = ([127, 0, 0, 1], outbound).into();
    let to_stock = MeshDoor::to(from_web, stock_host);
    let to_prices = MeshDoor::to(from_web, prices_host);

    let mut settings = one_at_a_time(SHED);
    settings["upstreams"] = json!([
        {"match": {"service": "stock.both"}, "shed": {"status": SHED_BY_RULE}},
    ]);
    mesh.apply_policy(&namespace, "web", &settings).await;
    is_guarded(&envoy).await;
    // Istio passes the configuration on unchanged, so its digest tells which policy the proxy runs.
    until("tidegate_info has the digest of the policy", async || {
        let listed = mesh.replica.json("/v1/policies").await;
        let name = format!("{namespace}/web");
        let policies = listed["policies"].as_array().cloned().unwrap_or_default();
        let policy = policies.iter().find(|policy| policy["name"] == name);
        let Some(digest) = policy.and_then(|policy| policy["config"].as_str()) else {
            return false;
        };
        let metrics = envoy.admin().tidegate().await.unwrap();
        metrics.value("info", "", &[("config", digest)]) == Some(1) && metrics.sum("info", "") == 1
    })
    .await;

    // The workload is full. The services that it calls are not.
    let held = to_web.is_taken(&web, SHED).await;
    assert_eq!(
        (to_stock.status().await, to_prices.status().await),
        (200, 200)
    );
    drop(held);
    to_web.answers(200).await;

    // One of the services is full. The other one and the workload are not.
    let _held = to_stock.is_taken(&stock, SHED_BY_RULE).await;
    assert_eq!(
        (to_web.status().await, to_prices.status().await),
        (200, 200)
    );

    until("the metrics have the names of the clusters", async || {
        let metrics = envoy.admin().tidegate().await.unwrap();
        let in_flight = |cluster: &str| metrics.value("in_flight", cluster, &[]);
        in_flight(&format!("inbound|{inbound}||")) == Some(0)
            && in_flight(&format!("outbound|{outbound}||{stock_host}")) == Some(1)
            && in_flight(&format!("outbound|{outbound}||{prices_host}")) == Some(0)
    })
    .await;
}
