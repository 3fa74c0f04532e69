//! Publishes what one upstream's metrics say.
//!
//! A counter belongs to the process: every worker adds the growth of its own count since the last tick, so the counter is
//! the sum over the proxy. Gauges of the whole proxy are recorded by the leader alone, because the last writer wins. A
//! metric is defined when it first has a value to publish, and only in the VM that publishes it: a thousand upstreams times
//! every reason to shed would fill the proxy's memory with zeros.

use core::cell::OnceCell;

use tidegate_core::UpstreamView;

use super::exporter::labels;
use super::handle::Handle;
use super::name::upstream_labels;
use super::sources::{READING_COUNT, READINGS, sources_of};
use crate::api::{Host, MetricKind};
use crate::names::Permission;
use crate::proxy::Proxy;

/// What has been published of one upstream.
#[derive(Debug, Default)]
pub struct Series {
    /// [`tidegate_core::Tally::fingerprint`] of what has been added.
    added: u64,
    /// Those that have ever been more than zero, in the order of sources. Few of all there are.
    counters: Box<[PublishedCounter]>,
    /// Only where this worker led.
    gauges: Option<Box<[Gauge; READING_COUNT]>>,
}

/// One of [`super::sources::SOURCES`].
#[derive(Clone, Copy, Debug)]
struct PublishedCounter {
    source: u8,
    handle: Handle,
    /// What has been added, modulo 2^32: a difference is all that is needed.
    added: u32,
}

/// One of [`READINGS`].
#[derive(Clone, Copy, Debug)]
struct Gauge {
    handle: Handle,
    /// Whether this worker recorded a value, while it led, and which one last. An `Option` would take eight bytes more, in each
    /// gauge of each upstream.
    is_recorded: bool,
    recorded: u64,
}

impl Gauge {
    const NEW: Self = Self {
        handle: Handle::UNDEFINED,
        is_recorded: false,
        recorded: 0,
    };
}

impl Series {
    /// Adds what the counts grew by.
    pub fn add<H: Host>(&mut self, view: &UpstreamView<'_>, names: Permission, proxy: &Proxy<H>) {
        let counted = view.tally.fingerprint();
        if core::mem::replace(&mut self.added, counted) == counted {
            return;
        }
        let known_labels = OnceCell::new();
        // Both are sorted: one walk.
        let mut place = 0;
        for (number, source) in (0_u8..).zip(sources_of(view.tally)) {
            let now = low_half(source.read(view.tally));
            let known = self.counters.get(place);
            if known.is_none_or(|counter| counter.source != number) {
                if now == 0 {
                    continue;
                }
                let mut counters = core::mem::take(&mut self.counters).into_vec();
                counters.reserve_exact(1);
                counters.insert(place, PublishedCounter::new(number));
                self.counters = counters.into();
            }
            let Some(counter) = self.counters.get_mut(place) else {
                continue;
            };
            place += 1;
            if counter.added == now {
                continue;
            }
            let grown = now.wrapping_sub(core::mem::replace(&mut counter.added, now));
            let name = || {
                let labels = known_labels.get_or_init(|| labels(view.key, names));
                proxy.naming.name(&source.metric, labels, source.value)
            };
            if let Some(id) = counter.handle.define(proxy, MetricKind::Counter, name) {
                proxy.increment(id, i64::from(grown));
            }
        }
    }

    /// Leads: records what holds, where it changed.
    pub fn record<H: Host>(&mut self, view: &UpstreamView<'_>, streams: u64, proxy: &Proxy<H>) {
        let gauges = self
            .gauges
            .get_or_insert_with(|| Box::new([Gauge::NEW; READING_COUNT]));
        let known_labels = OnceCell::new();
        for (gauge, reading) in gauges.iter_mut().zip(&READINGS) {
            let value = (reading.read)(view, streams);
            if (gauge.is_recorded, gauge.recorded) == (true, value) {
                continue;
            }
            (gauge.is_recorded, gauge.recorded) = (true, value);
            let name = || {
                let labels = known_labels.get_or_init(|| upstream_labels(view.key));
                proxy.naming.name(&reading.metric, labels, None)
            };
            if let Some(id) = gauge.handle.define(proxy, MetricKind::Gauge, name) {
                proxy.record(id, value);
            }
        }
    }

    /// This worker leads from now on: what it recorded before may have been overwritten.
    pub fn take_over(&mut self) {
        let gauges = self.gauges.iter_mut();
        for gauge in gauges.flat_map(|gauges| gauges.iter_mut()) {
            gauge.is_recorded = false;
        }
    }
}

impl PublishedCounter {
    const fn new(source: u8) -> Self {
        Self {
            source,
            handle: Handle::UNDEFINED,
            added: 0,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "only differences count, and no tick adds 2^32"
)]
const fn low_half(count: u64) -> u32 {
    count as u32
}
