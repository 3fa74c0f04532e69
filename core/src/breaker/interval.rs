//! How long to stay open.
//!
//! A fixed interval wastes probes on a long outage and wastes time after a short one. With doubling, the wait soon is as
//! long as the outage itself. Here the interval is a fixed fraction of the time that the outage has lasted: recovery is
//! noticed late by that fraction at most, and the number of probes grows only with the logarithm of the outage.
//!
//! The cost of a late recovery grows with the traffic that waits for it. So does the load that a dead upstream is used to:
//! probes should be a small share of the usual traffic. So an upstream of hundreds of requests a second is probed as often
//! as the policy allows, and one of a few requests a second not more than once a second at first.

use core::time::Duration;

use crate::ablation::{Mechanism, is_off};

/// How late a recovery may be noticed, as a fraction of the outage: 3 % of 33 s is 1 s.
const LATENESS: f64 = 0.03;
/// One probe for this many requests of the usual traffic, ...
const REQUESTS_PER_PROBE: f64 = 100.0;
/// ... but after this many seconds at the latest, however little traffic there is.
const RARE_TRAFFIC: f64 = 1.0;
/// With very little traffic, probes are at most one request in this many of the usual traffic, unless they would be so many seconds apart. Many
/// proxies with few requests each would otherwise overload with their probes what others have overloaded.
const LEAST_REQUESTS: f64 = 4.0;
const MOST_APART: f64 = 30.0;
/// The random part, so that many proxies do not probe at once. It only ever lengthens.
const JITTER: f64 = 0.15;
/// A Retry-After counts up to one second, the least that it can ask for. It may be meant for one caller beyond its quota or one
/// closed path only; a longer wait would keep the breaker open for all requests, long after the outage.
const MOST_ASKED: Duration = Duration::from_secs(1);

/// What the policy allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenBounds {
    pub(crate) min: Duration,
    pub(crate) max: Duration,
}

/// What is known of the upstream and its outage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History {
    /// Since the outage began.
    pub(crate) outage: Duration,
    /// Requests a second before the outage, zero when unknown.
    pub(crate) usual_rate: f64,
    /// The Retry-After of the upstream, zero if there was none.
    pub(crate) retry_after: Duration,
}

/// The open interval after a trip or a failed probe; `uniform` in 0..1.
pub(crate) fn open_interval(bounds: OpenBounds, history: &History, uniform: f64) -> Duration {
    let History {
        outage,
        usual_rate,
        retry_after,
    } = *history;
    let lasted = outage.as_secs_f64();
    let by_traffic = if is_off(Mechanism::IntervalTraffic) {
        0.0
    } else {
        RARE_TRAFFIC.min(REQUESTS_PER_PROBE / usual_rate.max(f64::MIN_POSITIVE))
    };
    let by_share = if usual_rate > 0.0 && !is_off(Mechanism::ProbeShare) {
        (LEAST_REQUESTS / usual_rate).min(MOST_APART)
    } else {
        0.0
    };
    let by_age = if is_off(Mechanism::IntervalAge) {
        0.0
    } else {
        lasted * LATENESS
    };
    let wanted = by_age
        .max(by_traffic)
        .max(by_share)
        .max(bounds.min.as_secs_f64());
    let jittered = Duration::try_from_secs_f64(wanted * (1.0 + JITTER * uniform.clamp(0.0, 1.0)))
        .unwrap_or(bounds.max);
    jittered
        .max(retry_after.min(MOST_ASKED))
        .clamp(bounds.min, bounds.max.max(bounds.min))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: OpenBounds = OpenBounds {
        min: Duration::from_millis(250),
        max: Duration::from_secs(60),
    };
    /// An outage that has just begun, of an upstream with 300 requests a second.
    const FIRST: History = History {
        outage: Duration::ZERO,
        usual_rate: 300.0,
        retry_after: Duration::ZERO,
    };

    fn probes_in(outage: f64, history: History) -> usize {
        let mut lasted = 0.0;
        let mut probes = 0;
        while lasted < outage {
            let history = History {
                outage: Duration::from_secs_f64(lasted),
                ..history
            };
            lasted += open_interval(BOUNDS, &history, 0.5).as_secs_f64();
            probes += 1;
        }
        probes
    }

    #[test]
    fn the_interval_grows_with_the_outage_and_probes_stay_few() {
        assert!(probes_in(10.0, FIRST) <= 30);
        assert!(probes_in(600.0, FIRST) <= 165);
        let aged = History {
            outage: Duration::from_secs(33),
            ..FIRST
        };
        let late = open_interval(BOUNDS, &aged, 1.0);
        assert!(late <= Duration::from_millis(1_150), "{late:?}");
    }

    #[test]
    fn rare_traffic_is_probed_less_often() {
        for (usual_rate, expected_ms) in [
            (8.0, 1_000),
            (200.0, 500),
            (f64::MAX, 250),
            (0.0, 1_000),
            (2.0, 2_000),
            (0.5, 8_000),
            (0.01, 30_000),
        ] {
            let history = History {
                usual_rate,
                ..FIRST
            };
            let interval = open_interval(BOUNDS, &history, 0.0);
            assert_eq!(interval, Duration::from_millis(expected_ms), "{usual_rate}");
        }
    }

    #[test]
    fn retry_after_lengthens_an_interval_to_a_second_at_most() {
        let asked = |retry_after| {
            open_interval(
                BOUNDS,
                &History {
                    retry_after,
                    ..FIRST
                },
                0.0,
            )
        };
        assert!(asked(Duration::ZERO) < Duration::from_millis(400));
        let second = Duration::from_secs(1);
        assert_eq!(asked(second), second);
        // One caller beyond its quota was told to come back after an hour, and the breaker stayed open for a minute.
        assert_eq!(asked(Duration::from_secs(3_600)), second);
        assert_eq!(asked(Duration::MAX), second);
    }

    #[test]
    fn every_interval_ends() {
        for usual in [0.0, f64::MAX, 1e-9] {
            for outage in [Duration::ZERO, Duration::MAX] {
                let history = History {
                    outage,
                    usual_rate: usual,
                    retry_after: Duration::MAX,
                };
                let interval = open_interval(BOUNDS, &history, 1.0);
                assert!((BOUNDS.min..=BOUNDS.max).contains(&interval));
            }
        }
    }
}
