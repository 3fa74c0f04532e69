//! Thousands of upstream names.

use std::time::Duration;

use serde_json::json;
use tidegate_testbed::client::Call;
use tidegate_testbed::envoy::{Cluster, Envoy, Plugin, Route};
use tidegate_testbed::upstream::Script;
use tokio::task::JoinSet;

use crate::config::config;
use crate::stage::{Stage, answering, ensure};
use crate::turn;

const NAMES: u64 = 5_000;
const CAP: u64 = 200;
const CALLERS: u64 = 8;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a scored run: make test-scores"]
async fn five_thousand_upstream_names_stay_within_the_cap() {
    let turn = turn::alone().await;
    let upstream = answering("main", Script::status(200)).await;
    // One worker: with two, connections to the second one would open pools for every cluster again.
    let mut envoy = Envoy::builder()
        .concurrency(1)
        .route(Route::cluster_header("x-cluster"))
        .plugin(Plugin::tidegate(&config(json!({"maxUpstreams": CAP}))))
        .ready_within(Duration::from_secs(60));
    for number in 0..NAMES {
        envoy = envoy.cluster(Cluster::new(&name(number), upstream.addr()));
    }
    let stage = Stage::start(turn, envoy).await;
    // The first round also includes the cost of Envoy's own connection pools.
    let first = ask_all(&stage).await;
    let after_first = stage.envoy.resident_bytes().unwrap();
    let second = ask_all(&stage).await;
    let after_second = stage.envoy.resident_bytes().unwrap();
    ensure!(
        stage,
        (first, second) == (NAMES, NAMES),
        "{first} and {second} of {NAMES} were served"
    );
    let grown = after_second.saturating_sub(after_first);
    ensure!(
        stage,
        grown < 30 << 20,
        "the second round took {grown} bytes"
    );

    stage.until_sum("upstreams", "", CAP).await;
    let metrics = stage.metrics().await;
    let overflow = metrics.sum("upstreams_overflow_total", "");
    ensure!(
        stage,
        overflow >= NAMES,
        "{overflow} requests counted as overflow"
    );
    let names: std::collections::BTreeSet<_> = metrics
        .iter()
        .filter_map(|metric| metric.labels.get("upstream"))
        .collect();
    ensure!(
        stage,
        u64::try_from(names.len()).unwrap() <= CAP + 1,
        "{} upstreams have metrics, the cap is {CAP}",
        names.len()
    );
    ensure!(stage, names.contains(&"_overflow".to_owned()), "{names:?}");
    stage.until_sum("requests_total", "", 2 * NAMES).await;
    stage.until_sum("in_flight", "", 0).await;
}

fn name(number: u64) -> String {
    format!("outbound|80||service-{number}.shop.svc.cluster.local")
}

/// Sends one call for every name, from a few callers at once; returns how many were served.
async fn ask_all(stage: &Stage) -> u64 {
    let mut callers = JoinSet::new();
    for first in 0..CALLERS {
        let caller = stage.caller();
        callers.spawn(async move {
            let mut served = 0;
            let mut number = first;
            while number < NAMES {
                let call = Call::get("/").header("x-cluster", &name(number));
                served += u64::from(
                    caller
                        .call(&call)
                        .await
                        .is_ok_and(|reply| reply.status == 200),
                );
                number += CALLERS;
            }
            served
        });
    }
    callers.join_all().await.into_iter().sum()
}
