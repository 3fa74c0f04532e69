//! What a load report says of an upstream, from what was counted for it lately.
//!
//! Callers' proxies weigh endpoints by it (Envoy's `client_side_weighted_round_robin`): `rps / (utilization + penalty * eps / rps)`.
//! At a given endpoint rate and utilization grow together, so that this is the endpoint's capacity, whatever its present load. The
//! figures keep to that:
//!
//! - **application_utilization**: mean requests in flight / room ([`room`]). At least 1 while the breaker is not closed.
//! - **rps_fractional**: requests that the upstream got, and those that an open breaker shed.
//! - **eps**: failures and overload signals among them, and those that an open breaker shed. Requests that the limit sheds are in
//!   neither: they cost the upstream nothing, and the utilization already says that it is full.
//! - **tidegate.pressure**: utilization x requests that came / requests that the limit let pass: above 1, what is asked for in
//!   units of what can be served.
//!
//! Counts fade with a time constant, and the time over which they were taken fades with them. So the first figures of an upstream
//! are not too low.

use std::io::Write as _;

use tidegate_core::{Count, ShedReason, UpstreamView};

/// The time constant of the figures, in seconds. Near its capacity, an endpoint's utilization grows much faster than its rate, and a
/// caller's proxy changes its weights once a second: with figures as fast as that, load swings between endpoints.
const MEMORY_S: f64 = 3.0;
/// An upstream is full at this multiple of the requests that it needs to have in flight when no queue stands.
const FULL: f64 = 2.0;
/// Below this, faded, there is nothing to tell.
const FEWEST_REQUESTS: f64 = 0.01;
/// Greatest value of any figure.
const GREATEST: f64 = 1e9;

/// The header of a report, in one of three formats that its first word names.
pub(crate) const REPORT: &str = "endpoint-load-metrics";

/// How many counts there are.
pub(crate) const COUNTS: usize = 5;
/// How many words the longest report has: see a test.
pub(crate) const WORDS: usize = 22;

/// What was counted for an upstream. Each count only grows, and wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadCounts {
    /// Requests in flight over time, request-microseconds.
    in_flight_micros: u64,
    admitted: u64,
    /// Failures and overload signals.
    failed: u64,
    /// Requests that a breaker shed.
    refused: u64,
    /// Requests shed because the limit was reached.
    shed: u64,
}

impl LoadCounts {
    /// What one worker counted.
    pub(crate) fn of(view: &UpstreamView<'_>) -> Self {
        let tally = view.tally;
        let sheds = |reasons: &[ShedReason]| {
            let all = reasons.iter().map(|reason| tally.shed(*reason));
            all.fold(0, u64::wrapping_add)
        };
        Self {
            in_flight_micros: tally.get(Count::InFlightMicros),
            admitted: tally.get(Count::Admitted),
            failed: tally.get(Count::Failures) + tally.get(Count::Overloads),
            refused: sheds(&[ShedReason::BreakerOpen, ShedReason::BreakerHalfOpen]),
            shed: sheds(&[
                ShedReason::Limit,
                ShedReason::Criticality,
                ShedReason::Retry,
            ]),
        }
    }

    pub(crate) const fn from_array(counts: [u64; COUNTS]) -> Self {
        let [in_flight_micros, admitted, failed, refused, shed] = counts;
        Self {
            in_flight_micros,
            admitted,
            failed,
            refused,
            shed,
        }
    }

    pub(crate) const fn to_array(self) -> [u64; COUNTS] {
        [
            self.in_flight_micros,
            self.admitted,
            self.failed,
            self.refused,
            self.shed,
        ]
    }

    /// The growth since `before`. A worker's counts wrap at 32 bits, so a growth has no more.
    pub(crate) fn since(self, before: Self) -> Self {
        let [micros, ..] = before.to_array();
        let mut growth = self.to_array();
        for (now, before) in growth.iter_mut().zip(before.to_array()) {
            *now = now.wrapping_sub(before) & u64::from(u32::MAX);
        }
        Self {
            in_flight_micros: self.in_flight_micros.wrapping_sub(micros),
            ..Self::from_array(growth)
        }
    }
}

/// How many requests in flight make an upstream full: the limit, but at most twice what it needs to have in flight to serve all
/// that it can without a queue. While no queue stands, the limit has room for bursts besides, ten times as much at times. With
/// that, a full endpoint would weigh a tenth of one that is not quite full, and all load would swing from one to the next.
pub(crate) fn room(view: &UpstreamView<'_>) -> f64 {
    let limit = f64::from(view.limit);
    let learned = &view.learned.limit;
    let needed = learned.capacity.get() * learned.floor.mean.get();
    if needed > 0.0 {
        limit.min(FULL * needed).max(1.0)
    } else {
        limit.max(1.0)
    }
}

/// What was counted lately.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RecentLoad {
    span_s: f64,
    room_s: f64,
    in_flight_s: f64,
    admitted: f64,
    failed: f64,
    refused: f64,
    shed: f64,
}

/// The figures of one report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LoadFigures {
    /// 1: as many requests in flight as there is [`room`] for.
    utilization: f64,
    /// Requests a second.
    rps: f64,
    /// Failed ones among them.
    eps: f64,
    pressure: f64,
}

impl RecentLoad {
    /// Adds what was counted in the last `elapsed_s` seconds, with this [`room`] for requests.
    pub(crate) fn add(&mut self, counts: LoadCounts, room: f64, elapsed_s: f64) {
        let kept = (-elapsed_s / MEMORY_S).exp();
        let add = |sum: &mut f64, count: f64| *sum = sum.mul_add(kept, count);
        add(&mut self.span_s, elapsed_s);
        add(&mut self.room_s, elapsed_s * room.max(1.0));
        add(&mut self.in_flight_s, number(counts.in_flight_micros) / 1e6);
        add(&mut self.admitted, number(counts.admitted));
        add(&mut self.failed, number(counts.failed));
        add(&mut self.refused, number(counts.refused));
        add(&mut self.shed, number(counts.shed));
    }

    /// What to tell; `None` if there was nothing lately.
    pub(crate) fn figures(&self, is_closed: bool) -> Option<LoadFigures> {
        let served = self.admitted + self.refused;
        if served < FEWEST_REQUESTS || self.span_s <= 0.0 {
            return None;
        }
        let used = self.in_flight_s / self.room_s;
        let utilization = if is_closed { used } else { used.max(1.0) };
        let came = self.admitted + self.shed;
        let asked = if self.admitted > 0.0 {
            came / self.admitted
        } else {
            1.0
        };
        Some(LoadFigures {
            utilization,
            rps: served / self.span_s,
            eps: (self.failed + self.refused) / self.span_s,
            pressure: utilization * asked,
        })
    }
}

impl LoadFigures {
    /// The value of the header, in Envoy's text format, written into `place`.
    pub(crate) fn write<'a>(&self, place: &'a mut [u8; 8 * WORDS]) -> &'a [u8] {
        let shown = |value: f64| value.clamp(0.0, GREATEST);
        let mut rest = place.as_mut_slice();
        let written = write!(
            rest,
            "TEXT application_utilization:{:.6},rps_fractional:{:.3},eps:{:.3},named_metrics.tidegate.pressure:{:.6}",
            // Envoy takes 0 for "not told".
            shown(self.utilization).max(1e-6),
            shown(self.rps).max(1e-3),
            shown(self.eps),
            shown(self.pressure),
        );
        let left = rest.len();
        match written {
            Ok(()) => place.get(..place.len() - left).unwrap_or_default(),
            Err(_) => &[],
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a moment are far below 2^53"
)]
const fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of ten ticks, each with these counts.
    fn after_a_second(each: LoadCounts) -> RecentLoad {
        let mut recent = RecentLoad::default();
        (0..10).for_each(|_| recent.add(each, 20.0, 0.1));
        recent
    }

    fn is_near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-6
    }

    #[test]
    fn steady_load_is_told_from_the_first_tick_on() {
        // 5 in flight of 20, 100 requests a second, 10 of them failed.
        let each = LoadCounts {
            in_flight_micros: 500_000,
            admitted: 10,
            failed: 1,
            ..LoadCounts::default()
        };
        let mut first = RecentLoad::default();
        first.add(each, 20.0, 0.1);
        for recent in [first, after_a_second(each)] {
            let figures = recent.figures(true).unwrap();
            assert!(is_near(figures.utilization, 0.25), "{figures:?}");
            assert!(is_near(figures.rps, 100.0) && is_near(figures.eps, 10.0));
            assert!(is_near(figures.pressure, 0.25), "{figures:?}");
        }
    }

    #[test]
    fn what_the_limit_sheds_is_pressure_and_neither_a_request_nor_a_failure() {
        let figures = after_a_second(LoadCounts {
            in_flight_micros: 2_000_000,
            admitted: 10,
            shed: 30,
            ..LoadCounts::default()
        });
        let figures = figures.figures(true).unwrap();
        assert!(is_near(figures.utilization, 1.0) && is_near(figures.pressure, 4.0));
        assert!(is_near(figures.rps, 100.0) && is_near(figures.eps, 0.0));
    }

    #[test]
    fn an_open_breaker_is_full_and_fails_what_it_refuses() {
        let recent = after_a_second(LoadCounts {
            refused: 10,
            ..LoadCounts::default()
        });
        let figures = recent.figures(false).unwrap();
        assert!(is_near(figures.utilization, 1.0) && is_near(figures.rps, figures.eps));
    }

    #[test]
    fn an_idle_upstream_soon_has_nothing_to_tell() {
        let mut recent = after_a_second(LoadCounts {
            in_flight_micros: 100,
            admitted: 10,
            ..LoadCounts::default()
        });
        assert!(recent.figures(true).is_some());
        (0..1_000).for_each(|_| recent.add(LoadCounts::default(), 1.0, 0.1));
        assert_eq!(recent.figures(true), None);
        assert_eq!(RecentLoad::default().figures(true), None);
    }

    #[test]
    fn counts_grow_across_their_end() {
        let before = LoadCounts {
            in_flight_micros: u64::MAX,
            admitted: u64::from(u32::MAX),
            ..LoadCounts::default()
        };
        let now = LoadCounts {
            in_flight_micros: 4,
            admitted: 2,
            ..LoadCounts::default()
        };
        let growth = now.since(before);
        assert_eq!((growth.in_flight_micros, growth.admitted), (5, 3));
    }

    #[test]
    fn the_text_is_in_envoys_format_and_the_longest_has_room() {
        let figures = LoadFigures {
            utilization: 0.25,
            rps: 100.0,
            eps: 1.5,
            pressure: 2.0,
        };
        let mut place = [0; 8 * WORDS];
        let text = figures.write(&mut place);
        assert_eq!(
            core::str::from_utf8(text).unwrap(),
            "TEXT application_utilization:0.250000,rps_fractional:100.000,eps:1.500,named_metrics.tidegate.pressure:2.000000"
        );
        for value in [0.0, f64::MAX, f64::INFINITY] {
            let figures = LoadFigures {
                utilization: value,
                rps: value,
                eps: value,
                pressure: value,
            };
            let mut place = [0; 8 * WORDS];
            assert!(!figures.write(&mut place).is_empty(), "{value}");
        }
    }
}
