//! The metrics of one plugin: counted in cells of our own, published on Envoy's main thread.
//!
//! Envoy's own labeled metrics cost thousands of instructions for each change, because each looks its labels up. A cell
//! costs one atomic operation, and is the exact count of the whole process, because worker threads share it. Twice a
//! second cells that changed are copied into Envoy's metrics (see `ticker`).
//!
//! A metric's name carries its labels ([`tidegate_worker::metrics::name`]). Envoy wants labels by name ([`MetricIds`]).

#![expect(
    unsafe_code,
    reason = "metrics are defined and changed by calls into Envoy"
)]

mod cell;
mod cells;
mod ids;

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tidegate_worker::api::MetricKind;

use crate::abi::{Buffer, EnvoyPtr, METRICS_SUCCESS, NewerCallbacks};
use crate::descriptions::Descriptions;
use crate::sync;
use cell::{BITS, ChangedBits, MetricCell};
use cells::{CHUNK, Chunk};

pub(crate) use ids::{MetricIds, label_sets};

/// With sixty metrics for each upstream, room for four thousand upstreams.
const CHUNKS: usize = 256;

/// Most changes that Envoy is told at once: each costs it some 3,000 instructions. A proxy with few upstreams publishes all of
/// them twice a second, one with a thousand in use all within ten seconds.
const MOST_CHANGES: usize = 120;
/// After all changes were told, nothing is told in so many ticks: what changes in each of them is told once.
const TICKS_OF_REST: usize = 4;

/// Which cells one configuration has made known to Envoy, in the order of the cells. Envoy keeps a metric as long as any
/// configuration that made it known lives.
pub(crate) type KnownCells = Vec<bool>;

/// The metrics of one plugin.
#[derive(Debug)]
pub(crate) struct PluginMetrics {
    chunks: [OnceLock<Box<Chunk>>; CHUNKS],
    defined: Mutex<Descriptions>,
    /// The word of bits from which Envoy is told next.
    next: AtomicUsize,
    /// For so many more ticks nothing is told.
    rest: AtomicUsize,
    /// Whether it is time to tell.
    is_due: AtomicBool,
}

impl Default for PluginMetrics {
    fn default() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            defined: Mutex::default(),
            next: AtomicUsize::new(0),
            rest: AtomicUsize::new(0),
            is_due: AtomicBool::new(true),
        }
    }
}

impl PluginMetrics {
    /// The number of the metric with this name; `None` if there are too many.
    pub(crate) fn define(&self, kind: MetricKind, name: &str) -> Option<u32> {
        let mut defined = self.defined();
        let has_room = |id: u32| {
            let chunk = usize::try_from(id).map(|at| self.chunks.get(at / CHUNK));
            let chunk = chunk.ok().flatten();
            chunk.map(|chunk| chunk.get_or_init(Box::default)).is_some()
        };
        let (id, is_new) = defined.number(kind, name, has_room)?;
        if is_new {
            // One that is 0 is shown as well.
            self.mark(id)?;
        }
        Some(id)
    }

    /// Adds to a metric; `None` if there is no such metric.
    pub(crate) fn add(&self, id: u32, by: i64) -> Option<()> {
        let (chunk, at) = self.chunk(id)?;
        let cell = chunk.cells.get(at)?;
        #[cfg(any(test, feature = "test-hooks"))]
        crate::crash::panic_if_asked("add");
        // The order of value and bit: see `mark`. Counts of requests guard no other memory.
        cell.value.fetch_add(by.cast_unsigned(), Ordering::SeqCst);
        chunk.mark(at)
    }

    /// Adds 1 to a metric, and returns its new value.
    pub(crate) fn raise(&self, id: u32) -> Option<u64> {
        let (chunk, at) = self.chunk(id)?;
        let before = chunk.cells.get(at)?.value.fetch_add(1, Ordering::SeqCst);
        chunk.mark(at)?;
        #[cfg(any(test, feature = "test-hooks"))]
        crate::crash::panic_if_asked("raise");
        Some(before.wrapping_add(1))
    }

    /// Sets a metric.
    pub(crate) fn set(&self, id: u32, value: u64) -> Option<()> {
        self.cell(id)?.value.store(value, Ordering::SeqCst);
        self.mark(id)
    }

    /// Notes that a cell has changed.
    fn mark(&self, id: u32) -> Option<()> {
        let (chunk, at) = self.chunk(id)?;
        chunk.mark(at)
    }

    /// The chunk of a cell, and the cell's place in it.
    fn chunk(&self, id: u32) -> Option<(&Chunk, usize)> {
        let at = usize::try_from(id).ok()?;
        Some((self.chunks.get(at / CHUNK)?.get()?, at % CHUNK))
    }

    /// The value of a metric.
    pub(crate) fn get(&self, id: u32) -> Option<u64> {
        Some(self.cell(id)?.value.load(Ordering::Relaxed))
    }

    /// A tick: whether Envoy is to be told of changes now. To wake its main thread for nothing would cost as much as a request.
    pub(crate) fn is_due(&self) -> bool {
        let left = self.rest.load(Ordering::Relaxed).checked_sub(1);
        if let Some(left) = left {
            self.rest.store(left, Ordering::Relaxed);
            return false;
        }
        self.is_due.store(true, Ordering::Relaxed);
        true
    }

    /// Tells Envoy what changed, on its main thread, if it is due: some of it, and the others on the next ticks.
    pub(crate) fn publish(&self, config: EnvoyPtr, ids: &MetricIds, known: &mut KnownCells) {
        if self.is_due.swap(false, Ordering::Relaxed) && self.tell(config, ids, known, MOST_CHANGES)
        {
            self.rest.store(TICKS_OF_REST, Ordering::Relaxed);
        }
    }

    /// Makes all metrics known to a new configuration, so that Envoy still has them when the one before ends.
    pub(crate) fn hand_over(&self, config: EnvoyPtr, ids: &MetricIds, known: &mut KnownCells) {
        for chunk in self.chunks.iter().map_while(OnceLock::get) {
            for word in &chunk.changed {
                word.mark_all();
            }
        }
        self.next.store(0, Ordering::Relaxed);
        self.tell(config, ids, known, usize::MAX);
    }

    /// The plugin has ended: tells Envoy of the last changes, and that all gauges are 0. Envoy keeps what it was told last.
    pub(crate) fn end(&self, config: EnvoyPtr, ids: &MetricIds, known: &mut KnownCells) {
        for id in self.gauges() {
            // It was defined.
            let _ = self.set(id, 0);
        }
        self.next.store(0, Ordering::Relaxed);
        self.tell(config, ids, known, usize::MAX);
    }

    fn gauges(&self) -> Vec<u32> {
        let defined = self.defined();
        let kinds = (0..defined.len()).filter_map(|at| Some((at, defined.get(at)?.kind)));
        let gauges = kinds.filter(|(_, kind)| *kind == MetricKind::Gauge);
        gauges
            .filter_map(|(at, _)| u32::try_from(at).ok())
            .collect()
    }

    /// Tells at most `most` changes. Returns whether those were all up to the last cell; then the next call begins with the first.
    fn tell(&self, config: EnvoyPtr, ids: &MetricIds, known: &mut KnownCells, most: usize) -> bool {
        let newer = NewerCallbacks::get();
        let (Some(increment), Some(set)) = (newer.increment_counter, newer.set_gauge) else {
            return true;
        };
        let defined = self.defined();
        known.resize(defined.len(), false);
        let words = defined.len().div_ceil(BITS);
        let start = self.next.load(Ordering::Relaxed);
        let mut changes = 0;
        let mut values: Vec<Buffer> = Vec::new();
        for word in start..words {
            for at in self.take_changed(word) {
                if changes == most {
                    // The rest of the word is for the next time.
                    let _ = u32::try_from(at).ok().and_then(|id| self.mark(id));
                    continue;
                }
                let (Some(cell), Some(description), Some(is_known)) =
                    (self.cell_at(at), defined.get(at), known.get_mut(at))
                else {
                    continue;
                };
                let value = cell.value.load(Ordering::SeqCst);
                let published = cell.published.load(Ordering::Relaxed);
                if value == published && (*is_known || description.waits_at(value)) {
                    continue;
                }
                let Some(id) = ids.0.get(defined.signature(description)) else {
                    continue;
                };
                changes += 1;
                values.clear();
                let all = defined.values(description);
                values.extend(all.map(|value| Buffer::of(value.as_bytes())));
                let (call, told) = match description.kind {
                    MetricKind::Counter => (increment, value.wrapping_sub(published)),
                    // Below zero for a moment, while another worker takes back what it counted.
                    MetricKind::Gauge => (set, u64::try_from(value.cast_signed()).unwrap_or(0)),
                };
                // SAFETY: the hook that calls this gave the configuration; Envoy reads the values during the call.
                let result = unsafe { call(config, *id, values.as_ptr(), values.len(), told) };
                if result == METRICS_SUCCESS {
                    cell.published.store(value, Ordering::Relaxed);
                    *is_known = true;
                }
            }
            if changes == most {
                self.next.store(word, Ordering::Relaxed);
                return false;
            }
        }
        self.next.store(0, Ordering::Relaxed);
        true
    }

    /// The cells of a word of bits that changed since the last call.
    fn take_changed(&self, word: usize) -> impl Iterator<Item = usize> + use<> {
        const WORDS: usize = CHUNK / BITS;
        let chunk = self.chunks.get(word / WORDS).and_then(OnceLock::get);
        let changed = chunk.and_then(|chunk| chunk.changed.get(word % WORDS));
        let mut bits = changed.map_or(0, ChangedBits::take);
        core::iter::from_fn(move || {
            let lowest = usize::try_from(bits.trailing_zeros()).ok()?;
            // 0 if no bit is left.
            bits = bits
                .checked_sub(1 << (lowest % BITS))
                .filter(|_| lowest < BITS)?;
            Some(word * BITS + lowest)
        })
    }

    /// A configuration has ended that knew `gone`; `others` are the cells that the remaining ones know. Envoy has forgotten the
    /// rest, and is told of it again from 0.
    pub(crate) fn forget(&self, gone: &KnownCells, others: &[&KnownCells]) {
        let _defined = self.defined();
        for (at, _) in gone.iter().enumerate().filter(|(_, is_known)| **is_known) {
            let is_kept = others.iter().any(|known| known.get(at) == Some(&true));
            if let (false, Some(cell), Ok(id)) = (is_kept, self.cell_at(at), u32::try_from(at)) {
                cell.published.store(0, Ordering::Relaxed);
                self.mark(id);
            }
        }
    }

    fn cell(&self, id: u32) -> Option<&MetricCell> {
        self.cell_at(usize::try_from(id).ok()?)
    }

    fn cell_at(&self, at: usize) -> Option<&MetricCell> {
        self.chunks.get(at / CHUNK)?.get()?.cells.get(at % CHUNK)
    }

    fn defined(&self) -> MutexGuard<'_, Descriptions> {
        self.defined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_worker::metrics::name::Naming;
    use tidegate_worker::metrics::table::{SHED, WORKERS};

    #[test]
    fn a_name_is_one_metric_and_a_cell_counts_for_all_threads() {
        let metrics = PluginMetrics::default();
        let name =
            Naming::of_plugin("tidegate").name(&SHED, "tidegate_upstream=.=a;.;", Some("limit"));
        let id = metrics.define(MetricKind::Counter, &name).unwrap();
        assert_eq!(metrics.define(MetricKind::Counter, &name), Some(id));
        let other = metrics.define(MetricKind::Gauge, WORKERS.name).unwrap();
        assert_ne!(id, other);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| metrics.add(id, 1).unwrap()));
            }
        });
        assert_eq!(metrics.get(id), Some(4000));
        metrics.add(id, -4000).unwrap();
        assert_eq!(metrics.get(id), Some(0));
        metrics.set(other, 7).unwrap();
        assert_eq!(metrics.get(other), Some(7));
        assert_eq!(metrics.get(u32::MAX), None);
    }

    #[test]
    fn what_only_an_ended_configuration_knew_is_told_again() {
        let metrics = PluginMetrics::default();
        for name in ["a", "b", "c"] {
            let id = metrics.define(MetricKind::Counter, name).unwrap();
            metrics.set(id, 5).unwrap();
            let cell = metrics.cell(id).unwrap();
            cell.published.store(5, Ordering::Relaxed);
        }
        metrics.forget(&vec![true, true, false], &[&vec![false, true]]);
        let published = |id| metrics.cell(id).unwrap().published.load(Ordering::Relaxed);
        assert_eq!([0, 1, 2].map(published), [0, 5, 5]);
    }

    #[test]
    fn there_is_room_for_many_metrics_and_not_for_all() {
        let metrics = PluginMetrics::default();
        let most = u32::try_from(CHUNK * CHUNKS).unwrap();
        for number in 0..most {
            let name = format!("tidegate_upstream=.={number};.;tidegate_requests_total");
            let id = metrics.define(MetricKind::Counter, &name);
            assert_eq!(id, Some(number));
        }
        assert_eq!(metrics.define(MetricKind::Counter, "more"), None);
    }
}
