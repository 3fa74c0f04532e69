//! As in a mesh: Istio's cluster names, and one plugin on inbound and outbound listeners.

use std::net::SocketAddr;

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testbed::client::{Call, Caller};
use tidegate_testbed::envoy::{Cluster, Envoy, Plugin, Route};
use tidegate_testbed::upstream::Script;

use crate::config::{config, open_for_long};
use crate::load::{Crowd, in_turn, open_breaker};
use crate::stage::{Stage, answering, ensure, exact};
use crate::turn;

const OUTBOUND: &str = "outbound|9080||reviews.shop.svc.cluster.local";
const SUBSET: &str = "outbound|9080|v2|reviews.shop.svc.cluster.local";
const INBOUND: &str = "inbound|9080||";

#[tokio::test(flavor = "multi_thread")]
async fn service_rules_match_istios_cluster_names() {
    let turn = turn::shared().await;
    let upstream = answering("main", Script::Hang).await;
    let limit = |most: u32| json!({"min": most, "max": most});
    let document = config(json!({
        "limit": limit(2),
        "breaker": {"enabled": false},
        "upstreams": [
            {"match": {"cluster": "outbound|9080|v2|*"}, "limit": limit(3)},
            {"match": {"service": "reviews.shop"}, "limit": limit(4)},
            {"match": {"service": "*.svc.cluster.local"}, "limit": limit(5)},
        ],
    }));
    let others = "outbound|80||details.bank.svc.cluster.local";
    let mut envoy = exact()
        .route(Route::cluster_header("x-cluster"))
        .plugin(Plugin::tidegate(&document));
    let expected = [(SUBSET, 3), (OUTBOUND, 4), (others, 5), (INBOUND, 2)];
    for (name, _) in expected {
        envoy = envoy.cluster(Cluster::new(name, upstream.addr()));
    }
    let stage = Stage::start(turn, envoy).await;
    let mut crowds = Vec::new();
    for (name, limit) in expected {
        let call = Call::get("/").header("x-cluster", name);
        let mut crowd = Crowd::send(&stage.caller(), &call, 8);
        crowd.settle(&stage, limit).await;
        crowds.push(crowd);
        stage
            .until_sum("in_flight", name, u64::try_from(limit).unwrap())
            .await;
    }
}

/// A second listener, inbound, with the same filters and a route of its own.
fn add_inbound(bootstrap: &mut Value) {
    let listeners = bootstrap["static_resources"]["listeners"]
        .as_array_mut()
        .unwrap();
    let mut inbound = listeners[0].clone();
    inbound["name"] = json!("inbound");
    inbound["traffic_direction"] = json!("INBOUND");
    let manager = &mut inbound["filter_chains"][0]["filters"][0]["typed_config"];
    manager["route_config"]["virtual_hosts"][0]["routes"][0]["route"]["cluster"] = json!(INBOUND);
    listeners.push(inbound);
}

async fn listener(stage: &Stage, name: &str) -> SocketAddr {
    let document = stage
        .envoy
        .admin()
        .json("/listeners?format=json")
        .await
        .unwrap();
    let statuses = document["listener_statuses"].as_array().unwrap();
    let status = statuses
        .iter()
        .find(|status| status["name"] == name)
        .unwrap();
    let address = &status["local_address"]["socket_address"];
    let port = address["port_value"].as_u64().unwrap();
    SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn inbound_and_outbound_keep_their_states_apart() {
    let turn = turn::shared().await;
    let dead = answering("dead", Script::status(500)).await;
    let alive = answering("alive", Script::status(200)).await;
    let envoy = Envoy::builder()
        .route_timeout(Duration::ZERO)
        .cluster(Cluster::new(OUTBOUND, dead.addr()))
        .cluster(Cluster::new(INBOUND, alive.addr()))
        .plugin(Plugin::tidegate(&open_for_long(json!({}))))
        .edit(add_inbound);
    let stage = Stage::start(turn, envoy).await;
    let outbound = Caller::http1(listener(&stage, "listener").await);
    let inbound = Caller::http1(listener(&stage, "inbound").await);
    open_breaker(&stage, &outbound, &Call::get("/"), OUTBOUND).await;
    let tally = in_turn(&inbound, &Call::get("/"), 50).await;
    ensure!(stage, tally.ok == 50, "{tally:?}");
    let tally = in_turn(&outbound, &Call::get("/"), 20).await;
    ensure!(stage, tally.shed == 20, "{tally:?}");
    stage
        .until_sum("requests_admitted_total", INBOUND, 50)
        .await;
    let shed = stage.sum("requests_shed_total", INBOUND).await;
    ensure!(stage, shed == 0, "{shed} inbound requests were shed");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_by_route_keep_a_state_for_each_route() {
    let turn = turn::shared().await;
    let upstream = answering("main", Script::Hang).await;
    let document = config(json!({
        "limit": {"min": 3, "max": 3},
        "breaker": {"enabled": false},
        "upstreams": [{"match": {"route": "nightly-*"}, "limit": {"min": 1, "max": 1}}],
    }));
    let envoy = exact()
        .cluster(Cluster::new("main", upstream.addr()))
        .route(
            Route::prefix("/reports")
                .to("main")
                .named("nightly-reports"),
        )
        .route(Route::prefix("/").to("main").named("other"))
        .plugin(Plugin::tidegate(&document));
    let stage = Stage::start(turn, envoy).await;
    let mut reports = Crowd::send(&stage.caller(), &Call::get("/reports"), 8);
    reports.settle(&stage, 1).await;
    let mut other = Crowd::send(&stage.caller(), &Call::get("/"), 8);
    other.settle(&stage, 3).await;
    stage
        .until("each route has its gauge", async || {
            let metrics = stage.metrics().await;
            let of = |route| metrics.value("in_flight", "main", &[("route", route)]);
            (of("nightly-reports"), of("other")) == (Some(1), Some(3))
        })
        .await;
}
