//! Views of the engine's state, for metrics, tests and pages.

use core::time::Duration;
use std::sync::Arc;

use super::Engine;
use crate::exchange::Directive;
use crate::leader::RequestsUnderWay;
use crate::on_demand::Blank as _;
use crate::registry::{LedUpstream, Unshown};
use crate::slot::{Slot, within};
use crate::snapshot::{Snapshot, UpstreamSnapshot, UpstreamView};
use crate::tally::Counted;
use crate::time::Instant;
use crate::upstream::{UpstreamId, UpstreamKey};

impl Engine {
    /// [`crate::UpstreamKey::hash`] of an upstream's name. At the cap a handle may pass from one upstream to another; the hash
    /// tells them apart.
    #[must_use]
    pub fn hash(&self, upstream: UpstreamId) -> u64 {
        self.registry.hash(upstream)
    }

    /// The name of an upstream; all upstreams beyond the cap have one in common. A clone shares the engine's copy.
    #[must_use]
    pub fn key(&self, upstream: UpstreamId) -> &Arc<UpstreamKey> {
        self.registry.key(upstream)
    }

    /// The same, if requests of this worker have asked for it, and not of others alone.
    #[must_use]
    pub fn served_key(&self, upstream: UpstreamId) -> Option<&Arc<UpstreamKey>> {
        self.registry.served_key(upstream)
    }

    /// Whether requests of an upstream have been granted one by one at some time, as far as this worker knows: its breaker has
    /// opened, or its limit is below one.
    #[must_use]
    pub fn has_grants(&self, upstream: UpstreamId) -> bool {
        if let Some(led) = self.registry.led(upstream) {
            let directive = self.directive(led);
            return directive.is_some_and(Directive::has_grants);
        }
        let slot = self.registry.slot(upstream);
        slot.gate.epoch() != 0 || slot.gate.trip().is_some() || slot.grants.is_some()
    }

    /// Requests whose upstream had to share the state of all upstreams beyond the cap.
    #[must_use]
    pub const fn overflowed(&self) -> u64 {
        self.registry.overflowed()
    }

    /// The present state of every upstream of which anything is known, without copies.
    pub fn views(&self, now: Instant) -> impl Iterator<Item = UpstreamView<'_>> {
        let served = self.registry.slots().map(move |it| view(it, now));
        let led = self.registry.all_led();
        served.chain(led.filter_map(move |(id, led)| self.view_of_led(id, led, now)))
    }

    /// What this worker or another one last decided about an upstream without a slot.
    fn directive(&self, led: &LedUpstream) -> Option<&Directive> {
        let leader = self.leader.as_ref();
        let decided = leader.and_then(|leader| leader.directive(led.hash));
        decided.or_else(|| self.registry.unseen(led.hash))
    }

    fn view_of_led<'a>(
        &'a self,
        id: UpstreamId,
        led: &'a LedUpstream,
        now: Instant,
    ) -> Option<UpstreamView<'a>> {
        let directive = self.directive(led)?;
        let learned = &directive.learned;
        let ladder = within(directive.ladder(), self.config.policy(led.rule), learned);
        Some(UpstreamView {
            id,
            key: &led.key,
            hash: led.hash,
            limit: ladder.limit(),
            breaker: directive.breaker.phase(now),
            learned,
            tally: Counted::blank(),
        })
    }

    /// The upstreams for which this worker may have counted anything since the last tick.
    pub fn views_in_use(&self, now: Instant) -> impl Iterator<Item = UpstreamView<'_>> {
        self.registry.awake().map(move |it| view(it, now))
    }

    /// How many upstreams have a state of their own.
    #[must_use]
    pub const fn upstreams(&self) -> usize {
        self.registry.len()
    }

    /// Leads: the handle and hash of every upstream in the order of hashes, with the requests that the live workers
    /// reported as under way ([`Engine::under_way`]).
    pub fn all_under_way(
        &self,
    ) -> impl Iterator<Item = (UpstreamId, u64, Option<RequestsUnderWay>)> {
        let ids = self.registry.ids_by_hash().iter();
        // In the order of hashes, one is found beside the last one.
        ids.map(|(hash, id)| (*id, *hash, self.under_way(*hash)))
    }

    /// Leads: the present state of every upstream that may have changed since it was [shown](Engine::mark_shown), in the order of
    /// hashes, each with the requests that the live workers reported as under way.
    pub fn views_to_show(
        &self,
        now: Instant,
    ) -> impl Iterator<Item = (UpstreamView<'_>, Option<RequestsUnderWay>)> {
        self.registry.unshown().filter_map(move |(id, unshown)| {
            let view = match unshown {
                Unshown::Served(slot) => view((id, slot), now),
                Unshown::Led(led) => self.view_of_led(id, led, now)?,
            };
            let under_way = self.under_way(view.hash);
            Some((view, under_way))
        })
    }

    /// Leads: metrics show the present state of an upstream that has no open responses, and whose breaker is closed: it may become
    /// half-open with time alone.
    pub fn mark_shown(&self, upstream: UpstreamId) {
        self.registry.set_shown(upstream, true);
    }

    /// Leads: another leader may have overwritten what metrics show.
    pub fn show_all_again(&self) {
        self.registry.show_all_again();
    }

    /// Values at this instant, of upstreams that requests of this worker have asked for.
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
            tally: Counted::clone(&slot.tally),
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
