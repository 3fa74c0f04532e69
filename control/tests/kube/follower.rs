//! A replica of the service that follows one namespace of its own, and what happens in that namespace.

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tidegate_control::kube::istio::IstioApi;
use tidegate_control::resource::BreakerPolicy;
use tidegate_meshbed::{Replica, User};

use crate::service::{Rights, account, start};
use crate::world::TestCluster;

/// A version of the module that policies may name.
const CANARY: &str = "canary=file:///canary.wasm";

/// A replica, and the namespace that it follows.
pub(crate) struct Follower {
    replica: Replica,
    user: User,
    namespace: String,
    world: Arc<TestCluster>,
    api: IstioApi,
}

impl Follower {
    /// Starts a replica in a new namespace.
    pub(crate) async fn start(world: &Arc<TestCluster>, namespace: &str, api: IstioApi) -> Self {
        Self::with(world, namespace, api, &[]).await
    }

    /// The same with further options.
    pub(crate) async fn with(
        world: &Arc<TestCluster>,
        namespace: &str,
        api: IstioApi,
        more: &[&str],
    ) -> Self {
        let namespace = world.namespace(namespace).await;
        let user = account(world, &namespace, "tidegate", Rights::Namespace).await;
        let option = match api {
            IstioApi::TrafficExtension => "traffic-extension",
            IstioApi::WasmPlugin => "wasm-plugin",
        };
        let options = [
            ["--watch-namespace", namespace.as_str()],
            ["--extension-api", option],
            ["--extension-pull-secret", "pull"],
            ["--extension-fail-strategy", "reload"],
            ["--extension-phase", "stats"],
            ["--extension-priority", "10"],
            ["--extension-version", CANARY],
        ];
        let options = [options.as_flattened(), more].concat();
        let replica = start(world, &user, &namespace, &options).await;
        Self {
            replica,
            user,
            namespace,
            world: Arc::clone(world),
            api,
        }
    }

    pub(crate) fn stop(self) {
        self.replica.stop();
    }

    /// The address of its REST interface, as commands take it.
    pub(crate) fn server(&self) -> String {
        format!("http://{}", self.replica.http())
    }

    /// The value of an annotation of the Lease.
    pub(crate) async fn lease_annotation(&self, name: &str) -> Option<String> {
        let leases: Api<Lease> = Api::namespaced(self.world.admin.clone(), &self.namespace);
        let lease = leases.get("tidegate").await.unwrap();
        lease.metadata.annotations?.remove(name)
    }

    /// Istio's objects in the namespace.
    pub(crate) fn objects(&self) -> Api<DynamicObject> {
        self.world.plugins(&self.namespace, self.api)
    }

    pub(crate) fn policies(&self) -> Api<BreakerPolicy> {
        self.world.policies(&self.namespace)
    }

    /// Applies a policy as its author would.
    pub(crate) async fn put(&self, name: &str, spec: &Value) {
        self.world.apply(&self.namespace, name, spec).await;
    }

    pub(crate) async fn remove(&self, name: &str) {
        let params = DeleteParams::default();
        self.policies().delete(name, &params).await.unwrap();
    }

    /// Creates an object, as another client.
    pub(crate) async fn make(&self, name: &str, spec: &Value) -> DynamicObject {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "extensions.istio.io/v1alpha1", "kind": self.api.kind(),
            "metadata": {"name": name}, "spec": spec,
        }))
        .unwrap();
        let params = PostParams::default();
        self.objects().create(&params, &object).await.unwrap()
    }

    /// Changes an object by a forced server-side apply, as another client.
    pub(crate) async fn seize(&self, name: &str, spec: &Value) {
        let document = json!({
            "apiVersion": "extensions.istio.io/v1alpha1", "kind": self.api.kind(),
            "metadata": {"name": name}, "spec": spec,
        });
        let params = PatchParams::apply("somebody").force();
        let patch = Patch::Apply(&document);
        self.objects().patch(name, &params, &patch).await.unwrap();
    }

    /// The `spec` of an object; null while there is none.
    pub(crate) async fn spec(&self, name: &str) -> Value {
        let object = self.objects().get_opt(name).await.unwrap();
        object
            .map(|object| object.data["spec"].clone())
            .unwrap_or_default()
    }

    /// Sets an annotation of the Lease, or removes it, as kubectl does.
    pub(crate) async fn annotate_lease(&self, name: &str, value: Option<&str>) {
        let leases: Api<Lease> = Api::namespaced(self.world.admin.clone(), &self.namespace);
        let patch = json!({"metadata": {"annotations": {name: value}}});
        let params = PatchParams::default();
        leases
            .patch("tidegate", &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    /// A condition, such as `True Programmed`; empty if there is none.
    pub(crate) async fn condition(&self, name: &str, kind: &str) -> String {
        self.world.condition(&self.namespace, name, kind).await.0
    }

    pub(crate) async fn message(&self, name: &str, kind: &str) -> String {
        self.world.condition(&self.namespace, name, kind).await.1
    }

    pub(crate) async fn until(&self, name: &str, kind: &str, is: &str) {
        let world = &self.world;
        world.until_condition(&self.namespace, name, kind, is).await;
    }

    /// The number of writes by the replica so far: to Istio's objects, and to the status of policies.
    pub(crate) fn writes(&self) -> (usize, usize) {
        let writes = self.world.cluster.writes_of(&self.user);
        let count = |what: &str| writes.iter().filter(|write| write.what() == what).count();
        (count(self.api.plural()), count("breakerpolicies/status"))
    }
}
