//! How the API server serves the kind: what it stores, what it shows and what it protects.

use std::sync::Arc;

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tidegate_control::resource::BreakerPolicy;

use crate::policies::spec;
use crate::world::TestCluster;

fn policy(name: &str, spec: &Value) -> BreakerPolicy {
    serde_json::from_value(json!({
        "apiVersion": "tidegate.dev/v1alpha1", "kind": "BreakerPolicy",
        "metadata": {"name": name}, "spec": spec,
    }))
    .unwrap()
}

/// Otherwise a later version could not have other defaults than the version that stored the policy.
pub(crate) async fn the_server_adds_no_default_values(world: Arc<TestCluster>) {
    let policies = world.policies(&world.namespace("as-written").await);
    let written = policy("minimal", &spec(&json!({})));

    let kept = policies
        .create(&PostParams::default(), &written)
        .await
        .unwrap();

    assert_eq!(kept.spec, written.spec);
    assert_eq!(kept.status, None);
}

pub(crate) async fn the_status_is_written_apart_from_the_rest(world: Arc<TestCluster>) {
    let policies = world.policies(&world.namespace("status").await);
    let one = policy("one", &spec(&json!({})));
    policies.create(&PostParams::default(), &one).await.unwrap();
    let merge = PatchParams::default();

    // A client that writes the policy cannot write the status, and vice versa.
    let both = json!({"spec": {"mode": "observe"}, "status": {"version": "abc"}});
    let by_author = policies
        .patch("one", &merge, &Patch::Merge(&both))
        .await
        .unwrap();
    assert_eq!(by_author.status, None);
    assert_eq!(by_author.metadata.generation, Some(2));
    let both = json!({"spec": {"mode": "enforce"}, "status": {"version": "abc"}});
    let by_service = policies
        .patch_status("one", &merge, &Patch::Merge(&both))
        .await
        .unwrap();

    assert_eq!(by_service.spec.config.0["mode"], "observe");
    assert_eq!(
        serde_json::to_value(&by_service.status).unwrap()["version"],
        "abc"
    );
    assert_eq!(
        by_service.metadata.generation,
        Some(2),
        "a write of the status keeps the generation"
    );
}

pub(crate) async fn the_columns_show_mode_objective_and_conditions(world: Arc<TestCluster>) {
    let namespace = world.namespace("columns").await;
    let policies = world.policies(&namespace);
    let observed = policy("one", &spec(&json!({"mode": "observe"})));
    policies
        .create(&PostParams::default(), &observed)
        .await
        .unwrap();
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "Tested", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"version": "abc", "conditions": [
        condition("Accepted", "True"), condition("Programmed", "Unknown"), condition("Conflicted", "False"),
    ]}});
    policies
        .patch_status("one", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();

    let request = Request::get(format!(
        "/apis/tidegate.dev/v1alpha1/namespaces/{namespace}/breakerpolicies"
    ))
    .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
    .body(Vec::new())
    .unwrap();
    let table: Value = world.admin.request(request).await.unwrap();

    let shown = |is_wide: bool| -> Vec<(String, Value)> {
        let columns = table["columnDefinitions"].as_array().unwrap();
        let cells = table["rows"][0]["cells"].as_array().unwrap();
        let both = columns.iter().zip(cells);
        both.filter(|(column, _)| (column["priority"] != 0) == is_wide && column["name"] != "Age")
            .map(|(column, cell)| (column["name"].as_str().unwrap().to_owned(), cell.clone()))
            .collect()
    };
    let cells = |cells: &[(&str, &str)]| -> Vec<(String, Value)> {
        cells
            .iter()
            .map(|(name, cell)| ((*name).to_owned(), json!(cell)))
            .collect()
    };
    let usual = [
        ("Name", "one"),
        ("Mode", "observe"),
        ("Latency", "250ms"),
        ("Accepted", "True"),
        ("Programmed", "Unknown"),
    ];
    assert_eq!(shown(false), cells(&usual));
    assert_eq!(
        shown(true),
        cells(&[("Conflicted", "False"), ("Version", "abc")]),
        "kubectl get -o wide"
    );
}

pub(crate) async fn it_is_found_by_its_short_name_and_category(world: Arc<TestCluster>) {
    let list: APIResourceList = world
        .admin
        .list_api_group_resources("tidegate.dev/v1alpha1")
        .await
        .unwrap();

    let kind = list
        .resources
        .iter()
        .find(|one| one.name == "breakerpolicies")
        .unwrap();
    assert_eq!(kind.short_names.as_deref(), Some(&["bp".to_owned()][..]));
    assert_eq!(
        kind.categories.as_deref(),
        Some(&["tidegate".to_owned()][..])
    );
    assert!(kind.namespaced);
    assert!(
        list.resources
            .iter()
            .any(|one| one.name == "breakerpolicies/status")
    );
}

pub(crate) async fn a_user_without_rights_reads_and_writes_nothing(world: Arc<TestCluster>) {
    let client = world
        .cluster
        .client(world.cluster.stranger())
        .await
        .unwrap();
    let policies: Api<BreakerPolicy> = Api::namespaced(client, "default");

    let read = policies.list(&ListParams::default()).await.map(drop);
    let written = policies
        .create(&PostParams::default(), &policy("a", &spec(&json!({}))))
        .await
        .map(drop);

    for answer in [read, written] {
        let Err(kube::Error::Api(status)) = answer else {
            panic!("a user without rights gets an answer: {answer:?}");
        };
        assert_eq!(status.code, 403, "{}", status.message);
    }
}
