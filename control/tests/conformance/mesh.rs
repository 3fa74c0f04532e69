//! What the cases share: a cluster with Istio, and the control service that follows its policies.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};
use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::definitions::{Kinds, install};
use tidegate_meshbed::{
    Istiod, MeshMode, MeshNode, MeshProxy, ProxyRole, ROOT_NAMESPACE, Replica, User, ports, until,
};
use tidegate_testbed::client::Caller;
use tidegate_testbed::envoy::{Admin, Envoy, release_module};
use tidegate_testbed::upstream::Upstream;

use crate::policies::spec;
use crate::service::{self, Rights};
use crate::world::TestCluster;

/// The namespace of the service and its lease.
pub(crate) const HOME: &str = "tidegate-system";

/// All servers, on loopback, in the order in which they end.
pub(crate) struct ConformanceMesh {
    pub(crate) replica: Replica,
    /// The identity of the replica at the API server.
    pub(crate) user: User,
    pub(crate) istiod: Istiod,
    pub(crate) world: TestCluster,
}

impl ConformanceMesh {
    /// Starts the servers one after the other.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Self::with_istio_kinds(|_| true).await
    }

    /// The same, with an istiod that also serves waypoints.
    pub(crate) async fn ambient() -> anyhow::Result<Self> {
        Self::with(|_| true, MeshMode::Ambient).await
    }

    /// The same, with an istiod that injects sidecars into Pods and knows the labels of the metrics.
    pub(crate) async fn injecting() -> anyhow::Result<Self> {
        Self::with(|_| true, MeshMode::Injected).await
    }

    /// The same, with only some of Istio's kinds.
    pub(crate) async fn with_istio_kinds(wanted: impl Fn(&str) -> bool) -> anyhow::Result<Self> {
        Self::with(wanted, MeshMode::Sidecars).await
    }

    async fn with(wanted: impl Fn(&str) -> bool, mode: MeshMode) -> anyhow::Result<Self> {
        let module = release_module();
        anyhow::ensure!(
            module.is_file(),
            "{} is not there: make module",
            module.display()
        );
        let world = TestCluster::with_istio_kinds(wanted).await?;
        install(&world.admin, Kinds::GatewayApi, |_| true).await?;
        world.namespace(ROOT_NAMESPACE).await;
        world.namespace(HOME).await;
        // Envoys without an agent have no certificates.
        let plaintext = json!({
            "apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication",
            "metadata": {"name": "default"}, "spec": {"mtls": {"mode": "DISABLE"}},
        });
        apply(&world.admin, ROOT_NAMESPACE, &plaintext).await;
        let istiod = Istiod::start(&world.cluster, mode).await?;
        let user = service::account(&world, HOME, "first", Rights::Cluster).await;
        let replica = start_replica(&world, &user).await;
        Ok(Self {
            replica,
            user,
            istiod,
            world,
        })
    }

    /// Applies an object, as its author would.
    pub(crate) async fn apply(&self, namespace: &str, document: &Value) {
        apply(&self.world.admin, namespace, document).await;
    }

    /// Applies a policy with the name `app`, for the proxies whose Pods have the label `app`.
    pub(crate) async fn apply_policy(&self, namespace: &str, app: &str, more: &Value) {
        let mut spec = spec(more);
        spec["selector"] = json!({"matchLabels": {"app": app}});
        self.world.apply(namespace, app, &spec).await;
    }

    /// Registers an upstream as `host`, port 80.
    pub(crate) async fn register(&self, namespace: &str, host: &str, upstream: &Upstream) {
        self.register_at(namespace, host, 80, upstream).await;
    }

    /// The same, with another port of the service.
    pub(crate) async fn register_at(
        &self,
        namespace: &str,
        host: &str,
        port: u16,
        upstream: &Upstream,
    ) {
        let entry = json!({
            "apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",
            "metadata": {"name": host.replace('.', "-")},
            "spec": {
                "hosts": [host], "location": "MESH_EXTERNAL", "resolution": "STATIC",
                "ports": [{
                    "number": port, "name": "http", "protocol": "HTTP",
                    "targetPort": upstream.addr().port(),
                }],
                "endpoints": [{"address": "127.0.0.1"}],
            },
        });
        self.apply(namespace, &entry).await;
    }

    /// Starts a gateway that istiod configures. Requests reach `host` through it.
    pub(crate) async fn gateway(&self, namespace: &str, app: &str, host: &str) -> MeshProxy {
        let node = MeshNode::new(ProxyRole::Router, namespace, app);
        self.apply(namespace, &node.pod()).await;
        self.apply(namespace, &json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": {"name": app},
            "spec": {
                "selector": node.labels,
                "servers": [{
                    "port": {"number": ports::free(), "name": "http", "protocol": "HTTP"},
                    "bind": "127.0.0.1", "hosts": ["*"],
                }],
            },
        }))
        .await;
        self.apply(namespace, &json!({
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": app},
            "spec": {
                "hosts": ["*"], "gateways": [app],
                "http": [{"route": [{"destination": {"host": host, "port": {"number": 80}}}]}],
            },
        }))
        .await;
        let proxy = self.proxy(&node).await;
        let caller = Caller::http1(proxy.addr());
        until("the gateway leads to the upstream", async || {
            caller.get("/").await.is_ok_and(|reply| reply.status == 200)
        })
        .await;
        proxy
    }

    /// Lets a gateway serve one more host, for requests that name it.
    pub(crate) async fn lead_to(&self, namespace: &str, gateway: &str, host: &str) {
        let route = json!({
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
            "metadata": {"name": host.replace('.', "-")},
            "spec": {
                "hosts": [host], "gateways": [gateway],
                "http": [{"route": [{"destination": {"host": host, "port": {"number": 80}}}]}],
            },
        });
        self.apply(namespace, &route).await;
    }

    /// Starts an Envoy for a node whose Pod exists.
    pub(crate) async fn proxy(&self, node: &MeshNode) -> MeshProxy {
        node.start(&self.world.cluster, &self.istiod).await.unwrap()
    }

    /// Starts istiod again after it was killed.
    pub(crate) async fn restart_istiod(&mut self) {
        self.istiod.restart(&self.world.cluster).await.unwrap();
    }

    /// Starts another replica of the service, with its own account.
    pub(crate) async fn another_replica(&self, name: &str) -> Replica {
        let user = service::account(&self.world, HOME, name, Rights::Cluster).await;
        start_replica(&self.world, &user).await
    }

    /// The names of the plugin objects that carry policies to istiod.
    pub(crate) async fn plugins(&self, namespace: &str, api: IstioApi) -> Vec<String> {
        let objects = self
            .world
            .plugins(namespace, api)
            .list(&Default::default())
            .await
            .unwrap();
        objects
            .into_iter()
            .filter_map(|object| object.metadata.name)
            .collect()
    }
}

async fn start_replica(world: &TestCluster, user: &User) -> Replica {
    let url = format!("file://{}", release_module().display());
    service::run(world, user, HOME, &["--extension-url", &url]).await
}

async fn apply(admin: &Client, namespace: &str, document: &Value) {
    let text = |key: &str| document[key].as_str().unwrap();
    let version = text("apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    let api: Api<DynamicObject> = Api::namespaced_with(admin.clone(), namespace, &kind);
    let name = document["metadata"]["name"].as_str().unwrap();
    let how = PatchParams::apply("operator").force();
    api.patch(name, &how, &Patch::Apply(document))
        .await
        .unwrap();
}

/// Makes a service account, which is an identity in the mesh.
pub(crate) async fn account(mesh: &ConformanceMesh, namespace: &str, name: &str) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    mesh.apply(namespace, &account).await;
}

/// Waits until an Envoy runs the filter.
pub(crate) async fn is_guarded(envoy: &Envoy) {
    runs_the_filter(envoy.admin()).await;
}

/// The same, with an admin interface.
pub(crate) async fn runs_the_filter(admin: &Admin) {
    until("the filter runs", async || {
        admin
            .tidegate()
            .await
            .is_ok_and(|metrics| !metrics.is_empty())
    })
    .await;
}
