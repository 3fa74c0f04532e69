//! Kinds that tests install into a cluster: Tidegate's, Istio's, the Gateway API's.

use std::fs;
use std::path::PathBuf;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::conditions::is_crd_established;
use kube::{Client, ResourceExt as _};
use tidegate_testbed::envoy::repository;

use crate::place::{self, Missing};
use crate::wait::until;

/// Why kinds could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// The file that defines them does not exist.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The file could not be read.
    #[error("read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file contains something else.
    #[error("{} holds no definitions", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<serde_saphyr::Error>,
    },
    /// The API server rejects a definition.
    #[error("install {name}")]
    Refused {
        /// Its name.
        name: String,
        /// The server's answer.
        source: Box<kube::Error>,
    },
}

/// The owner of the kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// `BreakerPolicy`, from `manifests/`.
    Tidegate,
    /// Istio's: `TrafficExtension`, `WasmPlugin`, `Sidecar` and so on.
    Istio,
    /// The Gateway API's standard channel.
    GatewayApi,
}

impl Kinds {
    fn path(self) -> Result<PathBuf, Missing> {
        match self {
            Self::Tidegate => Ok(repository().join("manifests/crd.yaml")),
            Self::Istio => place::file("istio.yaml"),
            Self::GatewayApi => place::file("gateway-api.yaml"),
        }
    }

    /// Reads the definitions.
    ///
    /// # Errors
    /// When the file is missing or holds something else.
    pub fn read(self) -> Result<Vec<CustomResourceDefinition>, DefinitionError> {
        let path = self.path()?;
        let text = fs::read_to_string(&path).map_err(|source| DefinitionError::Io {
            path: path.clone(),
            source,
        })?;
        let documents: Vec<serde_json::Value> =
            serde_saphyr::from_multiple(&text).map_err(|source| DefinitionError::Document {
                path,
                source: Box::new(source),
            })?;
        let definitions = documents.into_iter();
        // Istio's and the Gateway API's files also contain other kinds, which are skipped.
        Ok(definitions
            .filter_map(|document| serde_json::from_value(document).ok())
            .collect())
    }
}

/// Installs those of `kinds` that satisfy `wanted`, and waits until they are served.
///
/// # Errors
/// When one cannot be read, or the API server refuses it.
///
/// # Panics
/// When one is not served in time.
pub async fn install(
    client: &Client,
    kinds: Kinds,
    wanted: impl Fn(&str) -> bool,
) -> Result<(), DefinitionError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut names = Vec::new();
    for definition in kinds
        .read()?
        .into_iter()
        .filter(|one| wanted(&one.name_any()))
    {
        let name = definition.name_any();
        let created = api.create(&PostParams::default(), &definition).await;
        created.map_err(|source| DefinitionError::Refused {
            name: name.clone(),
            source: Box::new(source),
        })?;
        names.push(name);
    }
    for name in names {
        until(&format!("{name} is served"), async || {
            let found = api.get(&name).await.ok();
            kube::runtime::wait::Condition::matches_object(&is_crd_established(), found.as_ref())
        })
        .await;
    }
    Ok(())
}

/// Removes a definition, and with it all objects of the kind.
///
/// # Errors
/// When the API server refuses.
pub async fn remove(client: &Client, name: &str) -> Result<(), kube::Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    api.delete(name, &DeleteParams::default()).await.map(drop)
}
