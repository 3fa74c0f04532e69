//! What a sweep of random stories must reach.

use serde::Deserialize;

use super::TargetVerdict;
use super::judge::{ROUNDING, shown};
use crate::scenario::Range;

/// Bounds for the scores of a whole sweep, each of which counts as 1 at most.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Our mean.
    pub mean: Range,
    /// How far our mean is ahead of the best mean of the others, at least.
    pub ahead: f64,
    /// Share of the stories in which our score is below 0.7, at most.
    pub below_seven_tenths: f64,
}

/// The results of a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found<'a> {
    /// Our mean.
    pub mean: f64,
    /// The other with the best mean, and that mean.
    pub best_other: (&'a str, f64),
    /// Share of the stories in which our score is below 0.7.
    pub below_seven_tenths: f64,
}

impl Sweep {
    /// Checks a sweep against the bounds.
    #[must_use]
    pub fn judge(&self, found: Found<'_>) -> Vec<TargetVerdict> {
        let (other, best) = found.best_other;
        let ahead = found.mean - best;
        let verdict = |target: String, found: String, is_met: bool| TargetVerdict {
            scenario: "sweep".to_owned(),
            target,
            found,
            is_met,
        };
        vec![
            verdict(
                format!("mean score {}", self.mean),
                shown(found.mean),
                self.mean.contains(found.mean),
            ),
            verdict(
                format!("ahead of the best other mean by >= {}", self.ahead),
                format!("{} ({other} {})", shown(ahead), shown(best)),
                ahead >= self.ahead - ROUNDING,
            ),
            verdict(
                format!("share of stories below 0.7 <= {}", self.below_seven_tenths),
                shown(found.below_seven_tenths),
                found.below_seven_tenths <= self.below_seven_tenths + ROUNDING,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Targets;

    fn met(found: Found<'_>) -> Vec<bool> {
        let bounds = Sweep {
            mean: Range {
                min: Some(0.93),
                max: None,
            },
            ahead: 0.1,
            below_seven_tenths: 0.03,
        };
        let verdicts = bounds.judge(found);
        verdicts.iter().map(|verdict| verdict.is_met).collect()
    }

    #[test]
    fn each_bound_is_held_by_itself() {
        let good = Found {
            mean: 0.95,
            best_other: ("other", 0.85),
            below_seven_tenths: 0.03,
        };
        assert_eq!(met(good), [true, true, true], "0.95 - 0.85 is 0.1");
        let low = Found { mean: 0.92, ..good };
        assert_eq!(met(low), [false, false, true]);
        let rough = Found {
            below_seven_tenths: 0.035,
            ..good
        };
        assert_eq!(met(rough), [true, true, false]);
    }

    #[test]
    fn a_mean_that_is_no_number_is_missed() {
        let none = Found {
            mean: f64::NAN,
            best_other: ("other", 0.5),
            below_seven_tenths: 0.0,
        };
        assert_eq!(met(none), [false, false, true]);
    }

    #[test]
    fn the_repository_has_bounds() {
        assert!(Targets::read().unwrap().sweep.is_some());
    }
}
