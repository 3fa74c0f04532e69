//! Whether something swings.
//!
//! The coefficient of variation says how much it moves. The autocorrelation says whether it is periodic: after it has fallen
//! below zero, a swing raises it again. Its height there is the strength of the swing, and its place the period.

use serde::Serialize;

use crate::number;
use crate::world::tally::BIN_S;

/// How much something moves, and in what rhythm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Swing {
    /// Coefficient of variation: standard deviation over mean.
    pub variation: f64,
    /// Height of the autocorrelation where it comes back, 0..=1; 0 when it does not.
    pub strength: f64,
    /// Period in seconds, where there is a rhythm.
    pub period_s: Option<f64>,
}

impl Swing {
    /// The swing of values that are one bin apart.
    pub(super) fn of(values: &[f64]) -> Self {
        let mean = mean(values);
        let around: Vec<f64> = values.iter().map(|value| value - mean).collect();
        let energy: f64 = around.iter().map(|value| value * value).sum();
        if mean <= 0.0 || energy <= 0.0 {
            return Self::default();
        }
        let deviation = (energy / number::float_len(values.len())).sqrt();
        let correlation = |lag: usize| {
            let later = around.iter().skip(lag);
            around.iter().zip(later).map(|(a, b)| a * b).sum::<f64>() / energy
        };
        // Beyond half of the length too few pairs are left.
        let lags: Vec<f64> = (0..around.len() / 2).map(correlation).collect();
        let below = lags.iter().position(|value| *value < 0.0);
        let back = below.map_or(&[][..], |below| lags.get(below..).unwrap_or_default());
        let highest = back.iter().copied().enumerate();
        let highest = highest.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let rhythm = highest.filter(|(_, value)| *value > 0.0);
        Self {
            variation: deviation / mean,
            strength: rhythm.map_or(0.0, |(_, value)| value),
            period_s: rhythm
                .map(|(lag, _)| number::float_len(lag + below.unwrap_or_default()) * BIN_S),
        }
    }
}

/// The arithmetic mean; 0 of nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<f64>() / number::float_len(values.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swing_has_its_period_and_noise_has_none() {
        let wave = |index: u32| {
            100.0 + 20.0 * libm::sin(f64::from(index) * 0.1 * std::f64::consts::TAU / 2.5)
        };
        let swing = Swing::of(&(0..150).map(wave).collect::<Vec<f64>>());
        assert!(
            (swing.variation - 0.2 / 2.0_f64.sqrt()).abs() < 0.01,
            "{swing:?}"
        );
        assert!(swing.strength > 0.7, "{swing:?}");
        assert!((swing.period_s.unwrap() - 2.5).abs() < 0.11, "{swing:?}");
        let mut rng = crate::rng::generator(1, crate::rng::RngPurpose::Network);
        let noise: Vec<f64> = (0..150)
            .map(|_| 100.0 + crate::rng::normal(&mut rng))
            .collect();
        assert!(Swing::of(&noise).strength < 0.35);
        assert_eq!(Swing::of(&[5.0; 20]), Swing::default());
    }
}
