//! Welch's t-test of two samples, and a bound on false discoveries among many tests.
//!
//! B. L. Welch, "The generalization of Student's problem when several different population variances are involved",
//! Biometrika 34 (1947), with the degrees of freedom of Welch and Satterthwaite; Y. Benjamini and Y. Hochberg,
//! "Controlling the false discovery rate", J. R. Statist. Soc. B 57 (1995). Student's distribution is that of the
//! crate `statrs`.
//!
//! Edges: if neither sample has any variance, they differ for certain, or not at all.

use statrs::distribution::{ContinuousCDF, StudentsT};
use tidegate_sim::number;

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Test {
    /// Probability of a difference at least as great by chance alone, 0..=1.
    pub(crate) chance: f64,
    /// 95 % confidence interval of the second mean minus the first.
    pub(crate) interval: (f64, f64),
}

/// Upper end of the middle 95 % of a distribution.
const UPPER: f64 = 0.975;

/// Arithmetic mean; 0 without values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / number::float_len(values.len()).max(1.0)
}

/// Variance of the mean of `values`, with n - 1; `None` for fewer than two.
fn variance_of_mean(values: &[f64]) -> Option<f64> {
    let count = number::float_len(values.len());
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| squares / (count - 1.0) / count)
}

/// Tests whether the means differ; `None` if a sample has fewer than two values.
pub(crate) fn test(before: &[f64], after: &[f64]) -> Option<Test> {
    let (one, other) = (variance_of_mean(before)?, variance_of_mean(after)?);
    let difference = mean(after) - mean(before);
    let error = (one + other).sqrt();
    if error <= 0.0 {
        let chance = if difference.abs() > 0.0 { 0.0 } else { 1.0 };
        return Some(Test {
            chance,
            interval: (difference, difference),
        });
    }
    let part =
        |variance: f64, values: &[f64]| variance.powi(2) / (number::float_len(values.len()) - 1.0);
    let freedom = (one + other).powi(2) / (part(one, before) + part(other, after));
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let width = student.inverse_cdf(UPPER) * error;
    Some(Test {
        chance: 2.0 * student.cdf(-(difference / error).abs()),
        interval: (difference - width, difference + width),
    })
}

/// The greatest probability that still counts as a difference, so that at most `share` of those that count are false.
pub(super) fn bound(chances: &[f64], share: f64) -> f64 {
    let mut sorted = chances.to_vec();
    sorted.sort_by(f64::total_cmp);
    let all = number::float_len(sorted.len());
    let is_within =
        |(rank, chance): &(usize, &f64)| **chance <= share * number::float_len(*rank) / all;
    let last = (1..).zip(&sorted).filter(is_within).last();
    // If none counts, a bound below every probability.
    last.map_or(-1.0, |(_, chance)| *chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_example() {
        let (before, after) = ([1.0, 2.0, 3.0], [4.0, 6.0, 8.0]);
        let test = test(&before, &after).unwrap();
        // Variances 1 and 4, of the means 1/3 and 4/3; t = 4 / sqrt(5/3) = 3.0984 with 25/9 / (17/18) = 2.9412 degrees.
        assert!((test.chance - 0.0545).abs() < 0.0005, "{test:?}");
        let (low, high) = test.interval;
        assert!((f64::midpoint(low, high) - 4.0).abs() < 1e-9);
        assert!(low < 0.0 && low > -0.3, "just not certain: {test:?}");
    }

    #[test]
    fn samples_without_spread_differ_for_certain_or_not_at_all() {
        assert!(test(&[1.0, 1.0], &[2.0, 2.0]).unwrap().chance <= 0.0);
        assert!(test(&[1.0, 1.0], &[1.0, 1.0]).unwrap().chance >= 1.0);
        assert_eq!(test(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn false_discoveries_are_bounded() {
        // The example of Benjamini and Hochberg's paper: 4 of 15 count at 5 %.
        let chances = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let bound = bound(&chances, 0.05);
        assert_eq!(chances.iter().filter(|chance| **chance <= bound).count(), 4);
        assert!(super::bound(&[0.2, 0.9], 0.05) < 0.0, "nothing counts");
    }
}
