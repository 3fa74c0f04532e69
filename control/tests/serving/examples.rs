//! Starts the Envoys of the examples with their own configuration. The test replaces only the addresses and paths of
//! upstream, service and module.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tidegate_control::document::{documents, value_of};
use tidegate_testbed::client::Caller;
use tidegate_testbed::envoy::{Cluster, Envoy, release_module, repository};
use tidegate_testbed::upstream::Upstream;

use crate::default_config::READY;
use crate::stage::{ServingStage, until};

/// The path of the module in every example.
const MODULE: &str = "/etc/envoy/tidegate.wasm";

fn example(path: &str) -> PathBuf {
    repository().join("examples").join(path)
}

/// Replaces the bootstrap in `document` by the example. The addresses of the listener, the clusters and the admin
/// interface stay.
fn take(document: &mut Value, path: &str) {
    let text = fs::read_to_string(example(path)).unwrap();
    let module = release_module();
    let text = text.replace(MODULE, module.to_str().unwrap());
    let (found, malformed) = documents(text.as_bytes());
    assert!(malformed.is_none(), "{malformed:?}");
    let mut example = value_of(found[0].root());
    let (here, there) = (
        &document["static_resources"],
        &mut example["static_resources"],
    );
    let listener = &mut there["listeners"][0];
    listener["address"] = here["listeners"][0]["address"].clone();
    for cluster in there["clusters"].as_array_mut().unwrap() {
        let all = here["clusters"].as_array().unwrap();
        let same = all.iter().find(|one| one["name"] == cluster["name"]);
        let same = same.unwrap_or_else(|| panic!("no {} in this test", cluster["name"]));
        cluster["type"] = Value::from("STATIC");
        cluster["load_assignment"] = same["load_assignment"].clone();
    }
    example["admin"] = document["admin"].clone();
    *document = example;
}

/// All files of the examples whose names have this ending.
fn files(ending: &str) -> Vec<PathBuf> {
    let mut folders = vec![example("")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().ends_with(ending) {
                files.push(path);
            }
        }
    }
    files
}

#[test]
fn every_configuration_of_the_examples_is_yaml() {
    let files = files(".yaml");
    assert!(files.len() > 20, "{files:?}");
    for file in files {
        let (found, malformed) = documents(&fs::read(&file).unwrap());
        assert!(malformed.is_none(), "{}: {malformed:?}", file.display());
        assert!(!found.is_empty(), "{} is empty", file.display());
    }
}

#[test]
fn no_envoy_of_the_examples_is_left_out() {
    let mut found: Vec<PathBuf> = files("envoy.yaml");
    found.sort();

    let started = ["envoy", "standalone", "standalone-ecds"];
    assert_eq!(
        found,
        started.map(|folder| example(folder).join("envoy.yaml"))
    );
}

async fn upstream() -> Upstream {
    let service = Duration::from_millis(2);
    Upstream::constant("upstream", 16, service).await.unwrap()
}

async fn answers(envoy: &Envoy, cluster: &str) {
    let caller = Caller::http1(envoy.addr());
    until("it answers", async || {
        caller.get("/").await.is_ok_and(|reply| reply.status == 200)
    })
    .await;
    until("the filter has counted it", async || {
        let metrics = envoy.admin().tidegate().await.unwrap();
        metrics.sum("requests_total", cluster) > 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_envoy_to_start_from_starts_and_counts() {
    let upstream = upstream().await;
    let envoy = Envoy::builder()
        .cluster(Cluster::new("service", upstream.addr()))
        .edit(|document| take(document, "envoy/envoy.yaml"))
        .start()
        .await
        .unwrap();

    answers(&envoy, "service").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_standalone_envoy_starts_and_counts() {
    let upstream = upstream().await;
    let envoy = Envoy::builder()
        .cluster(Cluster::new("upstream", upstream.addr()))
        .edit(|document| take(document, "standalone/envoy.yaml"))
        .start()
        .await
        .unwrap();

    answers(&envoy, "upstream").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_envoy_with_discovery_runs_the_policy_of_its_folder() {
    let stage = ServingStage::start().await;
    let policy = fs::read_to_string(example("standalone-ecds/policies/edge.yaml")).unwrap();
    stage.write("edge.yaml", &policy);
    let upstream = upstream().await;
    let envoy = Envoy::builder()
        .cluster(Cluster::new("upstream", upstream.addr()))
        .cluster(Cluster::new("tidegate", stage.settings.xds).http2())
        .edit(|document| take(document, "standalone-ecds/envoy.yaml"))
        .start()
        .await
        .unwrap();

    answers(&envoy, "upstream").await;
    until("it runs the policy", async || {
        let resource = stage.resource().await;
        let proxies = stage.json("/v1/proxies").await;
        proxies["proxies"][0]["policy"] == "edge"
            && resource["running"].is_string()
            && resource["running"] == resource["wanted"]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_envoy_with_discovery_answers_while_the_service_is_away() {
    let mut stage = ServingStage::start().await;
    stage.stop().await;
    let upstream = upstream().await;
    let envoy = Envoy::builder()
        .cluster(Cluster::new("upstream", upstream.addr()))
        .cluster(Cluster::new("tidegate", stage.settings.xds).http2())
        .edit(|document| take(document, "standalone-ecds/envoy.yaml"))
        .ready_within(READY)
        .start()
        .await
        .unwrap();

    answers(&envoy, "upstream").await;
}
