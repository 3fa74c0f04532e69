//! Admission: first the breaker, then the limit, then the request's class, then whether a refusal is enforced.
//!
//! The order is by cost. An open breaker needs nothing from the host. The limit needs the shared count. The request's
//! deadline and criticality, and whether it is a retry, are read only when the upstream is near its limit.

mod grants;

use core::time::Duration;

use crate::breaker::Passage;
use crate::config::{Config, Mode, Policy};
use crate::counters::{Counter, Counters};
use crate::deadline::Prospect;
use crate::level::Level;
use crate::permit::Purpose;
use crate::request::Request;
use crate::shed::ShedReason;
use crate::slot::Slot;
use crate::tally::Count;
use crate::time::Instant;
use crate::upstream::UpstreamId;

/// When to retry after a refusal because of load: a queue drains in about this time.
const RETRY_AFTER_LOAD: Duration = Duration::from_secs(1);

/// Requests of health checkers that one worker admits at a time although they would be shed. Any caller can send such a
/// user-agent. A real health checker sends one request every few seconds; more are ordinary requests.
const EXEMPT_BUDGET: u32 = 1;

/// In mode `observe` the class of one request in so many is read, so that rules can be checked before there is any pressure.
const SAMPLED_EVERY: u64 = 64;

/// The decision of breaker and limit, before the mode applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LawDecision {
    Admit {
        /// The proxy's in-flight with this request, which is counted.
        load: u32,
        purpose: Purpose,
        /// How long its caller waits, if it is admitted to find out whether that is too short.
        explored: Option<Duration>,
    },
    Refuse {
        reason: ShedReason,
        wait: Duration,
        load: LoadCheck,
        /// The request's level, if it was read.
        level: Option<Level>,
    },
}

/// What is known of the proxy's in-flight when a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadCheck {
    /// It was not read.
    Unasked,
    /// It was too high, and the request is not counted.
    Seen,
    /// This many with this request, which is counted.
    Counted(u32),
}

/// Counts the class of a request that has arrived, if it is one of the sample. Only observed upstreams are sampled, and only
/// where requests can have different classes.
pub(crate) fn sample_class(
    slot: &mut Slot,
    config: &Config,
    policy: &Policy,
    request: &mut impl Request,
) {
    if policy.mode() == Mode::Observe
        && config.criticality().tells_apart()
        && slot.tally.get(Count::Arrivals) % SAMPLED_EVERY == 1
    {
        slot.tally.add_sample_of(request.criticality());
    }
}

/// Asks breaker and limit.
pub(crate) fn ask(
    slot: &mut Slot,
    upstream: UpstreamId,
    request: &mut impl Request,
    counters: &mut impl Counters,
    now: Instant,
) -> LawDecision {
    let refuse = |reason, wait, load, level| LawDecision::Refuse {
        reason,
        wait,
        load,
        level,
    };
    let ramp = match slot.gate.passage(now) {
        Passage::Free => u32::MAX,
        Passage::Ramp(limit) => limit,
        Passage::Refuse(wait) => {
            return refuse(ShedReason::BreakerOpen, wait, LoadCheck::Unasked, None);
        }
        Passage::Probe(ceiling) if grants::take_probe(slot, upstream, counters, ceiling) => {
            return LawDecision::Admit {
                load: raise(slot, upstream, counters),
                purpose: Purpose::Probe,
                explored: None,
            };
        }
        Passage::Probe(_) => {
            return refuse(
                ShedReason::BreakerHalfOpen,
                RETRY_AFTER_LOAD,
                LoadCheck::Unasked,
                None,
            );
        }
    };
    if slot.is_full_of_open() {
        let reason = ShedReason::MaxOpen;
        return refuse(reason, RETRY_AFTER_LOAD, LoadCheck::Unasked, None);
    }
    let mut known = KnownRequest::default();
    // If the last request found no room, reading the count costs the host less than counting this request and
    // taking that back.
    if let Some(load) = slot.full.then(|| look(upstream, counters)).flatten()
        && let Some(reason) = no_room(slot, (load, ramp), &mut known, request, now)
    {
        return refuse(reason, RETRY_AFTER_LOAD, LoadCheck::Seen, known.level);
    }
    let load = raise(slot, upstream, counters);
    let refused = match no_room(slot, (load, ramp), &mut known, request, now) {
        None => grants::refusal(slot, upstream, counters, &mut known, request),
        refused => refused,
    };
    match refused {
        Some(reason) => {
            let load = LoadCheck::Counted(load);
            refuse(reason, RETRY_AFTER_LOAD, load, known.level)
        }
        None => LawDecision::Admit {
            load,
            purpose: Purpose::Normal,
            explored: match known.prospect {
                Some(Prospect::Explored(left)) => Some(left),
                Some(Prospect::Good | Prospect::Hopeless) | None => None,
            },
        },
    }
}

/// What was read of a request. Each property is read once, and only if it matters.
#[derive(Default)]
struct KnownRequest {
    level: Option<Level>,
    prospect: Option<Prospect>,
}

impl KnownRequest {
    /// The request's level, which counts as demand once.
    fn level(&mut self, slot: &mut Slot, request: &mut impl Request) -> Level {
        *self.level.get_or_insert_with(|| {
            let level = Level::new(request.criticality(), request.is_retry());
            slot.tally.add_demand(level);
            level
        })
    }
}

/// Why there is no room for one request that would make `load` in flight, of `ramp` that a ramp allows; `None`: there is room.
fn no_room(
    slot: &mut Slot,
    (load, ramp): (u32, u32),
    known: &mut KnownRequest,
    request: &mut impl Request,
    now: Instant,
) -> Option<ShedReason> {
    slot.see_load(load);
    if load > ramp {
        return Some(ShedReason::BreakerHalfOpen);
    }
    let is_pressed = load > slot.ladder.free();
    if slot.heeds_deadlines(is_pressed, now) {
        // Before the level is counted as demand: what is shed here needs no capacity.
        let prospect = *known.prospect.get_or_insert_with(|| {
            let left = request.time_left();
            left.map_or(Prospect::Good, |left| slot.judge_deadline(left, load))
        });
        if prospect == Prospect::Hopeless {
            return Some(ShedReason::Deadline);
        }
    }
    if !is_pressed {
        return None;
    }
    let level = known.level(slot, request);
    let (ladder, heavy) = (slot.ladder, slot.heavy());
    let mut place = None;
    let mut limit_of = |level| {
        ladder.limit_of(level, || {
            place = place.or_else(|| request.cohort().map(|cohort| heavy.place(cohort)));
            place
        })
    };
    if load <= limit_of(level) {
        return None;
    }
    let first_fits = load <= limit_of(level.first_attempt());
    Some(reason(level, slot.ladder.margin().level, first_fits))
}

/// Why a request of `level` is refused; `first_fits` tells whether it would not be if it were no retry.
fn reason(level: Level, margin: Level, first_fits: bool) -> ShedReason {
    let for_being_a_retry = first_fits || (level < margin && level.first_attempt() >= margin);
    if level.is_retry() && for_being_a_retry {
        ShedReason::Retry
    } else if level < margin {
        ShedReason::Criticality
    } else {
        ShedReason::Limit
    }
}

/// Whether a refusal is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enforcement {
    /// The request is shed.
    Shed,
    /// It is admitted anyway.
    LetIn(Purpose),
}

/// Decides whether a refusal is enforced, and counts it.
pub(crate) fn enforce(
    slot: &mut Slot,
    policy: &Policy,
    (reason, level): (ShedReason, Option<Level>),
    request: &mut impl Request,
    rng: &mut fastrand::Rng,
) -> Enforcement {
    if slot.exempt < EXEMPT_BUDGET && request.is_health_check() {
        slot.tally.add(Count::Exempt, 1);
        return Enforcement::LetIn(Purpose::Exempt);
    }
    let share = policy.enforcement().as_f64();
    let enforced = policy.mode() == Mode::Enforce && (share >= 1.0 || rng.f64() < share);
    let arrivals = slot.tally.get(Count::Arrivals);
    let max_share = policy.shed().max_share().as_f64();
    if enforced && !slot.take_from_budget(max_share, arrivals) {
        slot.tally.add(Count::Spared, 1);
        return Enforcement::LetIn(Purpose::Normal);
    }
    slot.tally.add_shed(reason, enforced);
    if let Some(level) = level {
        slot.tally.add_shed_of(level.criticality(), enforced);
    }
    if enforced {
        Enforcement::Shed
    } else {
        Enforcement::LetIn(Purpose::Normal)
    }
}

/// Counts one more request in flight and returns the new count of the proxy. If the host shares no count, that is an estimate:
/// this worker's requests times the number of workers.
pub(crate) fn raise(slot: &mut Slot, upstream: UpstreamId, counters: &mut impl Counters) -> u32 {
    if let Some(value) = counters.raise(upstream, Counter::InFlight) {
        slot.shared = true;
        return u32::try_from(value).unwrap_or(u32::MAX);
    }
    slot.shared = false;
    slot.held()
        .saturating_add(1)
        .saturating_mul(u32::from(slot.workers))
}

/// How many would be in flight in the proxy with one more; `None` if the host shares no count.
fn look(upstream: UpstreamId, counters: &mut impl Counters) -> Option<u32> {
    let value = counters.value(upstream, Counter::InFlight)?;
    Some(u32::try_from(value).unwrap_or(u32::MAX).saturating_add(1))
}

/// Takes back what [`raise`] counted.
pub(crate) fn undo(slot: &Slot, upstream: UpstreamId, counters: &mut impl Counters) {
    if slot.shared {
        counters.lower(upstream, Counter::InFlight, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::units::Seconds;
    use crate::{
        Criticality, Decision, Directive, Directives, Engine, GivenRequest, Outcome, Permit,
        UpstreamKey,
    };

    /// A shared count, and how often it was changed.
    #[derive(Default)]
    struct Gauge {
        value: u64,
        changes: u32,
    }

    impl Counters for Gauge {
        fn raise(&mut self, _upstream: UpstreamId, _counter: Counter) -> Option<u64> {
            self.changes += 1;
            self.value += 1;
            Some(self.value)
        }

        fn lower(&mut self, _upstream: UpstreamId, _counter: Counter, by: u64) {
            self.changes += 1;
            self.value -= by;
        }

        fn value(&mut self, _upstream: UpstreamId, _counter: Counter) -> Option<u64> {
            Some(self.value)
        }
    }

    fn engine(more: &str) -> (Engine, UpstreamId) {
        let text = format!(
            r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},"limit":{{"min":1,"initial":1,"max":1}}{more}}}"#
        );
        let config = Config::from_json(text.as_bytes()).unwrap();
        let mut engine = Engine::new(config, Instant::ZERO, 1);
        let upstream = engine.upstream("web", None, Instant::ZERO);
        (engine, upstream)
    }

    #[test]
    fn at_a_full_upstream_the_count_is_read_before_it_is_raised() {
        let (mut engine, web) = engine("");
        let mut gauge = Gauge::default();
        let ask = |engine: &mut Engine, gauge: &mut Gauge| {
            let before = gauge.changes;
            let decision = engine.admit(web, &mut GivenRequest::default(), gauge, Instant::ZERO);
            (decision, gauge.changes - before)
        };
        let (Decision::Admit(permit), 1) = ask(&mut engine, &mut gauge) else {
            panic!("there is room for one");
        };
        assert!(matches!(
            ask(&mut engine, &mut gauge),
            (Decision::Shed(_), 2)
        ));
        assert!(matches!(
            ask(&mut engine, &mut gauge),
            (Decision::Shed(_), 0)
        ));
        engine.complete(permit, Outcome::Success, &mut gauge, Instant::ZERO);
        assert!(matches!(
            ask(&mut engine, &mut gauge),
            (Decision::Admit(_), 1)
        ));
        assert_eq!(gauge.value, 1);
    }

    #[test]
    fn a_refusal_that_is_not_enforced_is_counted_in_flight() {
        let (mut engine, web) = engine(r#","mode":"observe""#);
        let mut gauge = Gauge::default();
        for expected in 1..=3 {
            let decision =
                engine.admit(web, &mut GivenRequest::default(), &mut gauge, Instant::ZERO);
            assert!(matches!(decision, Decision::Admit(_)));
            assert_eq!(gauge.value, expected);
        }
    }

    /// The counts of one class: demand, shed, would have been shed.
    fn by_class(engine: &Engine, class: Criticality) -> (u64, u64, u64) {
        let snapshot = engine.snapshot(Instant::ZERO);
        let web = snapshot
            .upstreams
            .iter()
            .find(|one| one.key.cluster == "web");
        let tally = &web.unwrap().tally;
        let (asked, shed) = (tally.demand_of(class), tally.shed_of(class));
        (asked, shed, tally.would_shed_of(class))
    }

    #[test]
    fn a_refusal_because_of_load_is_counted_for_its_class() {
        for (mode, counted) in [("enforce", (1, 1, 0)), ("observe", (1, 0, 1))] {
            let (mut engine, web) = engine(&format!(r#","mode":"{mode}""#));
            let mut gauge = Gauge::default();
            let held = engine.admit(web, &mut GivenRequest::default(), &mut gauge, Instant::ZERO);
            assert!(matches!(held, Decision::Admit(_)));
            let mut sheddable = GivenRequest {
                criticality: Criticality::Sheddable,
                retry: true,
                ..GivenRequest::default()
            };
            let _ = engine.admit(web, &mut sheddable, &mut gauge, Instant::ZERO);
            assert_eq!(by_class(&engine, Criticality::Sheddable), counted, "{mode}");
            assert_eq!(
                by_class(&engine, Criticality::Critical),
                (0, 0, 0),
                "{mode}"
            );
        }
    }

    #[test]
    fn in_mode_observe_one_class_in_64_is_counted_without_pressure() {
        let rules = r#","criticality":{"header":"x-criticality"}"#;
        for (mode, rules, sampled) in [
            ("observe", rules, 2),
            ("enforce", rules, 0),
            ("observe", "", 0),
        ] {
            let text = format!(
                r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},"mode":"{mode}"{rules}}}"#
            );
            let config = Config::from_json(text.as_bytes()).unwrap();
            let mut engine = Engine::new(config, Instant::ZERO, 1);
            let web = engine.upstream("web", None, Instant::ZERO);
            let mut gauge = Gauge::default();
            let mut sheddable = GivenRequest {
                criticality: Criticality::Sheddable,
                ..GivenRequest::default()
            };
            for _ in 0..65 {
                let decision = engine.admit(web, &mut sheddable, &mut gauge, Instant::ZERO);
                let Decision::Admit(permit) = decision else {
                    panic!("there is room");
                };
                engine.complete(permit, Outcome::Success, &mut gauge, Instant::ZERO);
            }
            let snapshot = engine.snapshot(Instant::ZERO);
            let mut all = snapshot.upstreams.iter();
            let tally = &all.find(|it| it.key.cluster == "web").unwrap().tally;
            let of = |class| (tally.sampled_of(class), tally.demand_of(class));
            assert_eq!(of(Criticality::Sheddable), (sampled, 0), "{mode} {rules}");
            assert_eq!(of(Criticality::Critical), (0, 0), "{mode} {rules}");
        }
    }

    #[test]
    fn near_the_limit_and_for_a_while_after_hopeless_requests_are_shed() {
        let (mut engine, web) = bounded(1, "");
        let mut directive = Directive {
            limit: 10,
            reserve: 10,
            ..Directive::unknown(UpstreamKey::hash("web", None))
        };
        directive.learned.limit.floor.low = Seconds::new(0.05);
        engine.adopt(
            &Directives::new(2, Instant::ZERO, [directive]),
            Instant::ZERO,
        );
        let mut gauge = Gauge::default();
        // In flight before the request, seconds since the start, milliseconds that the caller waits.
        for (in_flight, at, left, expected) in [
            (3, 0, Some(20), None),
            (8, 0, None, None),
            (8, 0, Some(60), None),
            (8, 0, Some(20), Some(ShedReason::Deadline)),
            (10, 0, Some(20), Some(ShedReason::Deadline)),
            (10, 0, Some(60), Some(ShedReason::Limit)),
            (3, 9, Some(20), Some(ShedReason::Deadline)),
            (3, 9, Some(60), None),
            (3, 11, Some(20), None),
        ] {
            gauge.value = in_flight;
            let mut request = GivenRequest {
                time_left: left.map(Duration::from_millis),
                ..GivenRequest::default()
            };
            let now = Instant::ZERO + Duration::from_secs(at);
            let found = match engine.admit(web, &mut request, &mut gauge, now) {
                Decision::Admit(permit) => {
                    engine.complete(permit, Outcome::Ignored, &mut gauge, now);
                    None
                }
                Decision::Shed(shed) => Some(shed.reason),
            };
            assert_eq!(
                found, expected,
                "{in_flight} in flight at {at} s, {left:?} ms"
            );
            assert_eq!(gauge.value, in_flight);
        }
        let tally = &engine.snapshot(Instant::ZERO).upstreams[web.index()].tally;
        assert_eq!(tally.shed(ShedReason::Deadline), 3);
        assert_eq!(tally.refused_for_load(), 1, "no sign of more demand");
        assert_eq!(tally.demand_of(Criticality::Critical), 3, "nor demand");
    }

    #[test]
    fn without_a_known_latency_no_request_is_hopeless() {
        let (mut engine, web) = engine("");
        let mut gauge = Gauge::default();
        let mut request = GivenRequest {
            time_left: Some(Duration::from_nanos(1)),
            ..GivenRequest::default()
        };
        let held = engine.admit(web, &mut request, &mut gauge, Instant::ZERO);
        assert!(matches!(held, Decision::Admit(_)));
        let Decision::Shed(shed) = engine.admit(web, &mut request, &mut gauge, Instant::ZERO)
        else {
            panic!("there is room for one");
        };
        assert_eq!(shed.reason, ShedReason::Limit);
    }

    /// A worker with room for two open requests per endpoint, and for many in flight.
    fn bounded(worker: u64, more: &str) -> (Engine, UpstreamId) {
        let text = format!(
            r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},"limit":{{"maxOpen":2}}{more}}}"#
        );
        let config = Config::from_json(text.as_bytes()).unwrap();
        let mut engine = Engine::of_many(config, Instant::ZERO, worker);
        let upstream = engine.upstream("web", None, Instant::ZERO);
        (engine, upstream)
    }

    /// A request that becomes a stream: its headers come at once, and its end much later.
    fn stream(
        engine: &mut Engine,
        web: UpstreamId,
        gauge: &mut Gauge,
    ) -> Result<Permit, ShedReason> {
        match engine.admit(web, &mut GivenRequest::default(), gauge, Instant::ZERO) {
            Decision::Admit(mut permit) => {
                engine.respond(&mut permit, Outcome::Success, gauge, Instant::ZERO);
                Ok(permit)
            }
            Decision::Shed(shed) => Err(shed.reason),
        }
    }

    #[test]
    fn open_requests_are_bounded_where_the_policy_says_so() {
        let (mut engine, web) = bounded(1, "");
        let mut gauge = Gauge::default();
        let first = stream(&mut engine, web, &mut gauge).unwrap();
        let second = stream(&mut engine, web, &mut gauge).unwrap();
        assert_eq!(gauge.value, 0, "they are no load");
        let before = gauge.changes;
        let third = stream(&mut engine, web, &mut gauge);
        assert_eq!(third, Err(ShedReason::MaxOpen));
        assert_eq!(gauge.changes, before, "nothing was counted for it");
        engine.complete(first, Outcome::Success, &mut gauge, Instant::ZERO);
        let third = stream(&mut engine, web, &mut gauge).unwrap();
        for permit in [second, third] {
            engine.complete(permit, Outcome::Success, &mut gauge, Instant::ZERO);
        }
        assert_eq!(gauge.value, 0);
    }

    #[test]
    fn requests_in_flight_count_as_open_too() {
        let (mut engine, web) = bounded(1, "");
        let mut gauge = Gauge::default();
        let _open = stream(&mut engine, web, &mut gauge).unwrap();
        let waiting = engine.admit(web, &mut GivenRequest::default(), &mut gauge, Instant::ZERO);
        assert!(matches!(waiting, Decision::Admit(_)));
        let third = stream(&mut engine, web, &mut gauge);
        assert_eq!(third, Err(ShedReason::MaxOpen));
    }

    #[test]
    fn the_bound_on_open_requests_is_per_endpoint() {
        let (mut engine, web) = bounded(1, "");
        engine.set_endpoints(web, 3);
        let mut gauge = Gauge::default();
        let streams = (0..10).map(|_| stream(&mut engine, web, &mut gauge));
        let (let_in, shed): (Vec<_>, Vec<_>) = streams.partition(Result::is_ok);
        assert_eq!((let_in.len(), shed.len()), (6, 4));
    }

    #[test]
    fn a_bound_that_is_only_observed_sheds_nothing() {
        let (mut engine, web) = bounded(1, r#","mode":"observe""#);
        let mut gauge = Gauge::default();
        let streams: Vec<_> = (0..5)
            .map(|_| stream(&mut engine, web, &mut gauge).unwrap())
            .collect();
        let snapshot = engine.snapshot(Instant::ZERO);
        let tally = &snapshot.upstreams[web.index()].tally;
        assert_eq!(tally.would_shed(ShedReason::MaxOpen), 3);
        assert_eq!(tally.shed(ShedReason::MaxOpen), 0);
        for permit in streams {
            engine.complete(permit, Outcome::Success, &mut gauge, Instant::ZERO);
        }
        assert_eq!(gauge.value, 0);
    }

    #[test]
    fn another_bound_holds_at_once() {
        let (mut engine, web) = bounded(1, "");
        let mut gauge = Gauge::default();
        let streams = (0..2).map(|_| stream(&mut engine, web, &mut gauge).unwrap());
        let _held: Vec<_> = streams.collect();
        for (max_open, expected) in [(3, None), (2, Some(ShedReason::MaxOpen))] {
            let text = format!(
                r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},"limit":{{"maxOpen":{max_open}}}}}"#
            );
            let config = Config::from_json(text.as_bytes()).unwrap();
            engine.reconfigure(config, Instant::ZERO);
            let found = stream(&mut engine, web, &mut gauge);
            assert_eq!(found.as_ref().err().copied(), expected);
            if let Ok(permit) = found {
                engine.complete(permit, Outcome::Success, &mut gauge, Instant::ZERO);
            }
        }
    }

    #[test]
    fn without_a_bound_any_number_may_be_open() {
        let (mut engine, web) = engine("");
        let mut gauge = Gauge::default();
        let streams: Result<Vec<_>, _> = (0..1_000)
            .map(|_| stream(&mut engine, web, &mut gauge))
            .collect();
        assert!(streams.is_ok());
    }

    #[test]
    fn open_requests_of_other_workers_count_until_they_end() {
        let mut gauge = Gauge::default();
        let [(mut own, web), (mut other, _)] = [bounded(1, ""), bounded(2, "")];
        let held: Vec<_> = (0..2)
            .map(|_| stream(&mut other, web, &mut gauge).unwrap())
            .collect();
        // What workers counted before the first round is history.
        share(&mut own, &mut other, Duration::from_millis(100));
        share(&mut own, &mut other, Duration::from_millis(200));
        let shed = stream(&mut own, web, &mut gauge);
        assert_eq!(shed, Err(ShedReason::MaxOpen));
        for permit in held {
            other.complete(permit, Outcome::Success, &mut gauge, Instant::ZERO);
        }
        share(&mut own, &mut other, Duration::from_millis(300));
        assert!(stream(&mut own, web, &mut gauge).is_ok());
    }

    /// Both workers tell the first, which decides, and follows.
    fn share(leader: &mut Engine, other: &mut Engine, at: Duration) {
        let now = Instant::ZERO + at;
        let slices = [leader.slice(now), other.slice(now)];
        if let Some((directives, _)) = leader.decide(&slices, &mut Gauge::default(), now) {
            leader.adopt(&directives, now);
        }
    }
}
