//! Numbers rounded for people.

use std::time::Duration;

use tidegate_core::config::schema::{FIELDS, Fraction, Span, Values};

/// The shortest and the longest latency target that a configuration accepts.
pub(crate) fn target_range() -> (Duration, Duration) {
    let span = FIELDS
        .iter()
        .find(|field| field.path == "slo.latency.target")
        .and_then(|field| match field.values {
            Values::Span(Span { min, max, .. }) => Some((min, max)),
            _ => None,
        });
    span.unwrap_or((Duration::from_millis(1), Duration::from_secs(600)))
}

/// The least and the greatest success rate that a configuration accepts.
pub(crate) fn success_range() -> (f64, f64) {
    let found = FIELDS
        .iter()
        .find(|field| field.path == "slo.successRate")
        .and_then(|field| match field.values {
            Values::Fraction(Fraction { min, max, .. }) => Some((min.as_f64(), max.as_f64())),
            _ => None,
        });
    found.unwrap_or((0.5, 0.999_99))
}

/// A latency rounded up to two figures of milliseconds; `None` if no configuration accepts it as a target.
pub(crate) fn rounded_up(seconds: f64) -> Option<Duration> {
    let (min, max) = target_range();
    if !(0.0..=max.as_secs_f64()).contains(&seconds) {
        return None;
    }
    let millis = seconds * 1_000.0;
    let figures = if millis < 10.0 {
        1.0
    } else {
        10_f64.powf(millis.log10().floor() - 1.0)
    };
    // Without the tolerance, 0.07 s would be 71 ms: 0.07 * 1000 is a little more than 70.
    let rounded = (millis / figures - 1e-9).ceil() * figures;
    Some(Duration::from_millis(whole(rounded)).clamp(min, max))
}

/// A latency rounded down to a tenth of a millisecond, or to a millisecond from ten on, within the range of targets.
pub(crate) fn rounded_down(seconds: f64) -> Duration {
    let (min, max) = target_range();
    let micros = (seconds.clamp(0.0, max.as_secs_f64()) * 1e6).floor();
    let step = if micros < 10_000.0 { 100.0 } else { 1_000.0 };
    Duration::from_micros(whole((micros / step).floor() * step)).clamp(min, max)
}

/// A share of failures rounded up to 1, 1.5, 2, 3, 5 or 7 times a power of ten.
pub(crate) fn rounded_budget(share: f64) -> f64 {
    let exponent = share.log10().floor();
    let steps = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0];
    let power = 10_f64.powf(exponent);
    let found = steps
        .into_iter()
        .map(|step| step * power)
        .find(|budget| *budget >= share * (1.0 - 1e-9));
    found.unwrap_or(share)
}

/// A success rate without the digits that are only rounding.
pub(crate) fn tidy(rate: f64) -> f64 {
    (rate * 1e6).round() / 1e6
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of milli- or microseconds, not negative and at most ten minutes"
)]
const fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_rounded_up_to_two_figures() {
        for (seconds, millis) in [
            (0.0, 1),
            (0.000_4, 1),
            (0.004_2, 5),
            (0.07, 70),
            (0.0701, 71),
            (0.18, 180),
            (0.1234, 130),
            (12.34, 13_000),
        ] {
            assert_eq!(
                rounded_up(seconds),
                Some(Duration::from_millis(millis)),
                "{seconds}"
            );
        }
    }

    #[test]
    fn no_target_is_longer_than_a_configuration_accepts() {
        assert_eq!(rounded_up(599.0), Some(Duration::from_secs(600)));
        for seconds in [601.0, f64::INFINITY, f64::NAN, -1.0] {
            assert_eq!(rounded_up(seconds), None, "{seconds}");
        }
    }

    #[test]
    fn a_budget_is_rounded_up() {
        for (share, budget) in [
            (0.001, 0.001),
            (0.0011, 0.0015),
            (0.0031, 0.005),
            (0.08, 0.1),
        ] {
            assert!((rounded_budget(share) - budget).abs() < 1e-12, "{share}");
        }
    }
}
