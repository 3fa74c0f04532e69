//! Publishes what is not any upstream's, and what is rare.

use std::collections::BTreeMap;

use tidegate_core::{Event, UpstreamKey};

use super::description::{Metric, without_help};
use super::handle::Handle;
use super::name::upstream_labels;
use super::table;
use crate::api::{Host, MetricId};
use crate::faults::Fault;
use crate::names::Permission;
use crate::proxy::Proxy;

const DESTINATIONS_OVERFLOW: Metric = without_help(table::DESTINATIONS_OVERFLOW);
const FAULTS_TOTAL: Metric = without_help(table::FAULTS_TOTAL);
const LIMIT_REASONS: Metric = without_help(table::LIMIT_REASONS);
const OVERFLOW: Metric = without_help(table::OVERFLOW);
const RECONCILED: Metric = without_help(table::RECONCILED);
const TRANSITIONS: Metric = without_help(table::TRANSITIONS);
const TRIP_REASONS: Metric = without_help(table::TRIP_REASONS);
const UPSTREAMS: Metric = without_help(table::UPSTREAMS);
const WORKERS: Metric = without_help(table::WORKERS);

/// What has been published so far.
#[derive(Debug)]
pub struct Exporter {
    /// By the [hash](UpstreamKey::hash) of the name: there are some for each upstream.
    rare: BTreeMap<u64, Handle>,
    /// What a leader records in every round: the numbers of upstreams and of workers.
    upstreams: Handle,
    workers: Handle,
    overflowed: u64,
    passed: u64,
    faults: [u64; Fault::ALL.len()],
}

impl Default for Exporter {
    fn default() -> Self {
        Self {
            rare: BTreeMap::new(),
            upstreams: Handle::UNDEFINED,
            workers: Handle::UNDEFINED,
            overflowed: 0,
            passed: 0,
            faults: [0; Fault::ALL.len()],
        }
    }
}

/// A metric, the labels of its upstream, and the value of its own label.
type ExportedSeries<'a> = (&'a Metric, &'a str, Option<&'a str>);

impl Exporter {
    /// Counts a transition of the breaker, or of the limit, of the upstream with these labels.
    pub fn count_event<H: Host>(&mut self, proxy: &Proxy<H>, labels: &str, event: &Event) {
        let to = match event {
            Event::Tripped { reason, .. } => {
                self.count(proxy, (&TRIP_REASONS, labels, Some(reason.as_str())), 1);
                "open"
            }
            Event::LimitReason { reason, .. } => {
                self.count(proxy, (&LIMIT_REASONS, labels, Some(reason.as_str())), 1);
                return;
            }
            Event::Ramping { .. } => "half_open",
            Event::Reset { .. } => "closed",
        };
        self.count(proxy, (&TRANSITIONS, labels, Some(to)), 1);
    }

    /// Counts requests in flight that were taken off a gauge.
    pub fn count_reconciled<H: Host>(&mut self, proxy: &Proxy<H>, labels: &str, by: u64) {
        self.count(proxy, (&RECONCILED, labels, None), by);
    }

    /// Adds what is not any upstream's: requests to upstreams and to destinations beyond their caps, and faults.
    pub fn add_plugin<H: Host>(&mut self, proxy: &Proxy<H>, overflowed: u64, passed: u64) {
        let grown = overflowed.wrapping_sub(core::mem::replace(&mut self.overflowed, overflowed));
        self.count(proxy, (&OVERFLOW, "", None), grown);
        let grown = passed.wrapping_sub(core::mem::replace(&mut self.passed, passed));
        self.count(proxy, (&DESTINATIONS_OVERFLOW, "", None), grown);
        for (index, kind) in Fault::ALL.into_iter().enumerate() {
            let now = proxy.faults.count(kind);
            let Some(before) = self.faults.get_mut(index) else {
                continue;
            };
            let grown = now.wrapping_sub(core::mem::replace(before, now));
            self.count(proxy, (&FAULTS_TOTAL, "", Some(kind.as_str())), grown);
        }
    }

    /// Leads: records what holds for the plugin.
    pub fn record_plugin<H: Host>(&mut self, proxy: &Proxy<H>, upstreams: usize, workers: usize) {
        let Self {
            upstreams: of_upstreams,
            workers: of_workers,
            ..
        } = self;
        for (handle, metric, value) in [
            (of_upstreams, &UPSTREAMS, upstreams),
            (of_workers, &WORKERS, workers),
        ] {
            let value = u64::try_from(value).unwrap_or(u64::MAX);
            let name = || proxy.naming.name(metric, "", None);
            if let Some(id) = handle.define(proxy, metric.kind, name) {
                proxy.record(id, value);
            }
        }
    }

    fn count<H: Host>(&mut self, proxy: &Proxy<H>, series: ExportedSeries<'_>, by: u64) {
        if by == 0 {
            return;
        }
        if let Some(id) = self.rare(proxy, series) {
            proxy.increment(id, i64::try_from(by).unwrap_or(i64::MAX));
        }
    }

    fn rare<H: Host>(
        &mut self,
        proxy: &Proxy<H>,
        (metric, labels, value): ExportedSeries<'_>,
    ) -> Option<MetricId> {
        let name = proxy.naming.name(metric, labels, value);
        let handle = self.rare.entry(UpstreamKey::hash(&name, None));
        let handle = handle.or_insert(Handle::UNDEFINED);
        handle.define(proxy, metric.kind, || name)
    }
}

/// The labels under which an upstream's metrics stand.
#[must_use]
pub fn labels(key: &UpstreamKey, names: Permission) -> String {
    match names {
        Permission::Own => upstream_labels(key),
        Permission::Shared | Permission::Undecided => upstream_labels(&overflow()),
    }
}

/// What stands for all upstreams beyond the cap.
#[must_use]
pub fn overflow() -> UpstreamKey {
    UpstreamKey {
        cluster: tidegate_core::OVERFLOW.to_owned(),
        route: None,
    }
}
