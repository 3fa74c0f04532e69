//! Sidecars as Istio runs them: pilot-agent gets their certificates and fetches their module.

use std::net::{Ipv4Addr, SocketAddr};

use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use serde_json::{Value, json};
use tidegate_meshbed::agent::{Agent, InjectedSidecar, Workload};
use tidegate_meshbed::{Image, MeshNode, ProxyRole, ports, until};
use tidegate_testbed::upstream::Upstream;

use crate::mesh::{ConformanceMesh, account};

/// The filter that an agent configures instead of a module that it cannot fetch, for `FAIL_CLOSE`.
pub(crate) const DENIES: &str = "wasm-default-deny";

/// The same for `FAIL_OPEN`.
pub(crate) const ALLOWS: &str = "wasm-default-allow";

/// The status with which a proxy answers every request if its agent lets no request pass.
pub(crate) const REFUSED: u16 = 403;

/// A sidecar in front of its workload, with an agent.
pub(crate) struct Guarded {
    pub(crate) agent: Agent,
    /// Where requests to the workload arrive.
    pub(crate) address: SocketAddr,
}

/// The workload of a sidecar: an app in a namespace, with a service account of the same name and an address of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct App<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// The last number of its address. No client connects to it.
    pub(crate) number: u8,
}

impl Guarded {
    /// Waits until the filter with this name replaces the module.
    pub(crate) async fn stands_in(&self, name: &str) {
        until(&format!("{name} replaces the module"), async || {
            let filters = "/config_dump?resource=ecds_filters";
            let found = self.agent.admin().text(filters).await;
            found.is_ok_and(|text| text.contains(name))
        })
        .await;
    }
}

impl App<'_> {
    /// Starts its sidecar with these listeners, which a `Sidecar` object sets.
    pub(crate) async fn start(
        &self,
        mesh: &ConformanceMesh,
        registry: SocketAddr,
        listeners: &Value,
    ) -> Agent {
        let Self {
            namespace, name, ..
        } = self;
        account(mesh, namespace, name).await;
        let node = MeshNode::new(ProxyRole::Sidecar, namespace, name);
        let mut pod = node.pod();
        pod["spec"]["serviceAccountName"] = json!(name);
        mesh.apply(namespace, &pod).await;
        let mut sidecar = json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Sidecar", "metadata": {"name": name},
            "spec": listeners,
        });
        sidecar["spec"]["workloadSelector"] = json!({"labels": node.labels});
        mesh.apply(namespace, &sidecar).await;
        let pods: Api<Pod> = Api::namespaced(mesh.world.admin.clone(), namespace);
        let injected = InjectedSidecar::of(&pods.get(&node.name).await.unwrap());
        let workload = Workload {
            account: name,
            address: Ipv4Addr::new(192, 0, 2, self.number),
            registry: Some(registry),
            injected: injected.as_ref(),
        };
        let agent = Agent::start(&mesh.world.cluster, &mesh.istiod, &node, workload);
        agent.await.unwrap()
    }

    /// Starts its sidecar in front of `workload`.
    pub(crate) async fn guard(
        &self,
        mesh: &ConformanceMesh,
        registry: SocketAddr,
        workload: &Upstream,
    ) -> Guarded {
        let port = ports::free();
        let listeners = json!({
            "ingress": [{
                "port": {"number": port, "name": "http", "protocol": "HTTP"},
                "bind": "127.0.0.1", "captureMode": "NONE",
                "defaultEndpoint": workload.addr().to_string(),
            }],
            "egress": [{"hosts": ["~/*"]}],
        });
        let agent = self.start(mesh, registry, &listeners).await;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        until("its listener is there", async || {
            let found = agent.admin().listeners().await.unwrap();
            found.contains(&address)
        })
        .await;
        Guarded { agent, address }
    }

    /// Applies the plugin object that runs the module of an image in it.
    pub(crate) async fn plug_in(
        &self,
        mesh: &ConformanceMesh,
        image: &Image,
        strategy: &str,
        config: &Value,
    ) {
        let plugin = self.plugin(image, strategy, config);
        mesh.apply(self.namespace, &plugin).await;
    }

    /// That plugin object.
    pub(crate) fn plugin(&self, image: &Image, strategy: &str, config: &Value) -> Value {
        let mut config = config.clone();
        config["slo"] = json!({"latency": {"quantile": 0.99, "target": "250ms"}});
        json!({
            "apiVersion": "extensions.istio.io/v1alpha1", "kind": "TrafficExtension",
            "metadata": {"name": self.name},
            "spec": {
                "selector": {"matchLabels": {"app": self.name}},
                "match": [{"mode": "SERVER"}],
                "wasm": {
                    "url": image.url, "sha256": image.sha256, "failStrategy": strategy,
                    "pluginName": "tidegate", "pluginConfig": config,
                },
            },
        })
    }
}
