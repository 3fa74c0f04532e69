//! The counts that the workers of a simulated proxy share, as those of a real one share its gauges.

use std::collections::BTreeMap;

use tidegate_core::{Counter, Counters, UpstreamId};

use crate::scenario::Counting;

/// One set of counts, by the upstream's id: every worker meets the upstreams in the same order.
#[derive(Debug)]
pub(super) struct CountSet {
    counting: Counting,
    values: Vec<[u64; 2]>,
    /// The worker that counts now, ...
    worker: usize,
    /// ... and what each worker has added to the requests in flight, by upstream, modulo 2^64.
    own: BTreeMap<(usize, UpstreamId), u64>,
}

impl CountSet {
    pub(super) const fn new(counting: Counting) -> Self {
        Self {
            counting,
            values: Vec::new(),
            worker: 0,
            own: BTreeMap::new(),
        }
    }

    /// The same counts, for this worker.
    pub(super) const fn of(&mut self, worker: usize) -> &mut Self {
        self.worker = worker;
        self
    }

    /// Subtracts what a crashed worker had in flight, as the filter's reconciliation does after some time.
    pub(super) fn forget(&mut self, worker: usize) {
        let gone = self.own.extract_if(.., |(owner, _), _| *owner == worker);
        let gone: Vec<_> = gone.collect();
        for ((_, upstream), count) in gone {
            if let Some(cell) = self.cell(upstream, Counter::InFlight) {
                *cell = cell.wrapping_sub(count);
            }
        }
    }

    fn note(&mut self, upstream: UpstreamId, counter: Counter, by: u64) {
        if counter == Counter::InFlight {
            let own = self.own.entry((self.worker, upstream)).or_default();
            *own = own.wrapping_add(by);
        }
    }

    /// The value of a counter; none where workers do not share it. A count that fell below zero reads as 2^64 less the
    /// deficit.
    pub(super) fn read(&self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        let pair = self.values.get(upstream.index());
        let value = pair.map_or(0, |pair| match counter {
            Counter::InFlight => pair[0],
            Counter::Grants => pair[1],
        });
        (self.counting == Counting::Shared).then_some(value)
    }

    fn cell(&mut self, upstream: UpstreamId, counter: Counter) -> Option<&mut u64> {
        if self.counting == Counting::Unshared {
            return None;
        }
        if self.values.len() <= upstream.index() {
            self.values.resize(upstream.index() + 1, [0; 2]);
        }
        let [in_flight, probes] = self.values.get_mut(upstream.index())?;
        Some(match counter {
            Counter::InFlight => in_flight,
            Counter::Grants => probes,
        })
    }
}

impl Counters for CountSet {
    fn raise(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        let cell = self.cell(upstream, counter)?;
        *cell = cell.wrapping_add(1);
        let value = *cell;
        self.note(upstream, counter, 1);
        Some(value)
    }

    fn lower(&mut self, upstream: UpstreamId, counter: Counter, by: u64) {
        if let Some(cell) = self.cell(upstream, counter) {
            *cell = cell.wrapping_sub(by);
            self.note(upstream, counter, by.wrapping_neg());
        }
    }

    fn value(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        self.read(upstream, counter)
    }
}
