//! When events happen, and which of them are out of date.

use std::time::Duration;

use tidegate_core::Instant;

use super::event::WorldEvent;
use super::run::SimWorld;
use crate::rng;
use crate::scenario::Network;

impl SimWorld<'_> {
    /// How long a message takes for one hop.
    pub(super) fn hop(&mut self) -> Duration {
        let Network { delay, jitter } = self.network;
        if jitter.is_zero() {
            return delay;
        }
        delay + jitter.mul_f64(rng::unit(&mut self.chance.network))
    }

    pub(super) fn push(&mut self, at: Instant, what: WorldEvent) {
        self.queue.push(at, (what, self.generation(what)));
    }

    /// The generation of the attempt or call that an event is about.
    pub(super) fn generation(&self, what: WorldEvent) -> u32 {
        match what {
            _ if self.tally.is_none() => 0,
            WorldEvent::Again { call } => self.calls.generation(call),
            _ => what
                .attempt()
                .map_or(0, |attempt| self.attempts.generation(attempt)),
        }
    }

    pub(super) fn push_hop(&mut self, what: WorldEvent) {
        let at = self.now + self.hop();
        self.push(at, what);
    }

    /// As [`Self::push_hop`], but not before `due`: messages on one connection do not overtake each other. Returns
    /// the time of arrival.
    pub(super) fn push_hop_from(
        &mut self,
        from: Instant,
        due: Instant,
        what: WorldEvent,
    ) -> Instant {
        let at = (from + self.hop()).max(due);
        self.push(at, what);
        at
    }

    pub(super) fn push_after(&mut self, wait: Duration, what: WorldEvent) {
        self.push(self.now + wait, what);
    }
}
