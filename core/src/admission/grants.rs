//! Requests that the leader grants one by one: probes of an open breaker, and requests under a limit below one.
//!
//! The leader publishes a ceiling, and the workers count the grants that they claim together. So the whole proxy admits exactly as many,
//! whichever worker has the requests. A worker that sees the count at the ceiling does not read it again before the ceiling moves.

use super::KnownRequest;
use crate::counters::{Counter, Counters};
use crate::ladder::Rank;
use crate::request::Request;
use crate::shed::ShedReason;
use crate::slot::Slot;
use crate::tally::Count;
use crate::upstream::UpstreamId;

/// Whether a request may go as a probe.
pub(super) fn take_probe(
    slot: &mut Slot,
    upstream: UpstreamId,
    counters: &mut impl Counters,
    ceiling: u64,
) -> bool {
    let granted = claim(slot, upstream, counters, ceiling);
    if granted {
        slot.tally.add(Count::ProbesSent, 1);
    }
    granted
}

/// Why a request with a place is refused all the same: the limit is below one, and no grant is left. Requests that are more
/// important than the marginal ones need no grant, because the capacity is enough for all of them; what they claim is missing for the others.
#[inline(always)]
pub(super) fn refusal(
    slot: &mut Slot,
    upstream: UpstreamId,
    counters: &mut impl Counters,
    known: &mut KnownRequest,
    request: &mut impl Request,
) -> Option<ShedReason> {
    if slot.grants.is_none() {
        return None;
    }
    refusal_below_one(slot, upstream, counters, known, request)
}

#[cold]
fn refusal_below_one(
    slot: &mut Slot,
    upstream: UpstreamId,
    counters: &mut impl Counters,
    known: &mut KnownRequest,
    request: &mut impl Request,
) -> Option<ShedReason> {
    let ceiling = slot.grants?;
    let level = known.level(slot, request);
    let (ladder, heavy) = (slot.ladder, &mut slot.heavy);
    let mut rank_of =
        |level| ladder.rank(level, || request.cohort().map(|cohort| heavy.place(cohort)));
    let is_granted = match rank_of(level) {
        Rank::Below => false,
        Rank::Marginal => claim(slot, upstream, counters, ceiling),
        Rank::Above => {
            let _ = counters.raise(upstream, Counter::Grants);
            true
        }
    };
    if is_granted {
        return None;
    }
    let margin = ladder.margin().level;
    let first_fits = level.first_attempt() > margin;
    Some(super::reason(level, margin, first_fits))
}

/// Claims a grant, if the count of grants stays within the ceiling. Where the count is not shared, each worker has one grant under
/// each ceiling.
fn claim(
    slot: &mut Slot,
    upstream: UpstreamId,
    counters: &mut impl Counters,
    ceiling: u64,
) -> bool {
    if slot.gate.is_exhausted(ceiling) {
        return false;
    }
    match counters.raise(upstream, Counter::Grants) {
        Some(claimed) if claimed <= ceiling => true,
        Some(_) => {
            counters.lower(upstream, Counter::Grants, 1);
            slot.gate.exhaust(ceiling);
            false
        }
        None => slot.gate.take_own_grant(ceiling),
    }
}
