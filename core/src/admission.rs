//! The way in: breaker, then limit, then who the request is, then whether a refusal is enforced.
//!
//! Ordered by cost. An open breaker asks nothing of the host; the limit needs the shared count; only under
//! pressure is the request asked for its criticality and whether it is a retry.

use core::time::Duration;

use crate::breaker::Passage;
use crate::config::{Mode, Policy};
use crate::counters::{Counter, Counters};
use crate::level::Level;
use crate::permit::Purpose;
use crate::request::Request;
use crate::shed::ShedReason;
use crate::slot::{Share, Slot};
use crate::tally::Count;
use crate::time::Instant;
use crate::upstream::UpstreamId;

/// The cap on the share shed does not bind below this many arrivals in a tick.
const MIN_SHARE_ARRIVALS: u32 = 10;
/// When to come back after a refusal for want of room: a queue drains in about so long.
const RETRY_AFTER_LOAD: Duration = Duration::from_secs(1);

/// What the laws say, whatever the mode. `load` is the proxy's in-flight with this request, where it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Admit {
        load: u32,
        purpose: Purpose,
    },
    Refuse {
        reason: ShedReason,
        wait: Duration,
        load: Option<u32>,
    },
}

/// Asks breaker and limit.
pub(crate) fn ask(
    slot: &mut Slot,
    upstream: UpstreamId,
    request: &mut impl Request,
    counters: &mut impl Counters,
    now: Instant,
) -> Answer {
    let ramp = match slot.gate.passage(now) {
        Passage::Free => u32::MAX,
        Passage::Ramp(limit) => limit,
        Passage::Refuse(wait) => {
            return Answer::Refuse {
                reason: ShedReason::BreakerOpen,
                wait,
                load: None,
            };
        }
        Passage::Probe(ceiling) if take_probe(slot, upstream, counters, ceiling) => {
            return Answer::Admit {
                load: raise(slot, upstream, counters),
                purpose: Purpose::Probe,
            };
        }
        Passage::Probe(_) => {
            return Answer::Refuse {
                reason: ShedReason::BreakerHalfOpen,
                wait: RETRY_AFTER_LOAD,
                load: None,
            };
        }
    };
    let load = raise(slot, upstream, counters);
    slot.see_peak(load);
    if load > ramp {
        return Answer::Refuse {
            reason: ShedReason::BreakerHalfOpen,
            wait: RETRY_AFTER_LOAD,
            load: Some(load),
        };
    }
    if load <= slot.ladder.free() {
        return Answer::Admit {
            load,
            purpose: Purpose::Normal,
        };
    }
    let level = Level::new(request.criticality(), request.is_retry());
    slot.tally.add_demand(level);
    if load <= slot.ladder.limit_of(level, || request.cohort()) {
        return Answer::Admit {
            load,
            purpose: Purpose::Normal,
        };
    }
    let reason = if level.is_retry()
        && load
            <= slot
                .ladder
                .limit_of(level.first_attempt(), || request.cohort())
    {
        ShedReason::Retry
    } else if level < slot.ladder.margin().level {
        ShedReason::Criticality
    } else {
        ShedReason::Limit
    };
    Answer::Refuse {
        reason,
        wait: RETRY_AFTER_LOAD,
        load: Some(load),
    }
}

/// What becomes of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enforcement {
    /// The request is shed.
    Shed,
    /// It is let in all the same.
    LetIn(Purpose),
}

/// Whether a refusal is enforced, and counts it.
pub(crate) fn enforce(
    slot: &mut Slot,
    policy: &Policy,
    reason: ShedReason,
    request: &mut impl Request,
    rng: &mut fastrand::Rng,
) -> Enforcement {
    if request.is_health_check() {
        slot.tally.add(Count::Exempt, 1);
        return Enforcement::LetIn(Purpose::Exempt);
    }
    let share = policy.enforcement().as_f64();
    let enforced = policy.mode() == Mode::Enforce && (share >= 1.0 || rng.f64() < share);
    if enforced && is_capped(slot.refused_share, policy.shed().max_share().as_f64()) {
        slot.tally.add(Count::Spared, 1);
        return Enforcement::LetIn(Purpose::Normal);
    }
    slot.tally.add_shed(reason, enforced);
    if !enforced {
        return Enforcement::LetIn(Purpose::Normal);
    }
    slot.refused_share.part = slot.refused_share.part.saturating_add(1);
    Enforcement::Shed
}

fn is_capped(share: Share, max_share: f64) -> bool {
    max_share < 1.0
        && (max_share <= 0.0
            || share.whole >= MIN_SHARE_ARRIVALS
                && f64::from(share.part) + 1.0 > max_share * f64::from(share.whole))
}

/// Counts one more in flight and says how many that makes in the proxy. Where the host shares no count, the own
/// requests times the workers stand for all.
pub(crate) fn raise(slot: &mut Slot, upstream: UpstreamId, counters: &mut impl Counters) -> u32 {
    if let Some(value) = counters.raise(upstream, Counter::InFlight) {
        slot.shared = true;
        return u32::try_from(value).unwrap_or(u32::MAX);
    }
    slot.shared = false;
    slot.in_flight
        .saturating_add(1)
        .saturating_mul(u32::from(slot.workers))
}

/// Takes back what [`raise`] counted.
pub(crate) fn undo(slot: &Slot, upstream: UpstreamId, counters: &mut impl Counters) {
    if slot.shared {
        counters.lower(upstream, Counter::InFlight, 1);
    }
}

fn take_probe(
    slot: &mut Slot,
    upstream: UpstreamId,
    counters: &mut impl Counters,
    ceiling: u64,
) -> bool {
    if slot.exhausted == Some(ceiling) {
        return false;
    }
    let granted = match counters.raise(upstream, Counter::Probes) {
        Some(sent) if sent <= ceiling => true,
        Some(_) => {
            counters.lower(upstream, Counter::Probes, 1);
            slot.exhausted = Some(ceiling);
            false
        }
        None => slot.gate.take_own_probe(ceiling),
    };
    if granted {
        slot.tally.add(Count::ProbesSent, 1);
    }
    granted
}
