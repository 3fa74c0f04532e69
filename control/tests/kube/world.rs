//! What the cases share: an API server with the kinds installed.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, CustomResourceExt as _};
use serde_json::{Value, json};
use tidegate_control::kube::istio::IstioApi;
use tidegate_control::resource::BreakerPolicy;
use tidegate_meshbed::definitions::{Kinds, install};
use tidegate_meshbed::{KubeCluster, until, until_equal};

/// Istio's kinds that carry a policy. These tests need none of its other kinds.
const PLUGIN_KINDS: [&str; 2] = [
    "trafficextensions.extensions.istio.io",
    "wasmplugins.extensions.istio.io",
];

/// An API server with the kinds, and a client with all rights.
pub(crate) struct TestCluster {
    pub(crate) cluster: KubeCluster,
    pub(crate) admin: Client,
}

impl TestCluster {
    /// Starts an API server and installs the kinds.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Self::with_istio_kinds(|name| PLUGIN_KINDS.contains(&name)).await
    }

    /// The same with those of Istio's kinds for which `wanted` is true.
    pub(crate) async fn with_istio_kinds(wanted: impl Fn(&str) -> bool) -> anyhow::Result<Self> {
        let cluster = KubeCluster::start().await?;
        let admin = cluster.client(cluster.admin()).await?;
        install(&admin, Kinds::Tidegate, |_| true).await?;
        install(&admin, Kinds::Istio, wanted).await?;
        Ok(Self { cluster, admin })
    }

    /// Creates the namespace of a case.
    pub(crate) async fn namespace(&self, name: &str) -> String {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        let api: Api<Namespace> = Api::all(self.admin.clone());
        api.create(&PostParams::default(), &namespace)
            .await
            .unwrap();
        name.to_owned()
    }

    /// The policies of a namespace.
    pub(crate) fn policies(&self, namespace: &str) -> Api<BreakerPolicy> {
        Api::namespaced(self.admin.clone(), namespace)
    }

    /// Applies a policy, as its author does.
    pub(crate) async fn apply(&self, namespace: &str, name: &str, spec: &Value) -> BreakerPolicy {
        let document = json!({
            "apiVersion": "tidegate.dev/v1alpha1", "kind": "BreakerPolicy",
            "metadata": {"name": name}, "spec": spec,
        });
        let how = PatchParams::apply("author").force();
        self.policies(namespace)
            .patch(name, &how, &Patch::Apply(&document))
            .await
            .unwrap()
    }

    /// Waits until the status says that the newest version of the policy is in force.
    pub(crate) async fn in_force(&self, namespace: &str, name: &str) {
        until(&format!("{namespace}/{name} is in force"), async || {
            let policy = self.policies(namespace).get(name).await.unwrap();
            let status = serde_json::to_value(&policy.status).unwrap();
            let generation = json!(policy.metadata.generation);
            let is_it = |one: &Value| {
                one["type"] == "Programmed"
                    && one["status"] == "True"
                    && one["observedGeneration"] == generation
            };
            status["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(is_it)
        })
        .await;
    }

    /// A condition of a policy, such as `True Programmed`, and its message; both are empty if there is none.
    pub(crate) async fn condition(
        &self,
        namespace: &str,
        policy: &str,
        kind: &str,
    ) -> (String, String) {
        let policy = self.policies(namespace).get(policy).await.unwrap();
        let status = policy.status.unwrap_or_default();
        let condition = status.conditions.into_iter().find(|c| c.type_ == kind);
        condition
            .map(|c| (format!("{} {}", c.status, c.reason), c.message))
            .unwrap_or_default()
    }

    /// Waits until a condition of a policy has this value.
    #[track_caller]
    pub(crate) fn until_condition(
        &self,
        namespace: &str,
        policy: &str,
        kind: &str,
        is: &str,
    ) -> impl Future<Output = ()> {
        let what = format!("{namespace}/{policy}: {kind}");
        until_equal(&what, is, async move || {
            self.condition(namespace, policy, kind).await.0
        })
    }

    /// Istio's objects of a namespace.
    pub(crate) fn plugins(&self, namespace: &str, api: IstioApi) -> Api<DynamicObject> {
        Api::namespaced_with(self.admin.clone(), namespace, &api.resource())
    }

    /// The events of a namespace.
    pub(crate) fn events(&self, namespace: &str) -> Api<Event> {
        Api::namespaced(self.admin.clone(), namespace)
    }

    /// The holder of the lease in a namespace.
    pub(crate) async fn lease_holder(&self, namespace: &str) -> Option<String> {
        let leases: Api<Lease> = Api::namespaced(self.admin.clone(), namespace);
        leases.get("tidegate").await.unwrap().spec?.holder_identity
    }

    /// The definition as the API server stores it.
    pub(crate) async fn definition(&self) -> Value {
        let api: Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
            Api::all(self.admin.clone());
        let found = api.get(BreakerPolicy::crd_name()).await.unwrap();
        serde_json::to_value(found).unwrap()
    }
}

/// The object of Istio that carries a policy with a selector or target references.
pub(crate) async fn plugin_of(
    world: &TestCluster,
    namespace: &str,
    policy: &str,
) -> Option<DynamicObject> {
    world
        .plugins(namespace, IstioApi::TrafficExtension)
        .get_opt(&format!("tidegate-{policy}"))
        .await
        .unwrap()
}
