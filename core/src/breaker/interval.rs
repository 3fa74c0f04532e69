//! How long to stay open.
//!
//! A fixed interval wastes probes on a long outage and wastes time after a short one. Doubling soon waits as
//! long as the outage lasted. Here the interval is a fixed fraction of the time the outage has lasted already:
//! recovery is noticed late by that fraction at most, and an outage of any length costs a number of probes that
//! grows with its logarithm only. What earlier recoveries took shifts the first probes: while the outage is
//! much younger than this upstream's usual one, probing is mostly wasted.

use core::time::Duration;

/// How late a recovery may be noticed, as a fraction of the outage: 10 % of 10 s is 1 s.
const LATENESS: f64 = 0.1;
/// Before this fraction of the usual recovery time, probes are rare.
const EARLY: f64 = 0.5;
/// And this fraction of it apart.
const EARLY_STEP: f64 = 0.25;
/// The random part, so that many proxies do not probe at once. It only ever lengthens.
const JITTER: f64 = 0.15;
/// How much the newest recovery weighs in the usual one.
const LEARNING: f64 = 0.3;

/// What the policy allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) min: Duration,
    pub(crate) max: Duration,
}

/// The open interval after a trip or a failed probe, `outage` after the outage began.
///
/// `usual_recovery` is in seconds, zero when no recovery was seen yet; `dice` in 0..1.
pub(crate) fn open_interval(
    bounds: Bounds,
    outage: Duration,
    usual_recovery: f64,
    retry_after: Duration,
    dice: f64,
) -> Duration {
    let lasted = outage.as_secs_f64();
    let by_age = lasted * LATENESS;
    let by_experience = if lasted < usual_recovery * EARLY {
        usual_recovery * EARLY_STEP
    } else {
        0.0
    };
    let wanted = by_age.max(by_experience).max(bounds.min.as_secs_f64());
    let jittered = Duration::try_from_secs_f64(wanted * (1.0 + JITTER * dice.clamp(0.0, 1.0)))
        .unwrap_or(bounds.max);
    // The upstream knows best when it asks for more, within what the policy allows.
    jittered
        .max(retry_after)
        .clamp(bounds.min, bounds.max.max(bounds.min))
}

/// The usual recovery after one more that took `took`; geometric, as outages differ by factors. Seconds.
pub(crate) fn learn_recovery(usual: f64, took: Duration) -> f64 {
    let took = took.as_secs_f64().max(0.001);
    if usual <= 0.0 {
        took
    } else {
        (usual.ln() * (1.0 - LEARNING) + took.ln() * LEARNING).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        min: Duration::from_secs(1),
        max: Duration::from_secs(60),
    };

    fn probes_in(outage: f64, usual_recovery: f64) -> usize {
        let mut lasted = 0.0;
        let mut probes = 0;
        while lasted < outage {
            let elapsed = Duration::from_secs_f64(lasted);
            lasted +=
                open_interval(BOUNDS, elapsed, usual_recovery, Duration::ZERO, 0.5).as_secs_f64();
            probes += 1;
        }
        probes
    }

    #[test]
    fn the_interval_grows_with_the_outage_and_probes_stay_few() {
        assert!(probes_in(10.0, 0.0) <= 10);
        assert!(probes_in(600.0, 0.0) <= 55);
        let late = open_interval(BOUNDS, Duration::from_secs(10), 0.0, Duration::ZERO, 1.0);
        assert!(late <= Duration::from_millis(1_800), "{late:?}");
    }

    #[test]
    fn experience_saves_probes() {
        assert!(probes_in(60.0, 60.0) < probes_in(60.0, 0.0));
    }

    #[test]
    fn retry_after_is_honoured_within_the_policy() {
        let asked = |seconds| {
            open_interval(
                BOUNDS,
                Duration::ZERO,
                0.0,
                Duration::from_secs(seconds),
                0.0,
            )
        };
        assert_eq!(asked(7), Duration::from_secs(7));
        assert_eq!(asked(3_600), BOUNDS.max);
    }

    #[test]
    fn every_interval_ends() {
        for usual in [0.0, f64::MAX, 1e-9] {
            for outage in [Duration::ZERO, Duration::MAX] {
                let interval = open_interval(BOUNDS, outage, usual, Duration::MAX, 1.0);
                assert!((BOUNDS.min..=BOUNDS.max).contains(&interval));
            }
        }
    }

    #[test]
    fn the_usual_recovery_follows_what_was_seen() {
        let usual = (0..20).fold(0.0, |usual, _| {
            learn_recovery(usual, Duration::from_secs(20))
        });
        assert!((usual - 20.0).abs() < 0.1);
    }
}
