//! Which of a worker's requests are in flight.
//!
//! A request is load from the moment the upstream has all of it to the moment that the objective measures. Its latency covers
//! the same part of its life, or Little's law would mix two clocks. Before that, the request is an upload, whose time is the
//! caller's. After that it is open, and no load. Some requests stop being load sooner: uploads that stall, requests that hang
//! since before the breaker opened, requests that later ones overtook, and bodies without an end.
//!
//! ```text
//!  Uploading --request complete--> Waiting --headers--> Answering --measured--> Open --leave--> gone
//!      |                              |                     |                     ^
//!      +----- take_unloading ---------+---------------------+--> held, no load ---+
//! ```
//!
//! Held and open requests are counted together in [`Slot::open`].

use core::time::Duration;

use super::{COARSE_BUCKETS, Slot};
use crate::ablation::{Mechanism, is_off};
use crate::ages::Ages;
use crate::config::Until;
use crate::permit::{Latency, LedgerPlace, Permit, Purpose, RequestStage};
use crate::tally::Count;
use crate::time::Instant;
use crate::upstream::UpstreamId;

const NANOS_PER_MICRO: u64 = 1_000;

/// A request at its admission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmittedRequest {
    /// The proxy's requests in flight, this one included.
    pub(crate) load: u32,
    pub(crate) purpose: Purpose,
    /// How long its caller waits, if it is admitted to find out whether that is too short.
    pub(crate) explored: Option<Duration>,
    /// Whether a body follows its headers.
    pub(crate) has_body: bool,
}

/// What a step of a request means for the proxy-wide count of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Shift {
    /// Nothing.
    Same,
    /// One more.
    Raise,
    /// One less.
    Lower,
}

impl Slot {
    /// A request is admitted.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        upstream: UpstreamId,
        entry: AdmittedRequest,
        now: Instant,
    ) -> Permit {
        self.tally.add(Count::Admitted, 1);
        let (stage, place) = if entry.purpose == Purpose::Exempt {
            // It does not count as load, or a caller that poses as a health checker could take all places.
            self.exempt = self.exempt.saturating_add(1);
            self.open = self.open.saturating_add(1);
            (RequestStage::Open, LedgerPlace::NONE)
        } else if entry.has_body {
            self.uploading = self.uploading.saturating_add(1);
            let horizon = self.upload_horizon.get();
            let uploads = self.uploads.get_or_insert_with(|| ledger(horizon));
            (RequestStage::Uploading, uploads.enter(now))
        } else {
            self.count_in_flight(1, now);
            (RequestStage::Waiting, self.waiting.enter(now))
        };
        Permit {
            upstream,
            started_at: now,
            stage,
            place,
            latency: Latency::Running,
            load: entry.load,
            epoch: self.gate.epoch(),
            purpose: entry.purpose,
            explored: entry.explored,
            shared: self.shared && entry.purpose != Purpose::Exempt,
            answer: None,
        }
    }

    /// The upstream has the whole request: its clock starts.
    pub(crate) fn start(&mut self, permit: &mut Permit, now: Instant) -> Shift {
        if permit.stage != RequestStage::Uploading {
            return Shift::Same;
        }
        let was_counted = self.leave_ledger(permit, now);
        permit.stage = RequestStage::Waiting;
        permit.started_at = now;
        permit.place = self.waiting.enter(now);
        self.count_in_flight(1, now);
        if was_counted {
            Shift::Same
        } else {
            Shift::Raise
        }
    }

    /// The response headers came, and `until` is what the objective measures.
    #[inline(always)]
    pub(crate) fn answer(&mut self, permit: &mut Permit, until: Until, now: Instant) -> Shift {
        // A hanging upstream may still answer health checks, so these are no sign that the queue moves.
        if permit.purpose != Purpose::Exempt {
            self.last_response = now;
            self.given_up.see_answer();
            self.answered_up_to = self.answered_up_to.max(permit.started_at);
        }
        match permit.stage {
            RequestStage::Answering | RequestStage::Open => Shift::Same,
            // Answered before the request was complete: there is nothing to measure.
            RequestStage::Uploading => self.open(permit, now),
            RequestStage::Waiting if until == Until::Headers => self.measure(permit, now),
            RequestStage::Waiting => {
                if self.waiting.leave(permit.place) {
                    let horizon = self.answering_horizon();
                    let answering = self.answering.get_or_insert_with(|| ledger(horizon));
                    permit.place = answering.enter(now);
                    permit.stage = RequestStage::Answering;
                } else {
                    // It was taken out of the count already, and stays out. It is late at any later moment, too.
                    permit.stage = RequestStage::Open;
                    permit.latency = Latency::Uncounted(now.saturating_since(permit.started_at));
                }
                Shift::Same
            }
        }
    }

    /// The moment that the objective measures: the request no longer counts as load.
    pub(crate) fn measure(&mut self, permit: &mut Permit, now: Instant) -> Shift {
        if matches!(permit.stage, RequestStage::Uploading | RequestStage::Open) {
            return Shift::Same;
        }
        let shift = self.open(permit, now);
        let passed = now.saturating_since(permit.started_at);
        permit.latency = if shift == Shift::Lower {
            Latency::Measured(passed)
        } else {
            Latency::Uncounted(passed)
        };
        shift
    }

    /// A request ended that was open.
    #[inline]
    pub(crate) fn close(&mut self, permit: &Permit) {
        self.end_exemption(permit);
        self.open = self.open.saturating_sub(1);
    }

    fn end_exemption(&mut self, permit: &Permit) {
        if permit.purpose == Purpose::Exempt {
            self.exempt = self.exempt.saturating_sub(1);
        }
    }

    /// A request ended.
    pub(crate) fn leave(&mut self, permit: &Permit, now: Instant) -> Shift {
        self.end_exemption(permit);
        if !self.leave_ledger(permit, now) {
            return Shift::Same;
        }
        if permit.stage != RequestStage::Uploading {
            // It was in flight until now, and has no latency that was measured.
            let waited = now.saturating_since(permit.started_at);
            self.tally.add_unanswered(waited);
        }
        Shift::Lower
    }

    /// A request no longer counts as load, but has not ended.
    fn open(&mut self, permit: &mut Permit, now: Instant) -> Shift {
        let was_counted = self.leave_ledger(permit, now);
        permit.stage = RequestStage::Open;
        self.open = self.open.saturating_add(1);
        if was_counted {
            Shift::Lower
        } else {
            Shift::Same
        }
    }

    /// Takes a request out of its ledger. Returns whether the proxy-wide count includes it.
    fn leave_ledger(&mut self, permit: &Permit, now: Instant) -> bool {
        let counted = match permit.stage {
            RequestStage::Uploading => {
                let counted = leave(&mut self.uploads, permit);
                self.uploading = self.uploading.saturating_sub(u32::from(counted));
                counted
            }
            RequestStage::Waiting => self.waiting.leave(permit.place),
            RequestStage::Answering => leave(&mut self.answering, permit),
            RequestStage::Open => false,
        };
        if !counted {
            self.open = self.open.saturating_sub(1);
        } else if permit.stage != RequestStage::Uploading {
            self.count_in_flight(-1, now);
        }
        counted
    }

    /// Takes requests that do not count as load out of the count in flight, and returns how many: uploads that take longer than answers
    /// may, requests that hang since before the breaker opened, requests that later ones overtook, and bodies that continue for
    /// [`super::ANSWERING_FOR`]. A recovered upstream does not know of the requests that hang. Their callers wait for timeouts,
    /// and until then these requests would take the places of others that the upstream could serve.
    pub(crate) fn take_unloading(&mut self, now: Instant) -> u32 {
        let streams = take_beyond(&mut self.answering, now);
        if streams > 0 {
            let horizon = self.answering_horizon();
            self.tally.add_unmeasured(streams, horizon);
        }
        let waiting = if core::mem::take(&mut self.write_off) && !is_off(Mechanism::WriteOff) {
            self.take_hanging(now)
        } else if let Some(age) = self.overtaken(now) {
            let overtaken =
                self.waiting
                    .take_entered_by(self.answered_up_to, self.hang_after.get(), now);
            if overtaken > 0 {
                self.tally.add_unmeasured(overtaken, age);
            }
            overtaken
        } else {
            0
        };
        let taken = streams.saturating_add(waiting);
        if taken > 0 {
            self.count_in_flight(-i32::try_from(taken).unwrap_or(i32::MAX), now);
        }
        self.open = self.open.saturating_add(taken);
        taken.saturating_add(self.take_slow_uploads(now))
    }

    /// Takes requests that hang since before the breaker opened out of the ledger, and returns how many. Before the breaker opened there may
    /// have been a queue, so a request hangs after a wait that is longer than any queue. A request that entered before one that has been
    /// answered since is in no queue.
    fn take_hanging(&mut self, now: Instant) -> u32 {
        let hanging = self.waiting.take_at_least(self.hang_after.get(), now);
        match self.learned.limit.floor.hang_without_queue() {
            Some(age) if self.knows_later(now) && !is_off(Mechanism::FullSilence) => {
                let passed = self.waiting.take_entered_by(self.answered_up_to, age, now);
                hanging.saturating_add(passed)
            }
            _ => hanging,
        }
    }

    /// Whether requests are known that were answered; after the clock jumped back, no request can be said to be earlier than those.
    fn knows_later(&self, now: Instant) -> bool {
        self.answered_up_to > Instant::ZERO && self.answered_up_to <= now
    }

    /// Takes uploads that take longer than answers may out of the count in flight, and returns how many.
    #[inline]
    pub(crate) fn take_slow_uploads(&mut self, now: Instant) -> u32 {
        if self.uploading == 0 {
            return 0;
        }
        self.take_uploads(now)
    }

    fn take_uploads(&mut self, now: Instant) -> u32 {
        let taken = take_beyond(&mut self.uploads, now);
        self.uploading = self.uploading.saturating_sub(taken);
        self.open = self.open.saturating_add(taken);
        taken
    }

    /// The age from which waiting requests count as overtaken: they wait far beyond the target although later ones have been
    /// answered, so they are in no queue. It would not help to shed other requests because of them.
    fn overtaken(&self, now: Instant) -> Option<Duration> {
        let age = now
            .saturating_since(self.answered_up_to)
            .max(self.hang_after.get());
        // The ledger cannot tell ages beyond its horizon apart.
        let is_in_horizon = age <= self.waiting.horizon();
        let is_overtaken = self.knows_later(now) && is_in_horizon;
        (is_overtaken && !is_off(Mechanism::Overtaken)).then_some(age)
    }

    /// This worker's part of the proxy-wide count: requests in flight, and uploads that may soon be.
    pub(crate) const fn held(&self) -> u32 {
        self.in_flight.saturating_add(self.uploading)
    }

    /// Requests that have not ended.
    pub(crate) const fn unended(&self) -> u32 {
        self.held().saturating_add(self.open)
    }

    /// One more in flight, or one less.
    #[inline]
    pub(crate) fn count_in_flight(&mut self, change: i32, now: Instant) {
        self.integrate(now);
        self.in_flight = self.in_flight.saturating_add_signed(change);
    }

    pub(super) fn integrate(&mut self, now: Instant) {
        if self.in_flight > 0 {
            let micros = now.nanos_since(self.integrated_at) / NANOS_PER_MICRO;
            self.tally.add(
                Count::InFlightMicros,
                micros.saturating_mul(u64::from(self.in_flight)),
            );
        }
        self.integrated_at = self.integrated_at.max(now);
    }
}

fn ledger(horizon: Duration) -> Box<Ages<COARSE_BUCKETS>> {
    Box::new(Ages::new(horizon))
}

fn leave(ledger: &mut Option<Box<Ages<COARSE_BUCKETS>>>, permit: &Permit) -> bool {
    let ledger = ledger.as_mut();
    ledger.is_some_and(|ledger| ledger.leave(permit.place))
}

fn take_beyond(ledger: &mut Option<Box<Ages<COARSE_BUCKETS>>>, now: Instant) -> u32 {
    ledger.as_mut().map_or(0, |ledger| ledger.take_beyond(now))
}

#[cfg(test)]
mod tests;
