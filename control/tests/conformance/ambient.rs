//! A namespace in ambient mode: services behind one waypoint, and workloads that call them as ztunnel would.
//!
//! Nothing in these tests creates the pod of the waypoint, so the tests apply what the controllers of Istio and
//! Kubernetes would create. The waypoint itself runs as in Istio, with agent, certificates and istiod's configuration.
//! Only the Envoy differs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service as KubeService};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tidegate_meshbed::agent::{Agent, Workload, identity};
use tidegate_meshbed::{MeshNode, ProxyRole};
use tidegate_testbed::client::{Caller, Hbone};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::door::{HELD, MeshDoor};
use crate::mesh::{ConformanceMesh, account, runs_the_filter};
use crate::policies::spec;

/// The Gateway that is the waypoint, and its service account.
const WAYPOINT: &str = "waypoint";

/// The port at which every waypoint of Istio accepts tunnels.
const HBONE_PORT: u16 = 15_008;

/// The address of the waypoint's pod, from the range for documentation. istiod finds the pod's service by it.
const POD: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);

/// An upstream with 4 slots of 20 ms answers 200 requests a second.
pub(crate) const CAPACITY: u32 = 200;
const SLOTS: u32 = 4;
const SERVICE: Duration = Duration::from_millis(20);

/// The namespace, with a running waypoint.
pub(crate) struct Ambient {
    pub(crate) mesh: ConformanceMesh,
    pub(crate) services: Vec<AmbientService>,
    pub(crate) waypoint: Agent,
    namespace: String,
}

/// A service behind the waypoint.
pub(crate) struct AmbientService {
    /// Envoy's name for it in the waypoint.
    pub(crate) cluster: String,
    pub(crate) upstream: Upstream,
    address: SocketAddr,
}

impl Ambient {
    /// Starts a mesh with `count` services in a namespace: `svc-0`, `svc-1` and so on.
    pub(crate) async fn start(namespace: &str, count: usize) -> Self {
        let mesh = ConformanceMesh::ambient().await.unwrap();
        let namespace = mesh.world.namespace(namespace).await;
        let node = waypoint_objects(&mesh, &namespace).await;
        let mut services = Vec::new();
        for number in 0..count {
            services.push(AmbientService::start(&mesh, &namespace, &format!("svc-{number}")).await);
        }
        let workload = Workload {
            account: WAYPOINT,
            address: POD,
            registry: None,
            injected: None,
        };
        let waypoint = Agent::start(&mesh.world.cluster, &mesh.istiod, &node, workload);
        Self {
            waypoint: waypoint.await.unwrap(),
            mesh,
            services,
            namespace,
        }
    }

    /// Applies the policy of the waypoint, and waits until it runs.
    pub(crate) async fn apply_policy(&self, more: &Value) {
        self.apply_to(WAYPOINT, gateway(), more).await;
        runs_the_filter(self.waypoint.admin()).await;
    }

    /// Applies the policy of one service.
    pub(crate) async fn apply_service_policy(&self, service: &str, more: &Value) {
        let target = json!({"group": "", "kind": "Service", "name": service});
        self.apply_to(service, target, more).await;
    }

    async fn apply_to(&self, policy: &str, target: Value, more: &Value) {
        let mut spec = spec(more);
        spec.as_object_mut().unwrap().remove("selector");
        spec["targetRefs"] = json!([target]);
        let world = &self.mesh.world;
        world.apply(&self.namespace, policy, &spec).await;
    }

    /// Deletes the policy of the waypoint.
    pub(crate) async fn delete_policy(&self) {
        let policies = self.mesh.world.policies(&self.namespace);
        let params = DeleteParams::default();
        policies.delete(WAYPOINT, &params).await.unwrap();
    }

    /// Makes a service account, and returns the path of its requests to the waypoint.
    pub(crate) async fn way(&self, name: &str) -> Hbone {
        account(&self.mesh, &self.namespace, name).await;
        let ConformanceMesh { world, istiod, .. } = &self.mesh;
        let identity = identity(&world.cluster, istiod, &self.namespace, name);
        let expected = format!("spiffe://cluster.local/ns/{}/sa/{WAYPOINT}", self.namespace);
        let waypoint = SocketAddr::from(([127, 0, 0, 1], HBONE_PORT));
        Hbone::new(waypoint, &identity.await.unwrap(), &expected).unwrap()
    }
}

impl AmbientService {
    async fn start(mesh: &ConformanceMesh, namespace: &str, name: &str) -> Self {
        let upstream = Upstream::builder(name)
            .constant(SLOTS, SERVICE)
            .script(|request| (request.path == HELD).then_some(Script::Hang));
        let upstream = upstream.start().await.unwrap();
        let labels = json!({"app": name});
        for document in [
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": name, "labels": {"istio.io/use-waypoint": WAYPOINT}},
                "spec": {
                    "selector": labels,
                    "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
                },
            }),
            // Instead of a pod, because a pod cannot use a port of loopback.
            json!({
                "apiVersion": "networking.istio.io/v1", "kind": "WorkloadEntry",
                "metadata": {"name": name, "labels": labels},
                "spec": {
                    "address": "127.0.0.1", "labels": labels,
                    "ports": {"http": upstream.addr().port()},
                },
            }),
        ] {
            mesh.apply(namespace, &document).await;
        }
        let api: Api<KubeService> = Api::namespaced(mesh.world.admin.clone(), namespace);
        let address: IpAddr = {
            let spec = api.get(name).await.unwrap().spec.unwrap();
            spec.cluster_ip.unwrap().parse().unwrap()
        };
        Self {
            cluster: format!("inbound-vip|80|http|{name}.{namespace}.svc.cluster.local"),
            upstream,
            address: SocketAddr::new(address, 80),
        }
    }

    /// The callers that use `way`.
    pub(crate) fn caller(&self, way: &Hbone) -> Caller {
        Caller::through(way, self.address)
    }

    /// The entry of the waypoint for callers that use `way`.
    pub(crate) fn door(&self, way: &Hbone) -> MeshDoor {
        MeshDoor::by(self.caller(way))
    }
}

fn gateway() -> Value {
    json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": WAYPOINT})
}

/// Applies what the controllers of Istio and Kubernetes create for a waypoint.
async fn waypoint_objects(mesh: &ConformanceMesh, namespace: &str) -> MeshNode {
    account(mesh, namespace, WAYPOINT).await;
    let mut node = MeshNode::new(ProxyRole::Waypoint, namespace, WAYPOINT);
    node.labels.extend(
        [
            ("gateway.networking.k8s.io/gateway-name", WAYPOINT),
            ("gateway.istio.io/managed", "istio.io-mesh-controller"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    for document in [
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": {"name": WAYPOINT, "labels": {"istio.io/waypoint-for": "service"}},
            "spec": {
                "gatewayClassName": "istio-waypoint",
                "listeners": [{"name": "mesh", "port": HBONE_PORT, "protocol": "HBONE"}],
            },
        }),
        node.pod(),
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": WAYPOINT, "labels": node.labels},
            "spec": {
                "selector": node.labels,
                "ports": [{"name": "hbone", "port": HBONE_PORT, "appProtocol": "hbone"}],
            },
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": WAYPOINT, "labels": {"kubernetes.io/service-name": WAYPOINT}},
            "ports": [{"name": "hbone", "port": HBONE_PORT, "protocol": "TCP"}],
            "endpoints": [{
                "addresses": [POD.to_string()], "conditions": {"ready": true},
                "targetRef": {"kind": "Pod", "name": node.name, "namespace": namespace},
            }],
        }),
        without_istios_filters(),
    ] {
        mesh.apply(namespace, &document).await;
    }
    let pods: Api<Pod> = Api::namespaced(mesh.world.admin.clone(), namespace);
    let status = json!({"status": {
        "phase": "Running", "podIP": POD.to_string(), "podIPs": [{"ip": POD.to_string()}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    let (params, patch) = (PatchParams::default(), Patch::Merge(&status));
    pods.patch_status(&node.name, &params, &patch)
        .await
        .unwrap();
    node
}

/// Removes the filters that identify peers from the waypoint's listeners, because only Istio's Envoy has them.
fn without_istios_filters() -> Value {
    let remove = |name: &str| {
        json!({
            "applyTo": "HTTP_FILTER",
            "match": {"listener": {"filterChain": {"filter": {
                "name": "envoy.filters.network.http_connection_manager",
                "subFilter": {"name": name},
            }}}},
            "patch": {"operation": "REMOVE"},
        })
    };
    json!({
        "apiVersion": "networking.istio.io/v1alpha3", "kind": "EnvoyFilter",
        "metadata": {"name": "plain-envoy"},
        "spec": {
            "targetRefs": [gateway()],
            "configPatches": [
                remove("waypoint_downstream_peer_metadata"),
                remove("waypoint_upstream_peer_metadata"),
            ],
        },
    })
}
