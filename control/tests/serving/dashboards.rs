//! The dashboard and the alerts query only metrics that the service has.

use tidegate_testbed::client::Call;
use tidegate_testbed::dashboards::DashboardNames;

use crate::proxy::TestProxy;
use crate::stage::{ServingStage, until};

/// The metric exists only if there are certificates. `tls.rs` tests it.
const BY_TLS: &str = "tidegate_control_certificate_not_after_timestamp_seconds";

#[tokio::test(flavor = "multi_thread")]
async fn every_queried_metric_is_served() {
    let names = DashboardNames::read().unwrap();
    assert!(names.control.len() > 3, "{:?}", names.control);
    let stage = ServingStage::start().await;
    // Metrics of proxies exist only after a proxy has connected.
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge-1", "").await;
    let push = proxy.pushed().await;
    proxy.accept(&push).await;
    until("the acceptance is shown", async || {
        stage.resource().await["running"] == push.version_info
    })
    .await;

    let metrics = stage.call(Call::get("/metrics")).await.body;

    let metrics = String::from_utf8(metrics.to_vec()).unwrap();
    let described = |name: &str| metrics.contains(&format!("# TYPE {name} "));
    // OpenMetrics describes a counter without the suffix that its series have.
    let is_there = |name: &&String| {
        let counter = name.strip_suffix("_total").unwrap_or(name);
        described(name) || described(counter)
    };
    let missing: Vec<_> = names
        .control
        .iter()
        .filter(|name| *name != BY_TLS && !is_there(name))
        .collect();
    assert!(
        missing.is_empty(),
        "{missing:?} of dashboards/ are not in {metrics}"
    );
}
