//! Sidecars as istiod injects them: the API server calls istiod's webhook for every Pod of a namespace that asks for it.
//!
//! The namespace and the Pods are those of `examples/istio-sidecar`. The labels of metrics are those that
//! `dashboards/stats-tags` sets for the mesh or a Pod. There is no kubelet, so the tests start the sidecar of a Pod from the
//! injected containers.

use std::fs;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, PostParams};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_meshbed::agent::InjectedSidecar;
use tidegate_meshbed::{ImageRegistry, until};
use tidegate_testbed::envoy::repository;

use crate::agents::App;
use crate::door::{self, MeshDoor, one_at_a_time};
use crate::load::SHED;
use crate::mesh::{ConformanceMesh, runs_the_filter};

/// The documents of a file of this repository.
fn documents(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(repository().join(path)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

/// The documents of this kind in the file.
fn of_kind<K: DeserializeOwned>(path: &str, kind: &str) -> Vec<K> {
    let all = documents(path).into_iter();
    all.filter(|one| one["kind"] == kind)
        .map(|one| serde_json::from_value(one).unwrap())
        .collect()
}

/// The Pod that a Deployment's ReplicaSet creates, with the service account that Kubernetes sets.
fn pod_of(deployment: &Deployment) -> Pod {
    let template = deployment.spec.clone().unwrap().template;
    let mut metadata = template.metadata.unwrap_or_default();
    metadata.name = deployment.metadata.name.clone();
    let mut spec = template.spec.unwrap();
    spec.service_account_name = Some("default".to_owned());
    Pod {
        metadata,
        spec: Some(spec),
        ..Pod::default()
    }
}

/// The labels of metrics that the mesh sets.
fn labels() -> Value {
    let values = documents("dashboards/stats-tags/istio-mesh.yaml");
    values[0]["meshConfig"]["defaultConfig"]["extraStatTags"].clone()
}

pub(crate) async fn a_pod_of_the_example_gets_a_sidecar_whose_metrics_have_our_labels(
    _: Arc<ConformanceMesh>,
) {
    // The case has its own mesh, because its istiod injects sidecars.
    let mesh = ConformanceMesh::injecting().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(mesh.world.admin.clone());
    let params = PostParams::default();
    let example: Namespace =
        of_kind("examples/istio-sidecar/namespace.yaml", "Namespace").remove(0);
    let namespace = example.metadata.name.clone().unwrap();
    namespaces.create(&params, &example).await.unwrap();
    mesh.world.namespace("plain").await;
    let pods =
        |namespace: &str| -> Api<Pod> { Api::namespaced(mesh.world.admin.clone(), namespace) };

    // A pod that does not ask for a sidecar gets none.
    let workloads: Vec<Deployment> = of_kind("examples/workloads/workloads.yaml", "Deployment");
    assert_eq!(workloads.len(), 2);
    for workload in &workloads {
        let mut pod = pod_of(workload);
        let made = pods("plain").create(&params, &pod).await.unwrap();
        assert_eq!(InjectedSidecar::of(&made), None);

        let note: Value = documents("dashboards/stats-tags/istio-pod.yaml").remove(0);
        let annotations = note["metadata"]["annotations"].clone();
        pod.metadata.annotations = serde_json::from_value(annotations.clone()).unwrap();
        let made = pods(&namespace).create(&params, &pod).await.unwrap();
        let injected = InjectedSidecar::of(&made).unwrap();
        assert_eq!(injected.proxy_config["extraStatTags"], labels());
        for (key, value) in annotations.as_object().unwrap() {
            assert_eq!(
                injected.annotations.get(key).map(String::as_str),
                value.as_str()
            );
        }
        // The agent reads annotations from a file, if the Pod has one.
        let spec = serde_json::to_value(&made.spec).unwrap().to_string();
        assert!(spec.contains("metadata.annotations"), "{spec}");
    }

    // The injected sidecar works.
    let registry = ImageRegistry::start(mesh.world.cluster.folder())
        .await
        .unwrap();
    let workload = door::upstream("api").await;
    let app = App {
        namespace: &namespace,
        name: "api",
        number: 61,
    };
    let api = app.guard(&mesh, registry.address(), &workload).await;
    mesh.apply_policy(&namespace, "api", &one_at_a_time(SHED))
        .await;
    runs_the_filter(api.agent.admin()).await;
    let door = MeshDoor::at(api.address);
    let _held = door.is_taken(&workload, SHED).await;
    let label = format!("tidegate_upstream=\"inbound|{}||\"", api.address.port());
    until("its metrics have labels", async || {
        let metrics = api.agent.metrics().await.unwrap();
        metrics.lines().any(|line| {
            line.contains("shed_total{")
                && line.contains(&label)
                && line.contains("tidegate_reason=")
        })
    })
    .await;
}
