//! A sidecar's clusters that lead to several destinations.
//!
//! Such a cluster is not one upstream, so the filter counts and sheds nothing there. It knows these clusters by the names
//! that Istio gives them.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::json;
use tidegate_meshbed::{MeshNode, ProxyRole, ports, until};
use tidegate_testbed::client::{Call, Caller};

use crate::door::{self, MeshDoor};
use crate::load::SHED;
use crate::mesh::{ConformanceMesh, is_guarded};

/// This many failures open any breaker.
const ENOUGH: usize = 100;

pub(crate) async fn clusters_with_several_destinations_are_not_counted(mesh: Arc<ConformanceMesh>) {
    let namespace = mesh.world.namespace("egress").await;
    let stock = door::upstream("stock").await;
    let stock_host = "stock.egress.svc.cluster.local";
    let outbound = ports::free();
    mesh.register_at(&namespace, stock_host, outbound, &stock)
        .await;
    let wildcard = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": {"name": "wildcard"},
        "spec": {
            "hosts": ["*.wild.invalid"], "location": "MESH_EXTERNAL", "resolution": "DYNAMIC_DNS",
            "ports": [{"number": outbound, "name": "http", "protocol": "HTTP"}],
        },
    });
    mesh.apply(&namespace, &wildcard).await;
    let node = MeshNode::new(ProxyRole::Sidecar, &namespace, "web");
    mesh.apply(&namespace, &node.pod()).await;
    let sidecar = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "Sidecar", "metadata": {"name": "web"},
        "spec": {
            "workloadSelector": {"labels": node.labels},
            "egress": [{
                "port": {"number": outbound, "name": "http", "protocol": "HTTP"},
                "bind": "127.0.0.1", "captureMode": "NONE", "hosts": ["./*"],
            }],
        },
    });
    mesh.apply(&namespace, &sidecar).await;
    let envoy = mesh.proxy(&node).await;
    let clusters = [
        "PassthroughCluster".to_owned(),
        format!("outbound|{outbound}||*.wild.invalid"),
    ];
    until("the clusters are there", async || {
        let text = envoy.admin().text("/clusters").await.unwrap();
        clusters
            .iter()
            .all(|cluster| text.contains(cluster.as_str()))
    })
    .await;
    let settings = json!({"shed": {"status": SHED}});
    mesh.apply_policy(&namespace, "web", &settings).await;
    is_guarded(&envoy).await;

    // Neither name exists, so all of these requests fail. The first host has no address, and the second one is unknown
    // to the name service.
    let address = SocketAddr::from(([127, 0, 0, 1], outbound));
    let caller = Caller::http1(address);
    for host in ["nobody.invalid", "nobody.wild.invalid"] {
        let call = Call::get("/").authority(&format!("{host}:{outbound}"));
        for _ in 0..ENOUGH {
            let status = caller.call(&call).await.unwrap().status;
            assert_eq!(status, 503, "{host}");
        }
    }
    MeshDoor::to(address, stock_host).answers(200).await;
    until("the service beside them is counted", async || {
        let metrics = envoy.admin().tidegate().await.unwrap();
        metrics.sum(
            "requests_total",
            &format!("outbound|{outbound}||{stock_host}"),
        ) > 0
    })
    .await;
    let metrics = envoy.admin().tidegate().await.unwrap();
    for cluster in &clusters {
        assert_eq!(metrics.sum("requests_total", cluster), 0, "{cluster}");
    }
}
