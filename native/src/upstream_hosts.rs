//! What a worker counts by upstream host.
//!
//! ```text
//!  a request's end: address of its host --> row of the worker --> worker's tick: cells of the metrics --> Envoy
//! ```
//!
//! Nothing reads these counts but Envoy's metrics. All of it is empty unless the configuration asks for it.

use std::sync::Arc;

use tidegate_core::{OVERFLOW, UpstreamKey};
use tidegate_worker::api::{Host as _, MetricKind};
use tidegate_worker::metrics::name::{Naming, upstream_labels};
use tidegate_worker::plugin::{EndedRequest, PluginObject};

use crate::host::{NativeHost, Shared};
use crate::host_names::HostLabels;
use crate::host_rows::{COUNTS, Growth, HostRows};
use crate::host_verdict::HostCount;
use crate::metrics::PluginMetrics;

/// The numbers of a host's metrics, each defined with its first count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostMetrics {
    labels: HostLabels,
    ids: [Option<u32>; COUNTS],
}

/// A request that ended while its worker's state was taken, with its host if hosts are counted.
#[derive(Debug)]
pub(crate) struct LateEnd {
    pub(crate) ended: EndedRequest,
    pub(crate) address: Option<Box<[u8]>>,
}

/// One worker's counts.
#[derive(Debug)]
pub(crate) struct WorkerHosts {
    shared: Arc<Shared>,
    naming: Naming,
    /// `None` unless the configuration asks for it.
    rows: Option<HostRows<HostMetrics>>,
}

impl WorkerHosts {
    /// None yet, for the plugin with this name; see [`WorkerHosts::follow`].
    pub(crate) fn new(shared: &Arc<Shared>, plugin: &str, most: usize) -> Self {
        Self {
            shared: Arc::clone(shared),
            naming: Naming::of_plugin(plugin),
            rows: rows(most),
        }
    }

    /// From now on at most `most` hosts have names of their own; 0 ends the counting.
    pub(crate) fn follow(&mut self, most: usize) {
        if self.rows.as_ref().map_or(0, HostRows::most) != most {
            self.tell();
            self.rows = rows(most);
        }
    }

    /// Whether hosts are counted.
    pub(crate) const fn are_counted(&self) -> bool {
        self.rows.is_some()
    }

    /// A request of this worker has ended. Without an `address` its stream is the one that the worker attends.
    pub(crate) fn see(
        &mut self,
        plugin: &PluginObject<NativeHost>,
        ended: &EndedRequest,
        address: Option<&[u8]>,
    ) {
        let (Some(rows), Some(id)) = (&mut self.rows, ended.upstream()) else {
            return;
        };
        let (engine, host) = (plugin.engine(), plugin.host());
        // Without an address no host was chosen: all were ejected, say.
        let Some(address) = address.or_else(|| host.upstream_address()) else {
            return;
        };
        let target = engine.policy(id).slo().latency_target();
        let count = HostCount::of(ended.outcome(), target, || {
            // A clock that stands still makes no answer late.
            let begun = ended.permit().started_at();
            ended.permit().latency_by(|| host.now().unwrap_or(begun))
        });
        let growth = rows.growth(engine.hash(id), engine.key(id), address);
        growth.add(HostCount::Requests);
        if let Some(count) = count {
            growth.add(count);
        }
    }

    /// A tick: adds what was counted to the metrics.
    pub(crate) fn tell(&mut self) {
        let Self {
            shared,
            naming,
            rows,
        } = self;
        let Some(counted) = rows else { return };
        let bound = counted.most();
        let name = |count: HostCount, labels, key: &UpstreamKey, address: &[u8]| {
            let address = String::from_utf8_lossy(address);
            let (upstream, host) = match labels {
                HostLabels::Own => (upstream_labels(key), &*address),
                HostLabels::OfUpstream => (upstream_labels(key), OVERFLOW),
                HostLabels::OfNone => (upstream_labels(&none()), OVERFLOW),
            };
            naming.name(count.metric(), &upstream, Some(host))
        };
        counted.take(|it, row, growth| {
            let mut host = row.host.take().unwrap_or_else(|| {
                HostMetrics::of(shared.hosts.labels(it.upstream, it.address(), bound))
            });
            let labels = host.labels;
            host.add(growth, &shared.metrics, |count| {
                name(count, labels, &row.key, it.address())
            });
            row.host = Some(host);
            labels == HostLabels::Own
        });
        let rest = counted.take_rest();
        HostMetrics::of(HostLabels::OfNone).add(rest, &shared.metrics, |count| {
            name(count, HostLabels::OfNone, &none(), &[])
        });
    }
}

fn rows(most: usize) -> Option<HostRows<HostMetrics>> {
    (most > 0).then(|| HostRows::new(most))
}

/// What stands for upstreams beyond the bound.
fn none() -> UpstreamKey {
    UpstreamKey {
        cluster: OVERFLOW.to_owned(),
        route: None,
    }
}

impl HostMetrics {
    const fn of(labels: HostLabels) -> Self {
        Self {
            labels,
            ids: [None; COUNTS],
        }
    }

    /// Adds what was counted. Metrics of which there are too many are left out.
    fn add(&mut self, growth: Growth, metrics: &PluginMetrics, name: impl Fn(HostCount) -> String) {
        for ((id, count), by) in self.ids.iter_mut().zip(HostCount::ALL).zip(growth.counts()) {
            if by == 0 {
                continue;
            }
            if id.is_none() {
                *id = metrics.define(MetricKind::Counter, &name(count));
            }
            let _ = id.and_then(|id| metrics.add(id, by.into()));
        }
    }
}
