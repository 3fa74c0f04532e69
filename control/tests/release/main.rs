//! A release in a cluster: `make release-kube-test`.
//!
//! The test uses only files of `dist/release`. Helm installs the chart's archive on a real API server. The program from
//! the install script runs with the account, the rights and the settings that the chart creates. There is no kubelet,
//! so the test starts the program, which comes from [`installed`].

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first unexpected result"
)]

#[path = "../kube/incident_page.rs"]
#[allow(dead_code, reason = "the tests of the service use the rest")]
mod incident_page;
mod installed;
mod versions;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tidegate_control::kube::istio::IstioApi;
use tidegate_control::resource::BreakerPolicy;
use tidegate_meshbed::definitions::{Kinds, install};
use tidegate_meshbed::{KubeCluster, Replica, User, cases, suite, until};

use installed::{NAMESPACE, Release};

struct ReleaseCluster {
    cluster: KubeCluster,
    admin: Client,
    release: Release,
}

impl ReleaseCluster {
    async fn start() -> anyhow::Result<Self> {
        let cluster = KubeCluster::start().await?;
        let admin = cluster.client(cluster.admin()).await?;
        // Before the installation, the cluster has only a mesh.
        install(&admin, Kinds::Istio, |name| {
            name == "trafficextensions.extensions.istio.io"
        })
        .await?;
        let release = Release::unpack(cluster.kubeconfig_file(cluster.admin())?)?;
        Ok(Self {
            cluster,
            admin,
            release,
        })
    }

    /// The settings that the chart gives its container.
    async fn container(&self) -> Value {
        let api: Api<k8s_openapi::api::apps::v1::Deployment> =
            Api::namespaced(self.admin.clone(), NAMESPACE);
        let deployment = serde_json::to_value(api.get("tidegate").await.unwrap()).unwrap();
        deployment["spec"]["template"]["spec"]["containers"][0].clone()
    }

    /// The account that the chart made, with a token as a kubelet would mount it.
    async fn account(&self) -> User {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let answer = accounts
            .create_token_request("tidegate", &PostParams::default(), &TokenRequest::default())
            .await
            .unwrap();
        let name = format!("system:serviceaccount:{NAMESPACE}:tidegate");
        User::with_token(&name, &answer.status.unwrap().token)
    }
}

fn main() -> ExitCode {
    suite::play(
        ReleaseCluster::start,
        cases![the_chart_of_a_release_installs_a_service_that_programs_policies_and_goes_again],
    )
}

fn setting(container: &Value, name: &str) -> String {
    let entries = container["env"].as_array().unwrap();
    let found = entries.iter().find(|entry| entry["name"] == name);
    let value = &found.unwrap_or_else(|| panic!("the chart sets no {name}: {container}"))["value"];
    value.as_str().unwrap().to_owned()
}

/// All settings of the program that the chart gives its container.
fn settings(container: &Value) -> BTreeMap<String, String> {
    let entries = container["env"].as_array().unwrap();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    entries
        .iter()
        .map(|entry| (text(entry, "name"), text(entry, "value")))
        .filter(|(name, _)| name.starts_with("TIDEGATE_"))
        .collect()
}

async fn the_chart_of_a_release_installs_a_service_that_programs_policies_and_goes_again(
    world: Arc<ReleaseCluster>,
) {
    let release = &world.release;
    let chart = release.chart();
    let chart = chart.to_str().unwrap();
    release.helm(&["install", "tidegate", chart, "--create-namespace"]);

    let container = world.container().await;
    let image = container["image"].as_str().unwrap();
    assert!(
        image.ends_with(&format!("/control@{}", release.digest("control"))),
        "the image is named by the digest of the release: {image}"
    );
    let url = setting(&container, "TIDEGATE_EXTENSION_URL");
    let sha256 = setting(&container, "TIDEGATE_EXTENSION_SHA256");
    assert_eq!(format!("sha256:{sha256}"), release.digest("filter"));

    let user = world.account().await;
    let service = Replica::of(release.program())
        .environment(settings(&container))
        .start(&world.cluster, &user, NAMESPACE)
        .await
        .unwrap();
    until("the installed service leads", async || {
        service.leads().await
    })
    .await;

    let policies: Api<BreakerPolicy> = Api::namespaced(world.admin.clone(), NAMESPACE);
    let policy = json!({
        "apiVersion": "tidegate.dev/v1alpha1", "kind": "BreakerPolicy", "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "slo": {"latency": {"quantile": 0.99, "target": "250ms"}},
        },
    });
    let how = PatchParams::apply("author");
    policies
        .patch("web", &how, &Patch::Apply(&policy))
        .await
        .unwrap();
    // This needs the rights from the chart, and the admission policy from the chart must allow it.
    let plugins: Api<DynamicObject> = Api::namespaced_with(
        world.admin.clone(),
        NAMESPACE,
        &IstioApi::TrafficExtension.resource(),
    );
    until("the policy is in Istio's object", async || {
        plugins.get_opt("tidegate-web").await.unwrap().is_some()
    })
    .await;
    let plugin = plugins.get("tidegate-web").await.unwrap();
    assert_eq!(plugin.data["spec"]["wasm"]["url"], json!(url));
    assert_eq!(plugin.data["spec"]["wasm"]["sha256"], json!(sha256));

    release.helm(&["upgrade", "tidegate", chart]);
    assert_eq!(
        world.container().await,
        container,
        "an upgrade to the same release changes nothing"
    );
    the_incident_page_opens_all_policies(&world).await;
    service.stop();
    versions::the_api_server_takes_the_versions_of_the_chart_only(&world).await;
    release.helm(&["uninstall", "tidegate"]);
    assert!(
        policies.get_opt("web").await.unwrap().is_some(),
        "the definition and the policies stay"
    );
}

/// An installation in which everything answers 403, and the command that makes the way out last.
async fn the_incident_page_opens_all_policies(world: &ReleaseCluster) {
    const STRATEGY: &str = "TIDEGATE_EXTENSION_FAIL_STRATEGY";
    const PRIORITY: &str = "TIDEGATE_EXTENSION_PRIORITY";
    let release = &world.release;
    let chart = release.chart();
    let upgrade = ["upgrade", "tidegate", chart.to_str().unwrap()];
    let chosen = [
        "--set",
        "module.failStrategy=reload",
        "--set",
        "module.priority=7",
    ];
    release.helm(&[&upgrade[..], &chosen].concat());
    let before = world.container().await;
    assert_eq!(setting(&before, STRATEGY), "reload");

    let options = incident_page::upgrade_options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    release.helm(&[&upgrade[..], &options].concat());

    let after = world.container().await;
    assert_eq!(setting(&after, STRATEGY), "open");
    assert_eq!(setting(&before, PRIORITY), "7");
    assert_eq!(setting(&after, PRIORITY), "7", "what was chosen stays");
}
