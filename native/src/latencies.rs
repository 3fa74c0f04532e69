//! Latencies as histograms of Envoy's: counted by workers on their ticks, told to Envoy on its main thread.
//!
//! A worker's counts by bucket are there already, for the laws. So a request costs nothing more. Envoy takes one value in a call,
//! which costs thousands of instructions: at most [`MOST_VALUES`] are told on a tick. Of more, every second, third, and so on is told,
//! in the order of the buckets, so that quantiles stay what they are.
//!
//! All of it is empty unless the configuration asks for histograms.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::{BUCKETS, Engine, Histogram, Instant, UpstreamKey, UpstreamView};

/// Most latencies that Envoy is told on one tick.
const MOST_VALUES: u64 = 100;

/// The latencies of one plugin that Envoy was not told.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Mutex<HashMap<u64, Arc<LatencyCell>>>);

/// Those of one upstream. It is kept for as long as the plugin, as Envoy keeps its histograms.
#[derive(Debug)]
struct LatencyCell {
    hash: u64,
    key: UpstreamKey,
    counts: [AtomicU32; BUCKETS],
    has_counts: AtomicBool,
    /// Mean latency without a queue, in microseconds; 0 while unknown.
    floor_us: AtomicU64,
}

/// One latency for Envoy's histograms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LatencyValue<'a> {
    pub(crate) upstream: &'a UpstreamKey,
    /// [`UpstreamKey::hash`] of it.
    pub(crate) hash: u64,
    pub(crate) latency_ms: u64,
    /// How much longer it is than without a queue; `None` while that is unknown.
    pub(crate) queue_ms: Option<u64>,
}

/// One worker's way to the cells.
#[derive(Debug, Default)]
pub(crate) struct WorkerLatencies(HashMap<u64, CountedLatencies>);

#[derive(Debug)]
struct CountedLatencies {
    /// `None` for an upstream beyond the bound.
    cell: Option<Arc<LatencyCell>>,
    seen: [u16; BUCKETS],
}

impl Latencies {
    /// Whether there may be any.
    pub(crate) fn are_counted(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Tells what is new, or a sample of it.
    pub(crate) fn tell(&self, mut tell: impl FnMut(LatencyValue<'_>)) {
        let cells = self.lock();
        let new: Vec<_> = cells
            .values()
            .filter_map(|cell| Some((cell, cell.take()?)))
            .collect();
        let total: u64 = new.iter().map(|(_, counts)| sum(counts)).sum();
        let step = total.div_ceil(MOST_VALUES).max(1);
        // Half a step before the first one, so that what is left out is spread on both sides.
        let mut ahead = step / 2;
        for (cell, counts) in new {
            for (count, middle) in counts.into_iter().zip(Histogram::middles()) {
                ahead += u64::from(count);
                while ahead >= step {
                    ahead -= step;
                    tell(cell.value(middle));
                }
            }
        }
    }

    /// The cell of an upstream; `None` for a new one beyond `most`.
    fn cell(&self, view: &UpstreamView<'_>, most: usize) -> Option<Arc<LatencyCell>> {
        let mut cells = self.lock();
        if let Some(cell) = cells.get(&view.hash) {
            return Some(Arc::clone(cell));
        }
        if cells.len() >= most {
            return None;
        }
        let cell = Arc::new(LatencyCell::new(view.hash, view.key));
        cells.insert(view.hash, Arc::clone(&cell));
        Some(cell)
    }

    /// Nothing in it can be half done.
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<LatencyCell>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().map(|count| u64::from(*count)).sum()
}

impl LatencyCell {
    fn new(hash: u64, key: &UpstreamKey) -> Self {
        Self {
            hash,
            key: key.clone(),
            counts: [const { AtomicU32::new(0) }; BUCKETS],
            has_counts: AtomicBool::new(false),
            floor_us: AtomicU64::new(0),
        }
    }

    /// What was counted since the last call; `None` if nothing was. The flag is set after the counts, and taken before them.
    fn take(&self) -> Option<[u32; BUCKETS]> {
        let has_counts = self.has_counts.load(Ordering::Relaxed)
            && self.has_counts.swap(false, Ordering::Acquire);
        has_counts.then(|| {
            self.counts
                .each_ref()
                .map(|it| it.swap(0, Ordering::Relaxed))
        })
    }

    fn value(&self, latency_us: u64) -> LatencyValue<'_> {
        let floor_us = self.floor_us.load(Ordering::Relaxed);
        let ms = |us: u64| us.saturating_add(500) / 1_000;
        LatencyValue {
            upstream: &self.key,
            hash: self.hash,
            latency_ms: ms(latency_us),
            queue_ms: (floor_us > 0).then(|| ms(latency_us.saturating_sub(floor_us))),
        }
    }
}

impl WorkerLatencies {
    /// Tells what the worker has counted since its last tick.
    pub(crate) fn count(&mut self, engine: &Engine, all: &Latencies, now: Instant) {
        // One more has the shared state.
        let most = usize::try_from(engine.config().max_upstreams()).unwrap_or(usize::MAX);
        let most = most.saturating_add(1);
        if self.0.len() > most {
            self.0.clear();
        }
        for view in engine.views_in_use(now) {
            let upstream = self.0.entry(view.hash).or_insert_with(|| CountedLatencies {
                cell: all.cell(&view, most),
                // Requests from before histograms were asked for.
                seen: counts_of(&view),
            });
            upstream.add(&view);
        }
    }

    /// Forgets all, because the configuration asks for no histograms any more.
    pub(crate) fn stop(&mut self) {
        if !self.0.is_empty() {
            *self = Self::default();
        }
    }
}

impl CountedLatencies {
    fn add(&mut self, view: &UpstreamView<'_>) {
        let Some(cell) = &self.cell else { return };
        let counts = counts_of(view);
        if counts == self.seen {
            return;
        }
        for ((cell, now), before) in cell.counts.iter().zip(counts).zip(self.seen) {
            let growth = now.wrapping_sub(before);
            if growth > 0 {
                cell.fetch_add(growth.into(), Ordering::Relaxed);
            }
        }
        self.seen = counts;
        cell.floor_us.store(micros(view), Ordering::Relaxed);
        cell.has_counts.swap(true, Ordering::Release);
    }
}

fn counts_of(view: &UpstreamView<'_>) -> [u16; BUCKETS] {
    let mut counts = [0; BUCKETS];
    for (bucket, count) in view.tally.latency.filled() {
        if let Some(to) = counts.get_mut(bucket) {
            *to = count;
        }
    }
    counts
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and NaN becomes 0"
)]
fn micros(view: &UpstreamView<'_>) -> u64 {
    (view.learned.limit.floor.mean.get() * 1e6) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(counts: &[(usize, u32)]) -> Latencies {
        let key = UpstreamKey {
            cluster: "web".to_owned(),
            route: None,
        };
        let cell = LatencyCell::new(1, &key);
        for (bucket, count) in counts {
            cell.counts[*bucket].store(*count, Ordering::Relaxed);
        }
        cell.floor_us.store(10_000, Ordering::Relaxed);
        cell.has_counts.store(true, Ordering::Relaxed);
        Latencies(Mutex::new(HashMap::from([(1, Arc::new(cell))])))
    }

    fn told(latencies: &Latencies) -> Vec<(u64, Option<u64>)> {
        let mut told = Vec::new();
        latencies.tell(|value| told.push((value.latency_ms, value.queue_ms)));
        told
    }

    #[test]
    fn each_latency_is_told_once_with_what_it_is_above_the_floor() {
        // The buckets around 8 and 28 milliseconds.
        let at = |us: u64| {
            let ends = Histogram::middles();
            ends.take_while(|middle| *middle < us).count()
        };
        let latencies = cells(&[(at(7_500), 2), (at(28_000), 1)]);
        let all = told(&latencies);
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].1, Some(0), "no queue is shorter than none");
        assert_eq!(all[2].1, Some(all[2].0 - 10));
        assert!(told(&latencies).is_empty());
    }

    #[test]
    fn of_too_many_a_sample_with_the_same_shares_is_told() {
        let latencies = cells(&[(20, 9_000), (40, 1_000)]);
        let all = told(&latencies);
        let most = usize::try_from(MOST_VALUES).unwrap();
        assert_eq!(all.len(), most);
        let slow = all.iter().filter(|value| **value == all[most - 1]).count();
        assert_eq!(slow, 10);
    }
}
