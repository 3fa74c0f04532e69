//! Scores from 0 to 1, and their weighted mean.
//!
//! The formula is that of "Performance and security of sidecar proxies" (2026): a cost scores
//! `clamp(1 - (x - target) / budget, 0, 1)`, a benefit `clamp((x - floor) / (ceiling - floor), 0, 1)`, and the composite is
//! the sum of the scores times their weights. Here weights are divided by their sum, so that a composite stays within 0..=1.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Less is better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Up to here the score is 1.
    pub target: f64,
    /// At `target + budget` the score is 0. Above 0.
    pub budget: f64,
}

/// More is better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Benefit {
    /// Up to here the score is 0.
    pub floor: f64,
    /// From here on the score is 1. Above the floor.
    pub ceiling: f64,
}

/// A value that makes scoring impossible.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("{field}: found {found}, expected {expected}")]
pub struct ScaleFault {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub found: f64,
    /// What was expected.
    pub expected: &'static str,
}

impl Cost {
    /// The score of a cost.
    #[must_use]
    pub fn score(self, value: f64) -> f64 {
        (1.0 - (value - self.target) / self.budget).clamp(0.0, 1.0)
    }

    /// Checks the values.
    ///
    /// # Errors
    /// If the budget is not above 0, or a value is not finite.
    pub fn check(self) -> Result<(), ScaleFault> {
        let fault = |field, found, expected| ScaleFault {
            field,
            found,
            expected,
        };
        let is_positive = self.budget > 0.0 && self.budget.is_finite();
        if !is_positive {
            return Err(fault("budget", self.budget, "a number above 0"));
        }
        if !self.target.is_finite() {
            return Err(fault("target", self.target, "a number"));
        }
        Ok(())
    }
}

impl Benefit {
    /// The score of a benefit.
    #[must_use]
    pub fn score(self, value: f64) -> f64 {
        ((value - self.floor) / (self.ceiling - self.floor)).clamp(0.0, 1.0)
    }

    /// Checks the values.
    ///
    /// # Errors
    /// If the ceiling is not above the floor, or a value is not finite.
    pub fn check(self) -> Result<(), ScaleFault> {
        let is_range =
            self.ceiling > self.floor && self.ceiling.is_finite() && self.floor.is_finite();
        if is_range {
            return Ok(());
        }
        Err(ScaleFault {
            field: "ceiling",
            found: self.ceiling,
            expected: "a number above the floor",
        })
    }
}

/// The mean of scores, each with its weight, 0..=1. None if a score is missing, because leaving it out would count it as
/// good as the others, or if the weights add up to 0.
#[must_use]
pub fn composite(parts: impl IntoIterator<Item = (Option<f64>, f64)>) -> Option<f64> {
    let (mut sum, mut whole) = (0.0, 0.0);
    for (score, weight) in parts {
        sum += score? * weight;
        whole += weight;
    }
    (whole > 0.0).then(|| sum / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_stay_within_0_and_1() {
        let cost = Cost {
            target: 10.0,
            budget: 15.0,
        };
        let benefit = Benefit {
            floor: 8_000.0,
            ceiling: 10_000.0,
        };
        assert_eq!((cost.score(0.0), cost.score(1_000.0)), (1.0, 0.0));
        assert_eq!((benefit.score(0.0), benefit.score(1e9)), (0.0, 1.0));
    }

    #[test]
    fn weights_are_divided_by_their_sum_and_a_missing_score_leaves_none() {
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-9;
        assert!(near(
            composite([(Some(1.0), 1.0), (Some(0.4), 2.0)]),
            1.8 / 3.0
        ));
        assert_eq!(composite([(Some(1.0), 1.0), (None, 1.0)]), None);
        assert_eq!(composite([]), None);
    }
}
