//! The metrics of the reads of the service graph.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::registration::register;
use super::{count, table};
use crate::traffic::TrafficEvent;

/// All metrics of the reads.
#[derive(Clone, Debug, Default)]
pub(super) struct TrafficMetrics {
    reads: Family<ReadLabels, Counter>,
    read_at: Gauge,
    edges: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReadLabels {
    result: &'static str,
}

const DONE: ReadLabels = ReadLabels { result: "done" };
const FAILED: ReadLabels = ReadLabels { result: "failed" };

impl TrafficMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        // Each series starts at zero, so that the first event shows as a rise.
        for labels in [DONE, FAILED] {
            self.reads.get_or_create(&labels).inc_by(0);
        }
        register(registry, &table::GRAPH_READS, &self.reads);
        register(registry, &table::GRAPH_READ_AT, &self.read_at);
        register(registry, &table::GRAPH_EDGES, &self.edges);
    }

    pub(super) fn record(&self, event: TrafficEvent) {
        match event {
            TrafficEvent::Read { at, edges } => {
                self.reads.get_or_create(&DONE).inc();
                self.read_at.set(at);
                self.edges.set(count(edges));
            }
            TrafficEvent::Failed => {
                self.reads.get_or_create(&FAILED).inc();
            }
        }
    }
}
