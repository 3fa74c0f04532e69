//! A replica of the service that follows one namespace of the API server.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tidegate_control::fleet::Fleet;
use tidegate_control::kube::election::Timing;
use tidegate_control::kube::flavour::{ApiChoice, Flavour};
use tidegate_control::kube::settings::{
    Access, Extension, FailStrategy, LeaseSettings, Phase, Scope,
};
use tidegate_control::kube::{Settings, Surroundings, start};
use tidegate_control::metrics::Metrics;
use tidegate_control::resource::BreakerPolicy;
use tidegate_control::source::Catalogue;
use tidegate_control::xds::{Module, OnCrash, Plugin};
use tidegate_meshbed::{BOUND, until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::world::World;

/// A replica, and the namespace that it follows.
pub(crate) struct Service {
    pub(crate) catalogue: Catalogue,
    namespace: String,
    world: Arc<World>,
    flavour: Flavour,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Service {
    /// Starts one in a namespace of its own.
    pub(crate) async fn start(world: &Arc<World>, namespace: &str, flavour: Flavour) -> Self {
        let namespace = world.namespace(namespace).await;
        Self::follow(world, namespace, flavour)
    }

    pub(crate) fn follow(world: &Arc<World>, namespace: String, flavour: Flavour) -> Self {
        let metrics = Arc::new(Metrics::default());
        let plugin = Plugin {
            names: vec!["tidegate".to_owned()],
            module: Module::File("/tidegate.wasm".to_owned()),
            vm_id: "tidegate".to_owned(),
            on_crash: OnCrash::Reload,
            reload_backoff: Duration::from_secs(1),
        };
        let fleet = Fleet::new(plugin, Arc::clone(&metrics));
        let catalogue = Catalogue::new(None, None, fleet, Arc::clone(&metrics));
        let around = Surroundings {
            catalogue: catalogue.clone(),
            counts: metrics.kube(),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        start(&world.admin, settings(&namespace, flavour), &around).unwrap();
        Self {
            catalogue,
            namespace,
            world: Arc::clone(world),
            flavour,
            closing: around.closing,
            tasks: around.tasks,
        }
    }

    pub(crate) async fn stop(self) {
        self.closing.cancel();
        self.tasks.close();
        tokio::time::timeout(BOUND, self.tasks.wait())
            .await
            .unwrap();
    }

    /// Istio's objects.
    pub(crate) fn objects(&self) -> Api<DynamicObject> {
        let resource = self.flavour.resource();
        Api::namespaced_with(self.world.admin.clone(), &self.namespace, &resource)
    }

    pub(crate) fn policies(&self) -> Api<BreakerPolicy> {
        self.world.policies(&self.namespace)
    }

    /// Applies a policy as its author would.
    pub(crate) async fn put(&self, name: &str, spec: &Value) {
        let document = json!({
            "apiVersion": "tidegate.dev/v1alpha1", "kind": "BreakerPolicy",
            "metadata": {"name": name}, "spec": spec,
        });
        let params = PatchParams::apply("author");
        let patch = Patch::Apply(&document);
        self.policies().patch(name, &params, &patch).await.unwrap();
    }

    pub(crate) async fn remove(&self, name: &str) {
        let params = DeleteParams::default();
        self.policies().delete(name, &params).await.unwrap();
    }

    /// Somebody else makes an object.
    pub(crate) async fn make(&self, name: &str, spec: &Value) -> DynamicObject {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "extensions.istio.io/v1alpha1", "kind": self.flavour.kind(),
            "metadata": {"name": name}, "spec": spec,
        }))
        .unwrap();
        let params = PostParams::default();
        self.objects().create(&params, &object).await.unwrap()
    }

    /// Somebody else changes an object: server-side apply by force.
    pub(crate) async fn seize(&self, name: &str, spec: &Value) {
        let document = json!({
            "apiVersion": "extensions.istio.io/v1alpha1", "kind": self.flavour.kind(),
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

    /// `True Programmed` and the like; empty while there is none.
    pub(crate) async fn condition(&self, name: &str, kind: &str) -> String {
        let policy = self.policies().get(name).await.unwrap();
        let status = policy.status.unwrap_or_default();
        let condition = status.conditions.iter().find(|c| c.type_ == kind);
        condition
            .map(|c| format!("{} {}", c.status, c.reason))
            .unwrap_or_default()
    }

    pub(crate) async fn message(&self, name: &str, kind: &str) -> String {
        let policy = self.policies().get(name).await.unwrap();
        let status = policy.status.unwrap_or_default();
        let condition = status.conditions.iter().find(|c| c.type_ == kind);
        condition.map(|c| c.message.clone()).unwrap_or_default()
    }

    pub(crate) async fn until(&self, name: &str, kind: &str, is: &str) {
        let what = format!("{name}: {kind} is {is}");
        until(&what, async || self.condition(name, kind).await == is).await;
    }

    /// Writes in this namespace so far to Istio's objects and to the status of policies.
    pub(crate) fn writes(&self) -> (usize, usize) {
        let writes = self.world.cluster.writes();
        let count = |what: &str| {
            let here = writes
                .iter()
                .filter(|write| write.namespace() == self.namespace);
            here.filter(|write| write.what() == what && write.verb != "create")
                .count()
        };
        (
            count(self.flavour.plural()),
            count("breakerpolicies/status"),
        )
    }
}

fn settings(namespace: &str, flavour: Flavour) -> Settings {
    Settings {
        access: Access::Inferred,
        scope: Scope::Namespace(namespace.to_owned()),
        api: ApiChoice::Only(flavour),
        extension: Extension {
            url: "oci://registry.example/tidegate:1".to_owned(),
            sha256: Some("0a".repeat(32)),
            pull_secret: Some("pull".to_owned()),
            fail_strategy: FailStrategy::Reload,
            phase: Phase::Stats,
            priority: 10,
        },
        lease: LeaseSettings {
            name: "tidegate".to_owned(),
            namespace: Some(namespace.to_owned()),
            identity: "one".to_owned(),
            timing: Timing::default(),
        },
        manager: "tidegate".to_owned(),
        recheck: Duration::from_secs(30),
    }
}
