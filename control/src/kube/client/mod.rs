//! The client of the API server.

pub(super) mod backoff;
mod connectivity;
pub(super) mod error;

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::util::MapResultLayer;

use super::settings::ClusterAccess;
use connectivity::Connectivity;

/// Why a client cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No client configuration was found.
    #[error("find the API server: {0}")]
    Access(String),
    /// The configuration cannot be used.
    #[error("connect to the API server: {0}")]
    Client(#[from] Box<kube::Error>),
}

/// A client with this configuration. It logs when the API server becomes unreachable, and when it answers again.
///
/// # Errors
/// When no usable configuration is found. The API server itself is not contacted.
pub async fn client(access: &ClusterAccess) -> Result<Client, ConnectError> {
    let config = match access {
        ClusterAccess::Inferred => Config::infer().await.map_err(|e| e.to_string()),
        ClusterAccess::Kubeconfig(path) => match Kubeconfig::read_from(path) {
            Ok(file) => Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        },
    };
    let config = config.map_err(ConnectError::Access)?;
    let builder = ClientBuilder::try_from(config).map_err(Box::new)?;
    let observer = MapResultLayer::new(Connectivity::default().observer());
    Ok(builder.with_layer(&observer).build())
}
