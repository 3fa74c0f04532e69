//! Views of the engine's state, for metrics, tests and pages.

use core::time::Duration;
use std::sync::Arc;

use super::Engine;
use crate::leader::{Leader, RequestsUnderWay};
use crate::slot::Slot;
use crate::snapshot::{Snapshot, UpstreamSnapshot, UpstreamView};
use crate::time::Instant;
use crate::upstream::{UpstreamId, UpstreamKey};

impl Engine {
    /// [`crate::UpstreamKey::hash`] of an upstream's name. At the cap a handle may pass from one upstream to another; the hash
    /// tells them apart.
    #[must_use]
    pub fn hash(&self, upstream: UpstreamId) -> u64 {
        self.registry.slot(upstream).hash
    }

    /// The name of an upstream; all upstreams beyond the cap have one in common. A clone shares the engine's copy.
    #[must_use]
    pub fn key(&self, upstream: UpstreamId) -> &Arc<UpstreamKey> {
        &self.registry.slot(upstream).key
    }

    /// Whether the breaker of an upstream has opened at some time, as far as this worker knows.
    #[must_use]
    pub fn has_tripped(&self, upstream: UpstreamId) -> bool {
        let gate = &self.registry.slot(upstream).gate;
        gate.epoch() != 0 || gate.trip().is_some()
    }

    /// Requests whose upstream had to share the state of all upstreams beyond the cap.
    #[must_use]
    pub const fn overflowed(&self) -> u64 {
        self.registry.overflowed()
    }

    /// The present state of every upstream, in the order of ids, without copies: for metrics, on every tick.
    pub fn views(&self, now: Instant) -> impl Iterator<Item = UpstreamView<'_>> {
        self.registry.slots().map(move |it| view(it, now))
    }

    /// The upstreams for which this worker may have counted anything since the last tick.
    pub fn views_in_use(&self, now: Instant) -> impl Iterator<Item = UpstreamView<'_>> {
        self.registry.awake().map(move |it| view(it, now))
    }

    /// Leads: the present state of every upstream in the order of hashes, each with the requests that the live workers
    /// reported as under way ([`Engine::under_way`]). One walk: a search for each upstream would take half of a leader's time.
    pub fn views_under_way(
        &self,
        now: Instant,
    ) -> impl Iterator<Item = (UpstreamView<'_>, Option<RequestsUnderWay>)> {
        let leader = self.leader.iter();
        let mut ahead = leader.flat_map(Leader::all_under_way).peekable();
        self.registry.slots_by_hash().map(move |(id, slot)| {
            while ahead.next_if(|(hash, _)| *hash < slot.hash).is_some() {}
            let found = ahead.next_if(|(hash, _)| *hash == slot.hash);
            let under_way = found.and_then(|(_, under_way)| under_way);
            (view((id, slot), now), under_way)
        })
    }

    /// Values at this instant.
    #[must_use]
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        let upstreams = self.registry.slots().map(|(id, slot)| UpstreamSnapshot {
            id,
            key: UpstreamKey::clone(&slot.key),
            in_flight: slot.in_flight,
            open: slot.open,
            uploading: slot.uploading,
            limit: slot.ladder.limit(),
            limit_reason: self
                .leader
                .as_ref()
                .and_then(|leader| leader.limit_reason(slot.hash)),
            breaker: slot.gate.state().phase(now),
            open_interval: Duration::from_millis(slot.learned.breaker.open_interval_ms().into()),
            learned: slot.learned,
            tally: slot.tally.clone(),
        });
        Snapshot {
            upstreams: upstreams.collect(),
            overflowed: self.registry.overflowed(),
        }
    }
}

fn view((id, slot): (UpstreamId, &Slot), now: Instant) -> UpstreamView<'_> {
    UpstreamView {
        id,
        key: &slot.key,
        hash: slot.hash,
        limit: slot.ladder.limit(),
        breaker: slot.gate.state().phase(now),
        learned: &slot.learned,
        tally: &slot.tally,
    }
}
