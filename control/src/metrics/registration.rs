//! Registers a metric under the name and the description of the table.

use prometheus_client::registry::{Metric, Registry};

use super::table::MetricSpec;

pub(super) fn register(registry: &mut Registry, spec: &MetricSpec, metric: &(impl Metric + Clone)) {
    registry.register(spec.name, spec.help, metric.clone());
}
