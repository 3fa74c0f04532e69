//! The dashboard and the alerts ask for nothing that the service does not show.

use tidegate_testbed::client::Call;
use tidegate_testbed::dashboards::Names;

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn no_query_asks_for_a_metric_that_the_service_does_not_show() {
    let names = Names::read().unwrap();
    assert!(names.control.len() > 3, "{:?}", names.control);
    let stage = Stage::start().await;

    let metrics = stage.call(Call::get("/metrics")).await.body;

    let metrics = String::from_utf8(metrics.to_vec()).unwrap();
    let described = |name: &str| metrics.contains(&format!("# TYPE {name} "));
    // OpenMetrics describes a counter without the ending that its values have.
    let is_there = |name: &&String| {
        let counter = name.strip_suffix("_total").unwrap_or(name);
        described(name) || described(counter)
    };
    let missing: Vec<_> = names
        .control
        .iter()
        .filter(|name| !is_there(name))
        .collect();
    assert!(
        missing.is_empty(),
        "{missing:?} of dashboards/ are not in {metrics}"
    );
}
