//! Case 4, second half: the module cannot be fetched.
//!
//! The agent then configures a filter of its own instead of the module. It lets all requests pass or none, as the
//! `failStrategy` of the plugin object says. The agent also does this in a running proxy, which then loses its module.
//! The agent tries again only when the plugin object changes.

use std::sync::Arc;

use serde_json::json;
use tidegate_meshbed::{Image, ImageRegistry, until};

use crate::agents::{ALLOWS, App, DENIES, REFUSED};
use crate::door::{self, MeshDoor, one_at_a_time};
use crate::load::SHED;
use crate::mesh::{ConformanceMesh, runs_the_filter};

pub(crate) async fn without_its_module_a_proxy_lets_all_requests_pass_or_none(
    mesh: Arc<ConformanceMesh>,
) {
    let namespace = mesh.world.namespace("missing").await;
    let registry = ImageRegistry::start(mesh.world.cluster.folder())
        .await
        .unwrap();
    let image = registry.push().unwrap();
    let workload = door::upstream("api").await;
    let app = App {
        namespace: &namespace,
        name: "api",
        number: 31,
    };
    let api = app.guard(&mesh, registry.address(), &workload).await;
    let door = MeshDoor::at(api.address);
    door.answers(200).await;
    let config = one_at_a_time(SHED);
    let wrong = Image {
        sha256: "0".repeat(64),
        ..image.clone()
    };
    let missing = Image {
        url: format!("{}-later", image.url),
        sha256: String::new(),
    };

    // First for a proxy that starts, then for a proxy that has run the module.
    for round in 0..2 {
        for (image, strategy, status, name) in [
            (&wrong, "FAIL_CLOSE", REFUSED, DENIES),
            (&wrong, "FAIL_OPEN", 200, ALLOWS),
            (&missing, "FAIL_RELOAD", REFUSED, DENIES),
            (&missing, "FAIL_OPEN", 200, ALLOWS),
            (&missing, "FAIL_CLOSE", REFUSED, DENIES),
        ] {
            println!("round {round}: {strategy} {}", image.url);
            app.plug_in(&mesh, image, strategy, &config).await;
            api.stands_in(name).await;
            door.answers(status).await;
        }
        app.plug_in(&mesh, &image, "FAIL_CLOSE", &config).await;
        runs_the_filter(api.agent.admin()).await;
        door.answers(200).await;
        let held = door.is_taken(&workload, SHED).await;
        drop(held);
        door.answers(200).await;
    }

    until("the agent counts the reason", async || {
        let metrics = api.agent.metrics().await.unwrap();
        ["checksum_mismatched", "manifest_failure"]
            .iter()
            .all(|why| {
                metrics.contains(&format!(
                    "istio_agent_wasm_remote_fetch_count{{result=\"{why}\"}}"
                ))
            })
    })
    .await;

    // The agent fetches an image that appears later with the next change of the plugin object.
    app.plug_in(&mesh, &missing, "FAIL_CLOSE", &config).await;
    api.stands_in(DENIES).await;
    registry.tag(&image, later(&missing)).unwrap();
    assert_eq!(door.status().await, REFUSED);
    app.plug_in(&mesh, &missing, "FAIL_CLOSE", &json!({"mode": "observe"}))
        .await;
    door.answers(200).await;
    runs_the_filter(api.agent.admin()).await;
}

/// The tag in the URL of an image.
fn later(image: &Image) -> &str {
    image.url.rsplit(':').next().unwrap()
}

pub(crate) async fn both_layouts_of_the_image_are_fetched(mesh: Arc<ConformanceMesh>) {
    let namespace = mesh.world.namespace("layouts").await;
    let registry = ImageRegistry::start(mesh.world.cluster.folder())
        .await
        .unwrap();
    let image = registry.push().unwrap();
    let workload = door::upstream("api").await;
    let artifact = Image {
        url: format!("{}-artifact", image.url),
        sha256: String::new(),
    };
    for (name, number, image) in [("compat", 41, &image), ("artifact", 42, &artifact)] {
        let app = App {
            namespace: &namespace,
            name,
            number,
        };
        let guarded = app.guard(&mesh, registry.address(), &workload).await;
        let config = one_at_a_time(SHED);
        app.plug_in(&mesh, image, "FAIL_CLOSE", &config).await;
        runs_the_filter(guarded.agent.admin()).await;
        MeshDoor::at(guarded.address).answers(200).await;
    }
}
