//! The objects of an Istio installation that inject sidecars: the templates, and the webhook.
//!
//! `istioctl manifest generate` writes both. The webhook calls istiod at its address here, by the only name that its
//! certificate and this machine share.

use std::io;
use std::net::SocketAddr;
use std::process::Command;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, PostParams};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cluster::ClusterError;
use crate::place;
use crate::wait::until;

/// The name of both objects.
const NAME: &str = "istio-sidecar-injector";

/// The name in istiod's certificate that does not depend on a cluster.
pub(crate) const HOST: &str = "localhost";

/// Applies the templates, which istiod reads when it starts. Returns the webhook, to be applied once istiod runs.
pub(crate) async fn templates(client: &Client, namespace: &str) -> Result<Webhook, ClusterError> {
    let manifests = manifests()?;
    let map: ConfigMap = of_kind(&manifests, "ConfigMap")?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    maps.create(&PostParams::default(), &map).await?;
    Ok(Webhook(of_kind(
        &manifests,
        "MutatingWebhookConfiguration",
    )?))
}

/// The webhook that calls istiod when a Pod is created.
#[derive(Debug)]
pub(crate) struct Webhook(MutatingWebhookConfiguration);

impl Webhook {
    /// Applies it for an istiod at this address, and waits until istiod has added its root certificate.
    pub(crate) async fn install(
        mut self,
        client: &Client,
        at: SocketAddr,
    ) -> Result<(), ClusterError> {
        for webhook in self.0.webhooks.iter_mut().flatten() {
            webhook.client_config.service = None;
            webhook.client_config.url = Some(format!("https://{HOST}:{}/inject", at.port()));
        }
        let webhooks: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        webhooks.create(&PostParams::default(), &self.0).await?;
        until("istiod's webhook can be believed", async || {
            let found = webhooks.get(NAME).await;
            found.is_ok_and(|found| {
                let mut all = found.webhooks.into_iter().flatten();
                all.all(|webhook| webhook.client_config.ca_bundle.is_some())
            })
        })
        .await;
        Ok(())
    }
}

fn manifests() -> Result<Vec<Value>, ClusterError> {
    let mut command = Command::new(place::binary("istioctl")?);
    let output = command.args(["manifest", "generate"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(said).into());
    }
    serde_saphyr::from_multiple(&text).map_err(|error| io::Error::other(error).into())
}

fn of_kind<K: DeserializeOwned>(manifests: &[Value], kind: &str) -> Result<K, ClusterError> {
    let is = |one: &Value, path: &str, text: &str| {
        let found = one.pointer(path);
        found.and_then(Value::as_str) == Some(text)
    };
    let mut all = manifests.iter();
    let found = all.find(|one| is(one, "/kind", kind) && is(one, "/metadata/name", NAME));
    let missing = || io::Error::other(format!("istioctl writes no {kind} {NAME}"));
    let found = found.ok_or_else(missing)?;
    Ok(serde_json::from_value(found.clone()).map_err(io::Error::other)?)
}
