//! The limit while no queue stands: as many requests in flight as the objective affords.
//!
//! A queue that drains in time costs nothing, so a burst may fill `C (T + w)`, where `w` is what the objective leaves after
//! serving. Traffic without a queue may need more in flight than was ever seen. So the limit grows when it refuses requests
//! although the fast requests are as fast as ever. If a queue has stood before, the capacity is known. Then the limit grows
//! only after answers to requests of the full limit have come, because a surge shows its queue one latency later.
//!
//! A queue stands when the low quantile has been above the floor for a whole interval without a break (as in CoDel), with most
//! of the limit in use, and requests have been refused in that time. Refusals before it may be those of a limit that was too
//! low then: callers that wait for each answer before they send again may all have found room. A queue that causes no refusals is within the objective, and a queue that
//! drains within the interval was a burst. Where answers are rare, a window is longer than the interval, so it must also end
//! with a queue. Its few answers may all be slow by chance, and until a queue has stood nothing says that one is likely. So the
//! answers without a break must be slower than chance explains. If the fast requests are as fast as ever and only the mean is higher, fast
//! answers may hide a queue, or one endpoint of several is slow. So this queue must be proven in [hold](super::hold), and until then the limit
//! does not fall. Without refusals there may be no queue at all, only a slower service.

use core::time::Duration;

use super::hold::APP_LIMITED;
use super::late::SURE;
use super::packs::Packs;
use super::window::{COSTLY, WindowStats};
use crate::ablation::{Mechanism, is_off};
use crate::time::Instant;

/// A queue that has not drained for this long stands.
pub(super) const STANDING_AFTER: Duration = Duration::from_millis(300);
/// A queue that has caused no refusal for this long is a slower service instead.
const SLOWER_AFTER: Duration = Duration::from_secs(2);
/// Growth of a limit that refused requests, once answers show that it makes no queue.
const GROWTH: f64 = 1.25;
/// The share of a window's answers that may belong to requests from before the limit was full.
const ADMITTED_BEFORE: f64 = 0.5;
/// What is left of this growth after a second in which it was not needed: half of it after 34 s, or each pause of a service and
/// each pack of requests would meet the old limit again.
const REMEMBERED: f64 = 0.98;

/// What a window is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    /// How long a request may wait within the objective, seconds.
    pub(super) affordable: f64,
    /// The mean latency without a queue, seconds.
    pub(super) latency: f64,
    /// How long requests are in flight for each answer without a queue, seconds.
    pub(super) occupancy: f64,
    /// Whether a queue has shown how much the upstream can do.
    pub(super) is_capacity_known: bool,
    /// The limit in force; `None` if a ceiling or the policy's bounds hold it, so that sheds say nothing about queues.
    pub(super) in_force: Option<f64>,
}

/// Windows in a row with a queue that costs enough.
#[derive(Clone, Copy, Debug)]
struct CostlyQueue {
    since: Instant,
    /// The logarithm of the odds against all answers since then being so slow by chance.
    odds: f32,
    /// Whether only the mean latency has shown it.
    is_hidden: bool,
}

/// What the windows so far have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CruiseFinding {
    /// No queue stands.
    Nothing,
    /// A queue stands.
    Queue,
    /// Only the mean latency shows the queue that stands: the fast requests are as fast as ever.
    HiddenQueue,
}

impl CruiseFinding {
    /// Whether a queue stands.
    pub(super) const fn stands(self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// The state while no queue stands: signs that one is forming.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cruise {
    /// The limit to which refusals without a queue have raised it; 0 while the model's limit is enough.
    grown: f64,
    /// Since when requests were refused and no answer has shown a queue.
    full_since: Option<Instant>,
    /// The queue that costs enough, while there is one.
    queue: Option<CostlyQueue>,
    /// Since when the fast requests have been slower than without a queue.
    busy_since: Option<Instant>,
    /// When requests were last refused since then.
    refused_at: Option<Instant>,
    /// What packs of requests have shown.
    packs: Packs,
    /// How long this state has lasted, seconds.
    lasts: f64,
}

impl Cruise {
    /// Begins with a limit that has made no queue.
    pub(super) fn at(limit: f64) -> Self {
        Self {
            grown: limit,
            ..Self::default()
        }
    }

    /// The limit to which refusals without a queue have raised it; 0 while the model's limit is enough.
    pub(super) const fn grown(&self) -> f64 {
        self.grown.max(self.packs.limit())
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.grown *= factor;
        self.packs.scale(factor);
    }

    /// How long no queue has stood, seconds.
    pub(super) const fn lasts(&self) -> f64 {
        self.lasts
    }

    /// A window of `span` seconds had no answer, and nothing was in flight at its end.
    pub(super) const fn run_empty(&mut self, span: f64) {
        self.lasts += span;
        self.clear();
    }

    /// There is no queue now.
    const fn clear(&mut self) {
        self.queue = None;
        self.busy_since = None;
        self.refused_at = None;
    }

    /// Whether requests have been slow for long without a refusal. Then there is no queue; the service has become slower.
    pub(super) fn is_slower(&self, now: Instant) -> bool {
        self.refused_at.is_none()
            && self
                .busy_since
                .is_some_and(|since| now.saturating_since(since) >= SLOWER_AFTER)
    }

    /// Learns from one window without a queue, which began at `began`. A limit that refuses requests grows. With a known
    /// capacity it first waits for the answers that can show a queue: the first answers belong to requests from before, and do not account
    /// for those in flight.
    fn grow(&mut self, window: &WindowStats, usual: &Reference, began: Instant) {
        let Some(in_force) = usual.in_force else {
            self.full_since = None;
            return;
        };
        if window.is_refusing {
            self.full_since.get_or_insert(began);
        }
        if !usual.is_capacity_known {
            self.packs.learn(window, in_force);
        }
        let evident = usual.latency - window.span * ADMITTED_BEFORE;
        let is_evident = self.full_since.is_some_and(|since| {
            let is_answered = began.saturating_since(since).as_secs_f64() >= evident
                && (!window.lacks_slow_answers() || is_off(Mechanism::GrowthAnswered));
            !usual.is_capacity_known || is_answered
        });
        if is_evident && !is_off(Mechanism::Growth) {
            self.grown = self.grown.max(in_force * GROWTH);
            self.full_since = None;
        }
    }

    /// Learns from one window.
    pub(super) fn update(
        &mut self,
        window: &WindowStats,
        usual: &Reference,
        now: Instant,
    ) -> CruiseFinding {
        let span = Duration::try_from_secs_f64(window.span).unwrap_or_default();
        self.lasts += window.span;
        if self.grown > 0.0 {
            self.grown *= libm::pow(REMEMBERED, window.span);
        }
        if !window.is_busy {
            self.clear();
            self.grow(window, usual, now - span);
            return CruiseFinding::Nothing;
        }
        // The last answers of a pack are the slow ones, with or without a queue.
        // And one slow endpoint of several raises the mean. That is no reason to admit less until a test shows a queue.
        let is_draining = window.is_draining && !is_off(Mechanism::Draining);
        let is_hidden = window.is_hidden && !is_off(Mechanism::HiddenLimit);
        if !is_draining && !is_hidden {
            self.grown = 0.0;
            self.packs = Packs::default();
            self.full_since = None;
        }
        let _ = self.busy_since.get_or_insert(now);
        if window.is_refusing {
            self.refused_at = Some(now);
        }
        if window.cost < usual.affordable * COSTLY && !is_off(Mechanism::Costly) {
            self.queue = None;
            return CruiseFinding::Nothing;
        }
        let has_room = usual
            .in_force
            .is_some_and(|limit| window.in_flight < limit * APP_LIMITED);
        if has_room && !is_off(Mechanism::StandingFull) || !window.ends_full(usual.occupancy) {
            self.queue = None;
            return CruiseFinding::Nothing;
        }
        // The first window that shows the queue counts as part of the interval.
        let queue = self.queue.get_or_insert(CostlyQueue {
            since: now - span,
            odds: 0.0,
            is_hidden: true,
        });
        queue.is_hidden &= window.is_hidden;
        queue.odds += window.odds;
        let is_chance = f64::from(queue.odds) < SURE
            && !usual.is_capacity_known
            && !is_off(Mechanism::StandingOdds);
        let (since, is_hidden) = (queue.since, queue.is_hidden);
        let stands = now.saturating_since(since) >= STANDING_AFTER
            && !is_chance
            && (self.refused_at > Some(since) || is_off(Mechanism::StandingRefused));
        if !stands {
            CruiseFinding::Nothing
        } else if is_hidden && !is_off(Mechanism::HiddenProof) {
            CruiseFinding::HiddenQueue
        } else {
            CruiseFinding::Queue
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::testing::{CALM, assert_close, at};

    /// A tenth of a second with a queue that costs 200 ms.
    const BUSY: WindowStats = WindowStats {
        span: 0.1,
        delay: 0.2,
        cost: 0.2,
        is_busy: true,
        in_flight_at_end: 30.0,
        ..CALM
    };
    const REFUSING: WindowStats = WindowStats {
        is_refusing: true,
        refused: 5.0,
        refused_share: 0.3,
        ..BUSY
    };
    /// The same, where only the mean shows it.
    const HIDDEN: WindowStats = WindowStats {
        is_hidden: true,
        ..REFUSING
    };
    /// A tenth of a second without a queue in which the limit refuses requests.
    const TOO_LOW: WindowStats = WindowStats {
        span: 0.1,
        is_refusing: true,
        ..CALM
    };
    const AFFORDABLE: f64 = 0.2;

    fn usual(affordable: f64, in_force: Option<f64>) -> Reference {
        Reference {
            affordable,
            latency: 0.1,
            occupancy: 0.1,
            is_capacity_known: false,
            in_force,
        }
    }

    /// A window with a queue at its beginning, and no more in flight at its end than the upstream needs.
    fn drained(span: f64) -> WindowStats {
        WindowStats {
            span,
            in_flight_at_end: 10.0,
            ..REFUSING
        }
    }

    #[test]
    fn a_burst_in_a_long_window_is_no_standing_queue() {
        let usual = usual(AFFORDABLE, None);
        assert!(
            !Cruise::default()
                .update(&drained(0.9), &usual, at(900))
                .stands()
        );
        let standing = WindowStats {
            span: 0.9,
            ..REFUSING
        };
        assert!(
            Cruise::default()
                .update(&standing, &usual, at(900))
                .stands()
        );
    }

    /// Windows of a second that may be chance until a queue stands.
    fn windows_until_it_stands(odds: f32, is_capacity_known: bool) -> Option<u64> {
        let few = WindowStats {
            span: 1.0,
            odds,
            ..REFUSING
        };
        let usual = Reference {
            is_capacity_known,
            ..usual(AFFORDABLE, Some(10.0))
        };
        let mut cruise = Cruise::default();
        (1..20).find(|second| cruise.update(&few, &usual, at(second * 1_000)).stands())
    }

    #[test]
    fn the_first_queue_stands_when_chance_does_not_explain_its_answers() {
        for (odds, is_capacity_known, expected) in [
            (f32::INFINITY, false, 1),
            (9.5, false, 1),
            (4.0, false, 3),
            (1.0, false, 9),
            (1.0, true, 1),
        ] {
            let found = windows_until_it_stands(odds, is_capacity_known);
            assert_eq!(found, Some(expected), "{odds} {is_capacity_known}");
        }
    }

    #[test]
    fn a_window_without_a_queue_ends_the_evidence_of_few_answers() {
        let few = WindowStats {
            odds: 4.0,
            ..REFUSING
        };
        let usual = usual(AFFORDABLE, Some(10.0));
        let mut cruise = Cruise::default();
        let windows = [few, few, TOO_LOW, few, few, few];
        let stands = windows
            .iter()
            .zip(1..)
            .map(|(window, tenth)| cruise.update(window, &usual, at(tenth * 1_000)).stands());
        let expected = [false, false, false, false, false, true];
        assert_eq!(stands.collect::<Vec<_>>(), expected);
    }

    /// Milliseconds until a queue stands if every tenth of a second looks like this.
    fn stands_after(window: &WindowStats, affordable: f64) -> Option<u64> {
        let mut cruise = Cruise::default();
        (1..50).map(|tenth| tenth * 100).find(|ms| {
            cruise
                .update(window, &usual(affordable, Some(10.0)), at(*ms))
                .stands()
        })
    }

    #[test]
    fn a_queue_stands_after_an_interval_of_cost_with_refusals() {
        let cheap = WindowStats {
            cost: AFFORDABLE * 0.49,
            ..REFUSING
        };
        assert_eq!(stands_after(&REFUSING, AFFORDABLE), Some(300));
        assert_eq!(stands_after(&BUSY, AFFORDABLE), None, "nothing refused");
        assert_eq!(stands_after(&cheap, AFFORDABLE), None, "cheap");
        assert_eq!(stands_after(&cheap, 0.0), Some(300), "any cost is too much");
        assert_eq!(stands_after(&CALM, AFFORDABLE), None, "no queue");
    }

    #[test]
    fn the_interval_restarts_when_a_queue_drains() {
        let pauses = [
            ("no queue", WindowStats { span: 0.1, ..CALM }),
            ("a cheap one", WindowStats { cost: 0.01, ..BUSY }),
            ("a drained one", drained(0.1)),
        ];
        for (name, pause) in pauses {
            let mut cruise = Cruise::default();
            let mut update = |window, ms| {
                cruise
                    .update(window, &usual(AFFORDABLE, None), at(ms))
                    .stands()
            };
            assert!(!update(&REFUSING, 100), "{name}");
            assert!(!update(&REFUSING, 200), "{name}");
            assert!(!update(&pause, 300), "{name}");
            assert!(!update(&REFUSING, 400), "{name}");
            assert!(!update(&REFUSING, 500), "{name}");
            assert!(update(&REFUSING, 600), "{name}");
        }
    }

    /// A few slow requests reach a low limit by chance, now and then. A queue at the limit would fill it.
    #[test]
    fn a_limit_that_is_met_for_moments_shows_no_standing_queue() {
        for (in_flight, stands) in [(5.9, false), (6.0, true)] {
            let window = WindowStats {
                in_flight,
                ..REFUSING
            };
            let mut cruise = Cruise::default();
            let found = (1..9).any(|tenth| {
                cruise
                    .update(&window, &usual(AFFORDABLE, Some(10.0)), at(tenth * 100))
                    .stands()
            });
            assert_eq!(found, stands, "{in_flight} of 10");
        }
    }

    #[test]
    fn one_refusal_since_the_queue_began_is_enough() {
        let mut cruise = Cruise::default();
        let mut update = |window, ms| {
            cruise
                .update(window, &usual(AFFORDABLE, None), at(ms))
                .stands()
        };
        assert!(!update(&REFUSING, 100));
        assert!(!update(&BUSY, 200));
        assert!(update(&BUSY, 300));
    }

    /// As many callers as now fit, each of which waits for its answer before it sends again, were refused until the limit had
    /// grown. Their queue is within the objective.
    #[test]
    fn refusals_from_before_the_queue_was_costly_do_not_count() {
        let cheap = WindowStats {
            cost: 0.01,
            ..REFUSING
        };
        for (last, stands) in [(BUSY, false), (REFUSING, true)] {
            let mut cruise = Cruise::default();
            let mut update = |window, ms| {
                cruise
                    .update(window, &usual(AFFORDABLE, None), at(ms))
                    .stands()
            };
            assert!(!update(&cheap, 100));
            for tenth in 2..6 {
                assert!(!update(&BUSY, tenth * 100), "{tenth}");
            }
            assert_eq!(update(&last, 600), stands);
        }
    }

    #[test]
    fn a_queue_without_refusals_is_a_slower_service() {
        let mut quiet = Cruise::default();
        let mut refusing = Cruise::default();
        assert!(!quiet.is_slower(at(9_000)), "there was no queue");
        quiet.update(&BUSY, &usual(AFFORDABLE, None), at(1_000));
        refusing.update(&BUSY, &usual(AFFORDABLE, None), at(1_000));
        refusing.update(&REFUSING, &usual(AFFORDABLE, None), at(1_100));
        assert!(!quiet.is_slower(at(2_999)));
        assert!(quiet.is_slower(at(3_000)));
        assert!(!refusing.is_slower(at(9_000)));
        quiet.run_empty(0.1);
        assert!(!quiet.is_slower(at(9_000)), "it has drained");
    }

    #[test]
    fn a_limit_that_refuses_without_a_queue_grows() {
        let too_low = WindowStats {
            span: 0.0,
            ..TOO_LOW
        };
        let grown = |window: &WindowStats, in_force| {
            let mut cruise = Cruise::default();
            cruise.update(window, &usual(AFFORDABLE, in_force), at(0));
            cruise.grown()
        };
        assert_close(grown(&too_low, Some(100.0)), 125.0, "refusing");
        assert_close(grown(&too_low, None), 0.0, "held by a bound");
        assert_close(grown(&CALM, Some(100.0)), 0.0, "nothing refused");
        assert_close(grown(&REFUSING, Some(100.0)), 0.0, "a queue");
    }

    /// Milliseconds until a limit grows that refuses requests in each window of a tenth of a second, where a request takes
    /// `latency` seconds.
    fn grows_after(latency: f64, is_capacity_known: bool) -> Option<u64> {
        let usual = Reference {
            latency,
            is_capacity_known,
            ..usual(AFFORDABLE, Some(100.0))
        };
        let mut cruise = Cruise::default();
        (1..50).map(|tenth| tenth * 100).find(|ms| {
            cruise.update(&TOO_LOW, &usual, at(*ms));
            cruise.grown() > 0.0
        })
    }

    #[test]
    fn where_the_capacity_is_known_a_limit_grows_after_answers_can_show_a_queue() {
        for (latency, is_capacity_known, expected) in [
            (0.01, true, 100),
            (0.1, true, 200),
            (0.35, true, 400),
            (1.0, true, 1_100),
            (1.0, false, 100),
        ] {
            assert_eq!(
                grows_after(latency, is_capacity_known),
                Some(expected),
                "{latency} {is_capacity_known}"
            );
        }
    }

    /// The first window of a burst is fast: its answers are to requests from before the limit was full.
    #[test]
    fn where_the_capacity_is_known_a_limit_grows_once_answers_account_for_what_is_in_flight() {
        for (in_flight, is_capacity_known, grows) in
            [(20.0, true, true), (21.0, true, false), (21.0, false, true)]
        {
            let window = WindowStats {
                in_flight,
                ..TOO_LOW
            };
            let usual = Reference {
                latency: 0.05,
                is_capacity_known,
                ..usual(AFFORDABLE, Some(100.0))
            };
            let mut cruise = Cruise::default();
            cruise.update(&window, &usual, at(100));
            assert_eq!(cruise.grown() > 0.0, grows, "{in_flight}");
        }
    }

    #[test]
    fn a_queue_ends_the_wait_for_growth() {
        let usual = Reference {
            latency: 0.3,
            is_capacity_known: true,
            ..usual(AFFORDABLE, Some(100.0))
        };
        let mut cruise = Cruise::default();
        cruise.update(&TOO_LOW, &usual, at(100));
        cruise.update(&REFUSING, &usual, at(200));
        for tenth in 3..=5 {
            cruise.update(&TOO_LOW, &usual, at(tenth * 100));
            assert_close(cruise.grown(), 0.0, "counted from the queue on");
        }
    }

    #[test]
    fn growth_fades_and_ends_with_a_queue() {
        let grown = Cruise {
            grown: 100.0,
            ..Cruise::default()
        };
        let mut calm = grown;
        calm.update(&CALM, &usual(AFFORDABLE, Some(100.0)), at(0));
        assert_close(calm.grown(), 98.0, "a second later");
        let mut busy = grown;
        busy.update(&BUSY, &usual(AFFORDABLE, Some(100.0)), at(0));
        assert_close(busy.grown(), 0.0, "a queue");
        let mut scaled = grown;
        scaled.scale(0.5);
        assert_close(scaled.grown(), 50.0, "half of the endpoints");
    }

    #[test]
    fn the_slow_answers_of_a_pack_or_of_one_endpoint_end_no_growth() {
        let draining = WindowStats {
            is_draining: true,
            ..BUSY
        };
        for window in [draining, HIDDEN] {
            let mut cruise = Cruise {
                grown: 100.0,
                ..Cruise::default()
            };
            cruise.update(&window, &usual(AFFORDABLE, Some(100.0)), at(0));
            assert!(cruise.grown() > 99.0, "it only fades");
        }
    }

    #[test]
    fn a_queue_is_hidden_while_no_fast_request_has_shown_it() {
        use CruiseFinding::{HiddenQueue, Nothing, Queue};
        for (windows, expected) in [
            ([HIDDEN; 3], HiddenQueue),
            ([REFUSING; 3], Queue),
            ([HIDDEN, REFUSING, HIDDEN], Queue),
        ] {
            let mut cruise = Cruise::default();
            let usual = usual(AFFORDABLE, None);
            let found: Vec<_> = windows
                .iter()
                .zip(1..)
                .map(|(window, tenth)| cruise.update(window, &usual, at(tenth * 100)))
                .collect();
            assert_eq!(found, [Nothing, Nothing, expected], "{windows:?}");
        }
    }

    #[test]
    fn a_pack_raises_the_limit_until_there_is_a_queue_unless_the_capacity_is_known() {
        let pack = WindowStats {
            is_refusing: true,
            refused: 20.0,
            ..CALM
        };
        let drained = WindowStats {
            in_flight_at_end: 0.0,
            ..CALM
        };
        for (is_capacity_known, expected) in [(false, 40.0), (true, 0.0)] {
            let usual = Reference {
                is_capacity_known,
                ..usual(AFFORDABLE, Some(20.0))
            };
            let mut cruise = Cruise::default();
            cruise.update(&pack, &usual, at(0));
            // A minute later the growth has faded.
            let later = WindowStats {
                span: 60.0,
                ..drained
            };
            for window in [drained, later, later, later] {
                cruise.update(&window, &usual, at(1_000));
            }
            let found = cruise.packs.limit();
            assert_close(found, expected, "before a queue");
            cruise.update(&BUSY, &usual, at(2_000));
            assert_close(cruise.grown(), 0.0, "a queue");
        }
    }
}
