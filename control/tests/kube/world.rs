//! What the cases share: an API server on which the kinds are installed.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use kube::{Client, CustomResourceExt as _};
use serde_json::json;
use tidegate_control::resource::BreakerPolicy;
use tidegate_meshbed::Cluster;
use tidegate_meshbed::definitions::{Kinds, install};

/// The plugin's kinds of Istio; the rest of it is of no interest here.
const PLUGIN_KINDS: [&str; 2] = [
    "trafficextensions.extensions.istio.io",
    "wasmplugins.extensions.istio.io",
];

/// An API server with the kinds, and a client that may do everything.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) admin: Client,
}

impl World {
    /// Starts an API server and installs the kinds.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let cluster = Cluster::start().await?;
        let admin = cluster.client(cluster.admin()).await?;
        install(&admin, Kinds::Tidegate, |_| true).await?;
        install(&admin, Kinds::Istio, |name| PLUGIN_KINDS.contains(&name)).await?;
        Ok(Self { cluster, admin })
    }

    /// A namespace of the case's own.
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

    /// The definition as the API server keeps it.
    pub(crate) async fn definition(&self) -> serde_json::Value {
        let api: Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
            Api::all(self.admin.clone());
        let found = api.get(BreakerPolicy::crd_name()).await.unwrap();
        serde_json::to_value(found).unwrap()
    }
}
