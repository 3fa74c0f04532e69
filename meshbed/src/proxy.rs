//! A plain Envoy that istiod configures: its node, and the address of its control plane.
//!
//! There is no agent between the two, so Envoy gets only what istiod sends: discovery is plaintext on loopback, and Envoy
//! reads modules from their URLs.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use serde_json::{Value, json};
use tidegate_testbed::envoy::{Envoy, EnvoyError};

use crate::cluster::KubeCluster;
use crate::istiod::Istiod;

/// The role of a proxy in the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyRole {
    /// Beside a workload.
    Sidecar,
    /// A gateway at the edge.
    Router,
    /// A waypoint of ambient mode.
    Waypoint,
}

impl ProxyRole {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sidecar => "sidecar",
            Self::Router => "router",
            Self::Waypoint => "waypoint",
        }
    }
}

/// A proxy as istiod should see it.
#[derive(Debug, Clone)]
pub struct MeshNode {
    /// Its role.
    pub role: ProxyRole,
    /// Name of its Pod.
    pub name: String,
    /// Namespace of its Pod.
    pub namespace: String,
    /// Labels of its Pod, by which policies and gateways find it.
    pub labels: BTreeMap<String, String>,
}

impl MeshNode {
    /// A proxy with one label `app`.
    #[must_use]
    pub fn new(role: ProxyRole, namespace: &str, app: &str) -> Self {
        Self {
            role,
            name: format!("{app}-0"),
            namespace: namespace.to_owned(),
            labels: BTreeMap::from([("app".to_owned(), app.to_owned())]),
        }
    }

    /// Its Pod. No kubelet is needed: istiod takes the labels from the object.
    #[must_use]
    pub fn pod(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": self.name, "namespace": self.namespace, "labels": self.labels},
            "spec": {"containers": [{"name": "proxy", "image": "none"}]},
        })
    }

    /// The id by which istiod knows it.
    #[must_use]
    pub fn id(&self) -> String {
        let Self {
            name, namespace, ..
        } = self;
        let role = self.role.name();
        format!("{role}~127.0.0.1~{name}.{namespace}~{namespace}.svc.cluster.local")
    }

    /// Starts an Envoy that gets everything from istiod, and waits until it is ready and has a listener.
    ///
    /// Its folder is in that of the cluster, and its log stays there after it has ended.
    ///
    /// # Errors
    /// If it does not become ready, or gets no listener.
    pub async fn start(
        &self,
        cluster: &KubeCluster,
        istiod: &Istiod,
    ) -> Result<MeshProxy, EnvoyError> {
        let builder = Envoy::builder().folder_in(cluster.folder());
        let document = self.bootstrap(istiod.xds());
        let log = format!("envoy-{}.{}.log", self.name, self.namespace);
        Ok(MeshProxy {
            envoy: builder.document(document).start().await?,
            log: cluster.folder().join(log),
        })
    }

    fn bootstrap(&self, xds: SocketAddr) -> Value {
        let by_ads =
            json!({"ads": {}, "initial_fetch_timeout": "0s", "resource_api_version": "V3"});
        let address = |address: SocketAddr| {
            json!({"socket_address": {
                "address": address.ip().to_string(), "port_value": address.port(),
            }})
        };
        json!({
            "node": {
                "id": self.id(),
                "cluster": format!("{}.{}", self.name, self.namespace),
                "metadata": {
                    "NAME": self.name, "NAMESPACE": self.namespace, "LABELS": self.labels,
                    "CLUSTER_ID": "Kubernetes", "ISTIO_VERSION": "1.31.0",
                    "INTERCEPTION_MODE": "NONE", "INSTANCE_IPS": "127.0.0.1",
                },
            },
            "admin": {"address": address(([127, 0, 0, 1], 0).into())},
            "dynamic_resources": {
                "lds_config": by_ads, "cds_config": by_ads,
                "ads_config": {
                    "api_type": "GRPC", "transport_api_version": "V3",
                    "set_node_on_first_message_only": true,
                    "grpc_services": [{"envoy_grpc": {"cluster_name": "xds-grpc"}}],
                },
            },
            "static_resources": {"clusters": [{
                "name": "xds-grpc", "type": "STATIC", "connect_timeout": "1s",
                "typed_extension_protocol_options": {
                    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                        "explicit_http_config": {"http2_protocol_options": {}},
                    },
                },
                "load_assignment": {"cluster_name": "xds-grpc", "endpoints": [{"lb_endpoints": [
                    {"endpoint": {"address": address(xds)}},
                ]}]},
            }]},
        })
    }
}

/// A running Envoy of the mesh; dropping this kills it.
#[derive(Debug)]
pub struct MeshProxy {
    envoy: Envoy,
    log: PathBuf,
}

impl Deref for MeshProxy {
    type Target = Envoy;

    fn deref(&self) -> &Envoy {
        &self.envoy
    }
}

impl DerefMut for MeshProxy {
    fn deref_mut(&mut self) -> &mut Envoy {
        &mut self.envoy
    }
}

impl Drop for MeshProxy {
    fn drop(&mut self) {
        // The log helps if something fails; without it, the failure still shows.
        let _ = fs::write(&self.log, self.envoy.log());
    }
}
