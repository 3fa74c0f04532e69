//! The watched directory, as a proxy sees it.

use std::fs;

use serde_json::Value;

use crate::proxy::{TestProxy, limit};
use crate::stage::{ServingStage, policy, until};

/// A proxy that runs the policy `a` of a file.
async fn running(stage: &ServingStage) -> TestProxy {
    stage.write("a.yaml", &policy("a", "*", 100));
    until("the file is read", async || {
        stage.json("/v1/policies").await["policies"][0]["name"] == "a"
    })
    .await;
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge", "").await;
    let push = proxy.pushed().await;
    assert_eq!(limit(&push), 100);
    proxy.accept(&push).await;
    proxy
}

async fn problems(stage: &ServingStage) -> Vec<Value> {
    let policies = stage.json("/v1/policies").await;
    policies["problems"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_is_shown_and_its_policies_stay() {
    let stage = ServingStage::start().await;
    let mut proxy = running(&stage).await;

    stage.write("a.yaml", "kind: [");
    until("the error is shown", async || {
        problems(&stage).await.len() == 1
    })
    .await;
    let shown = problems(&stage).await;
    assert!(shown[0]["source"].as_str().unwrap().ends_with("a.yaml"));
    assert_eq!(
        stage.json("/v1/policies").await["policies"][0]["proxies"],
        1
    );

    // The next push is that of the repaired file. The broken file must cause no push.
    stage.write("a.yaml", &policy("a", "*", 200));
    assert_eq!(limit(&proxy.pushed().await), 200);
    assert!(problems(&stage).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_disappears_and_returns_changes_only_the_reported_problems() {
    let stage = ServingStage::start().await;
    let mut proxy = running(&stage).await;
    let (here, there) = (stage.folder().join("policies"), stage.folder().join("away"));

    fs::rename(&here, &there).unwrap();
    until("the missing directory is reported", async || {
        problems(&stage).await.len() == 1
    })
    .await;
    assert_eq!(stage.json("/v1/policies").await["policies"][0]["name"], "a");
    fs::rename(&there, &here).unwrap();
    until("the problem is gone", async || {
        problems(&stage).await.is_empty()
    })
    .await;

    stage.write("a.yaml", &policy("a", "*", 200));
    assert_eq!(limit(&proxy.pushed().await), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_file_takes_its_policies_with_it() {
    let stage = ServingStage::start().await;
    let mut proxy = running(&stage).await;

    fs::remove_file(stage.file("a.yaml")).unwrap();

    assert_eq!(limit(&proxy.pushed().await), Value::Null);
}
