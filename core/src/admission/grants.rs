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
    slot.grants?;
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
    let (ladder, heavy) = (slot.ladder, slot.heavy());
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

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use crate::config::Config;
    use crate::ladder::Margin;
    use crate::level::Level;
    use crate::time::Instant;
    use crate::{
        Counter, Counters, Criticality, Decision, Directive, Directives, Engine, GivenRequest,
        Outcome, ShedReason, Unshared, UpstreamId, UpstreamKey,
    };

    /// The counts that all workers share.
    #[derive(Default)]
    struct Counts {
        in_flight: u64,
        grants: u64,
        /// How often the count of grants was changed.
        changes: u32,
    }

    impl Counts {
        fn of(&mut self, counter: Counter) -> &mut u64 {
            match counter {
                Counter::InFlight => &mut self.in_flight,
                Counter::Grants => {
                    self.changes += 1;
                    &mut self.grants
                }
            }
        }
    }

    impl Counters for Counts {
        fn raise(&mut self, _upstream: UpstreamId, counter: Counter) -> Option<u64> {
            let count = self.of(counter);
            *count += 1;
            Some(*count)
        }

        fn lower(&mut self, _upstream: UpstreamId, counter: Counter, by: u64) {
            *self.of(counter) -= by;
        }

        fn value(&mut self, _upstream: UpstreamId, counter: Counter) -> Option<u64> {
            Some(*self.of(counter))
        }
    }

    const MARGINAL: Level = Level::new(Criticality::Critical, false);

    /// A worker that was granted requests until the count reaches `ceiling`, by a leader that knows of this demand.
    fn granted(worker: u64, ceiling: Option<u64>, margin: Margin) -> (Engine, UpstreamId) {
        let text = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#;
        let config = Config::from_json(text.as_bytes()).unwrap();
        let mut engine = Engine::of_many(config, Instant::ZERO, worker);
        let web = engine.upstream("web", None, Instant::ZERO);
        let directive = Directive {
            grants: ceiling,
            margin,
            reserve: 3,
            ..Directive::unknown(UpstreamKey::hash("web", None))
        };
        let directives = Directives::new(9, Instant::ZERO, [directive]);
        assert_eq!(
            engine.adopt(&directives, Instant::ZERO).len(),
            usize::from(ceiling.is_some())
        );
        (engine, web)
    }

    /// The reason for which a request is shed, if it is; if not, it is answered at once.
    fn ask(
        engine: &mut Engine,
        counts: &mut impl Counters,
        (criticality, retry): (Criticality, bool),
        now: Instant,
    ) -> Option<ShedReason> {
        let web = engine.upstream("web", None, now);
        let mut request = GivenRequest {
            criticality,
            retry,
            ..GivenRequest::default()
        };
        match engine.admit(web, &mut request, counts, now) {
            Decision::Admit(permit) => {
                engine.complete(permit, Outcome::Success, counts, now);
                None
            }
            Decision::Shed(shed) => Some(shed.reason),
        }
    }

    #[test]
    fn all_workers_together_admit_as_many_as_are_granted() {
        let mut counts = Counts {
            grants: 7,
            ..Counts::default()
        };
        let mut workers = [1, 2].map(|worker| granted(worker, Some(10), Margin::NONE).0);
        let usual = (Criticality::Critical, false);
        let asked = (0..8).map(|turn| {
            let worker = &mut workers[turn % 2];
            ask(worker, &mut counts, usual, Instant::ZERO)
        });
        let refused = asked.filter(|refused| *refused == Some(ShedReason::Limit));
        assert_eq!(refused.count(), 5);
        assert_eq!((counts.grants, counts.in_flight), (10, 0));
        let changes = counts.changes;
        ask(&mut workers[0], &mut counts, usual, Instant::ZERO);
        assert_eq!(counts.changes, changes, "the count is at the ceiling");
    }

    #[test]
    fn a_limit_of_one_or_more_needs_no_grants() {
        let (mut engine, _) = granted(1, None, Margin::NONE);
        let mut counts = Counts::default();
        let usual = (Criticality::Critical, false);
        let all = (0..9).all(|_| ask(&mut engine, &mut counts, usual, Instant::ZERO).is_none());
        assert!(all);
        assert_eq!(counts.changes, 0);
    }

    #[test]
    fn more_important_requests_need_no_grant_and_lesser_ones_get_none() {
        use Criticality::{Critical, CriticalPlus, Sheddable};
        let margin = Margin {
            level: MARGINAL,
            share: 0.5,
        };
        for (asked, ceiling, expected, claimed) in [
            ((Critical, false), 1, None, 1),
            ((Critical, false), 0, Some(ShedReason::Limit), 0),
            ((Critical, true), 1, Some(ShedReason::Retry), 0),
            ((Sheddable, false), 1, Some(ShedReason::Criticality), 0),
            ((CriticalPlus, false), 0, None, 1),
        ] {
            let (mut engine, _) = granted(1, Some(ceiling), margin);
            let mut counts = Counts::default();
            let found = ask(&mut engine, &mut counts, asked, Instant::ZERO);
            assert_eq!(
                (found, counts.grants),
                (expected, claimed),
                "{asked:?} {ceiling}"
            );
            assert_eq!(counts.in_flight, 0);
        }
    }

    #[test]
    fn a_worker_that_counts_alone_has_one_grant_under_each_ceiling() {
        let (mut engine, _) = granted(1, Some(10), Margin::NONE);
        let usual = (Criticality::Critical, false);
        let found = [(); 3].map(|()| ask(&mut engine, &mut Unshared, usual, Instant::ZERO));
        assert_eq!(
            found,
            [None, Some(ShedReason::Limit), Some(ShedReason::Limit)]
        );
    }

    /// No other worker may take the lead for a while; a request must not depend on it.
    #[test]
    fn without_a_leader_there_is_one_place_again() {
        let (mut engine, web) = granted(1, Some(0), Margin::NONE);
        let mut counts = Counts::default();
        let usual = (Criticality::Critical, false);
        for (seconds, expected) in [(1, Some(ShedReason::Limit)), (2, None), (3, None)] {
            let now = Instant::ZERO + Duration::from_secs(seconds);
            engine.tick(&mut counts, now);
            let found = ask(&mut engine, &mut counts, usual, now);
            assert_eq!(found, expected, "{seconds} s");
            assert_eq!(engine.has_grants(web), expected.is_some());
        }
    }
}
