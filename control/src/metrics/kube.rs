//! The metrics of the Kubernetes controller.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::registration::register;
use super::table;
use crate::kube::istio::IstioApi;
use crate::kube::pools::RESOURCE;
use crate::kube::{DISCOVERY, KubeEvent, Listing, ReconcileResult, WriteOutcome, WriteTarget};

/// All metrics of the controller.
#[derive(Clone, Debug, Default)]
pub(super) struct KubeMetrics {
    reconciles: Family<ResultLabels, Counter>,
    writes: Family<WriteLabels, Counter>,
    watch_errors: Family<ResourceLabels, Counter>,
    leading: Gauge,
    lease_changes: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    object: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabels {
    resource: &'static str,
}

impl KubeMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        // Each series starts at zero, so that the first event shows as a rise.
        for result in ReconcileResult::ALL {
            self.reconciles.get_or_create(&of_result(result)).inc_by(0);
        }
        for target in WriteTarget::ALL {
            for result in WriteOutcome::ALL {
                let labels = of_write(target, result);
                self.writes.get_or_create(&labels).inc_by(0);
            }
        }
        let objects = IstioApi::ALL.map(Listing::Objects).map(Listing::name);
        let others = [Listing::Policies.name(), RESOURCE, DISCOVERY];
        for resource in objects.into_iter().chain(others) {
            let labels = ResourceLabels { resource };
            self.watch_errors.get_or_create(&labels).inc_by(0);
        }
        register(registry, &table::KUBE_RECONCILES, &self.reconciles);
        register(registry, &table::KUBE_WRITES, &self.writes);
        register(registry, &table::KUBE_WATCH_ERRORS, &self.watch_errors);
        register(registry, &table::KUBE_LEADING, &self.leading);
        register(registry, &table::KUBE_LEASE_CHANGES, &self.lease_changes);
    }

    pub(super) fn record(&self, event: KubeEvent) {
        match event {
            KubeEvent::Reconciled(result) => {
                self.reconciles.get_or_create(&of_result(result)).inc();
            }
            KubeEvent::Written(target, result) => {
                self.writes.get_or_create(&of_write(target, result)).inc();
            }
            KubeEvent::WatchFailed(resource) => {
                let labels = ResourceLabels { resource };
                self.watch_errors.get_or_create(&labels).inc();
            }
            KubeEvent::Leading(leads) => {
                if self.leading.set(i64::from(leads)) != i64::from(leads) {
                    self.lease_changes.inc();
                }
            }
        }
    }
}

const fn of_result(result: ReconcileResult) -> ResultLabels {
    ResultLabels {
        result: result.name(),
    }
}

const fn of_write(target: WriteTarget, result: WriteOutcome) -> WriteLabels {
    WriteLabels {
        object: target.name(),
        result: result.name(),
    }
}
