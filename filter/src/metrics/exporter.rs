//! Publishes what the workers counted.
//!
//! A counter is the process's: every worker adds what its own count grew by since the last tick, so their sum is the
//! proxy's without anybody adding up. Gauges that say what holds for the proxy are recorded by the leader alone,
//! because the last writer wins. A metric is defined when it first has something to say, and only in the VM that
//! says it: a thousand upstreams times every reason to shed would fill the proxy's memory with zeros.

use std::collections::BTreeMap;

use tidegate_core::{Event, UpstreamId, UpstreamKey, UpstreamView};

use super::name::{Naming, upstream_labels};
use super::sources::{READING_COUNT, READINGS, sources_of};
use super::table::{
    FAULTS_TOTAL, LIMIT_REASONS, Metric, OVERFLOW, RECONCILED, TRANSITIONS, TRIP_REASONS,
    UPSTREAMS, WORKERS,
};
use crate::api::{Host, MetricId, MetricKind};
use crate::faults::{Fault, Faults};
use crate::names::Permission;

/// No metric has been defined yet. Envoy counts its handles from 0 upwards in steps of 4.
const UNDEFINED: u32 = u32::MAX;
/// The host refused it; asking again would not help.
const REFUSED: u32 = u32::MAX - 1;

/// What has been published so far.
#[derive(Debug)]
pub struct Exporter {
    entries: Vec<Option<Box<Entry>>>,
    /// Metrics without an upstream, and rare ones: by name.
    rare: BTreeMap<String, u32>,
    overflowed: u64,
    faults: [u64; Fault::ALL.len()],
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    names: Permission,
    /// [`tidegate_core::Tally::fingerprint`] of what has been added.
    added: u64,
    /// Those that have ever been more than zero, in the order of sources. Few of all there are.
    counters: Vec<Counter>,
    /// Only where this worker led.
    gauges: Option<Box<[Gauge; READING_COUNT]>>,
}

/// One of [`super::sources::SOURCES`].
#[derive(Clone, Copy, Debug)]
struct Counter {
    source: u8,
    id: u32,
    /// What has been added, modulo 2^32: a difference is all that is needed.
    added: u32,
}

/// One of [`READINGS`].
#[derive(Clone, Copy, Debug)]
struct Gauge {
    id: u32,
    /// What this worker recorded last, while it led.
    recorded: Option<u64>,
}

impl Gauge {
    const NEW: Self = Self {
        id: UNDEFINED,
        recorded: None,
    };
}

/// A metric, the labels of its upstream, and the value of its own label.
type Series<'a> = (&'a Metric, &'a str, Option<&'a str>);

/// What the exporter needs from outside.
#[derive(Debug)]
pub struct Outlet<'a, H> {
    /// The proxy.
    pub host: &'a H,
    /// How names are made.
    pub naming: &'a Naming,
    /// Where refusals are noted.
    pub faults: &'a Faults,
}

impl Default for Exporter {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            rare: BTreeMap::new(),
            overflowed: 0,
            faults: [0; Fault::ALL.len()],
        }
    }
}

impl Exporter {
    /// Whether the upstream has been introduced. Its handle may have been another's.
    #[must_use]
    pub fn knows(&self, view: &UpstreamView<'_>) -> bool {
        self.entries
            .get(view.id.index())
            .is_some_and(|entry| entry.as_ref().is_some_and(|entry| entry.hash == view.hash))
    }

    /// A handle stands for this upstream from now on, which has names of its own or counts under `_overflow`.
    pub fn introduce(&mut self, id: UpstreamId, hash: u64, names: Permission) {
        if self.entries.len() <= id.index() {
            self.entries.resize_with(id.index() + 1, || None);
        }
        if let Some(entry) = self.entries.get_mut(id.index()) {
            *entry = Some(Box::new(Entry {
                hash,
                names,
                added: 0,
                counters: Vec::new(),
                gauges: None,
            }));
        }
    }

    /// Adds what one upstream's counts grew by.
    pub fn add<H: Host>(&mut self, out: &mut Outlet<'_, H>, view: &UpstreamView<'_>) {
        let Some(entry) = self.entry(view) else {
            return;
        };
        let counted = view.tally.fingerprint();
        if core::mem::replace(&mut entry.added, counted) == counted {
            return;
        }
        let names = entry.names;
        // Both are sorted: one walk.
        let mut place = 0;
        for (number, source) in (0_u8..).zip(sources_of(view.tally)) {
            let now = low_half(source.read(view.tally));
            let is_known = entry
                .counters
                .get(place)
                .is_some_and(|counter| counter.source == number);
            if !is_known {
                if now == 0 {
                    continue;
                }
                entry.counters.reserve_exact(1);
                let (id, added) = (UNDEFINED, 0);
                entry.counters.insert(
                    place,
                    Counter {
                        source: number,
                        id,
                        added,
                    },
                );
            }
            let Some(counter) = entry.counters.get_mut(place) else {
                continue;
            };
            place += 1;
            if counter.added == now {
                continue;
            }
            let grown = now.wrapping_sub(core::mem::replace(&mut counter.added, now));
            let name = || {
                let labels = labels(view.key, names);
                out.naming.name(&source.metric, &labels, source.value)
            };
            let kind = MetricKind::Counter;
            if let Some(id) = define(out.host, out.faults, &mut counter.id, kind, name) {
                let done = out.host.increment_metric(id, i64::from(grown));
                out.faults.check(out.host, Fault::Metric, done);
            }
        }
    }

    /// Leads: records what holds for one upstream, where it changed.
    pub fn record<H: Host>(
        &mut self,
        out: &mut Outlet<'_, H>,
        view: &UpstreamView<'_>,
        streams: u64,
    ) {
        // Who shares names would overwrite what is said of the others.
        let Some(entry) = self
            .entry(view)
            .filter(|entry| entry.names == Permission::Own)
        else {
            return;
        };
        let gauges = entry
            .gauges
            .get_or_insert_with(|| Box::new([Gauge::NEW; READING_COUNT]));
        for (gauge, reading) in gauges.iter_mut().zip(&READINGS) {
            let value = (reading.read)(view, streams);
            if gauge.recorded.replace(value) == Some(value) {
                continue;
            }
            let name = || {
                let labels = upstream_labels(view.key);
                out.naming.name(&reading.metric, &labels, None)
            };
            let kind = MetricKind::Gauge;
            if let Some(id) = define(out.host, out.faults, &mut gauge.id, kind, name) {
                let done = out.host.record_metric(id, value);
                out.faults.check(out.host, Fault::Metric, done);
            }
        }
    }

    /// This worker leads from now on: what it recorded before may have been overwritten.
    pub fn take_over(&mut self) {
        let entries = self.entries.iter_mut().flatten();
        for gauge in entries
            .filter_map(|entry| entry.gauges.as_mut())
            .flat_map(|gauges| gauges.iter_mut())
        {
            gauge.recorded = None;
        }
    }

    /// Counts a transition of the breaker, or of the limit, of the upstream with these labels.
    pub fn count_event<H: Host>(&mut self, out: &mut Outlet<'_, H>, labels: &str, event: &Event) {
        let to = match event {
            Event::Tripped { reason, .. } => {
                self.count(out, (&TRIP_REASONS, labels, Some(reason.as_str())), 1);
                "open"
            }
            Event::LimitReason { reason, .. } => {
                self.count(out, (&LIMIT_REASONS, labels, Some(reason.as_str())), 1);
                return;
            }
            Event::Ramping { .. } => "half_open",
            Event::Reset { .. } => "closed",
        };
        self.count(out, (&TRANSITIONS, labels, Some(to)), 1);
    }

    /// Counts requests in flight that were taken off a gauge.
    pub fn count_reconciled<H: Host>(&mut self, out: &mut Outlet<'_, H>, labels: &str, by: u64) {
        self.count(out, (&RECONCILED, labels, None), by);
    }

    /// Adds what is not any upstream's: requests beyond the cap, and faults.
    pub fn add_plugin<H: Host>(&mut self, out: &mut Outlet<'_, H>, overflowed: u64) {
        let grown = overflowed.wrapping_sub(self.overflowed);
        self.overflowed = overflowed;
        self.count(out, (&OVERFLOW, "", None), grown);
        for (index, kind) in Fault::ALL.into_iter().enumerate() {
            let now = out.faults.count(kind);
            let Some(before) = self.faults.get_mut(index) else {
                continue;
            };
            let grown = now.wrapping_sub(core::mem::replace(before, now));
            self.count(out, (&FAULTS_TOTAL, "", Some(kind.as_str())), grown);
        }
    }

    /// Leads: records what holds for the plugin.
    pub fn record_plugin<H: Host>(
        &mut self,
        out: &mut Outlet<'_, H>,
        upstreams: usize,
        workers: usize,
    ) {
        for (metric, value) in [(&UPSTREAMS, upstreams), (&WORKERS, workers)] {
            let value = u64::try_from(value).unwrap_or(u64::MAX);
            if let Some(id) = self.rare(out, (metric, "", None)) {
                let done = out.host.record_metric(id, value);
                out.faults.check(out.host, Fault::Metric, done);
            }
        }
    }

    fn count<H: Host>(&mut self, out: &mut Outlet<'_, H>, series: Series<'_>, by: u64) {
        if by == 0 {
            return;
        }
        if let Some(id) = self.rare(out, series) {
            let done = out
                .host
                .increment_metric(id, i64::try_from(by).unwrap_or(i64::MAX));
            out.faults.check(out.host, Fault::Metric, done);
        }
    }

    fn rare<H: Host>(
        &mut self,
        out: &mut Outlet<'_, H>,
        (metric, labels, value): Series<'_>,
    ) -> Option<MetricId> {
        let name = out.naming.name(metric, labels, value);
        let id = self.rare.entry(name.clone()).or_insert(UNDEFINED);
        define(out.host, out.faults, id, metric.kind, || name)
    }

    fn entry(&mut self, view: &UpstreamView<'_>) -> Option<&mut Entry> {
        self.entries
            .get_mut(view.id.index())?
            .as_deref_mut()
            .filter(|entry| entry.hash == view.hash)
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

fn define(
    host: &impl Host,
    faults: &Faults,
    id: &mut u32,
    kind: MetricKind,
    name: impl FnOnce() -> String,
) -> Option<MetricId> {
    if *id == UNDEFINED {
        let defined = host.define_metric(kind, &name());
        *id = faults
            .check(host, Fault::Metric, defined)
            .map_or(REFUSED, |id| id.0);
    }
    (*id != REFUSED).then_some(MetricId(*id))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "only differences count, and no tick adds 2^32"
)]
const fn low_half(count: u64) -> u32 {
    count as u32
}
