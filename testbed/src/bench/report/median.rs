//! Repetitions of one scenario with one contender, combined.

use crate::run::RunOutcome;
use crate::variant::Variant;
use tidegate_sim::scenario::Measure;

/// The runs of a benchmark.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a>(pub &'a [RunOutcome]);

/// A figure over repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The lowest.
    pub least: f64,
    /// The highest.
    pub greatest: f64,
}

impl<'a> Runs<'a> {
    /// All runs of one scenario with one contender.
    pub fn of(self, scenario: &str, variant: Variant) -> impl Iterator<Item = &'a RunOutcome> {
        let is_of = move |o: &&RunOutcome| o.scenario == scenario && o.variant == variant;
        self.0.iter().filter(is_of)
    }

    /// The contenders that ran at all.
    #[must_use]
    pub fn variants(self) -> Vec<Variant> {
        let has_run = |variant: &Variant| self.0.iter().any(|o| o.variant == *variant);
        Variant::ALL.into_iter().filter(has_run).collect()
    }

    /// A figure over the repetitions; `None` if no run has it.
    #[must_use]
    pub fn spread(self, scenario: &str, variant: Variant, measure: Measure) -> Option<Spread> {
        let figures = self
            .of(scenario, variant)
            .filter_map(|outcome| outcome.figures.measure(measure));
        Spread::of(figures)
    }
}

impl Spread {
    /// The spread of some values; `None` without any.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        // The mean of the two in the middle: the lower one alone would be the worse throughput and the better latency.
        let (below, above) = (values.len().saturating_sub(1) / 2, values.len() / 2);
        Some(Self {
            median: f64::midpoint(*values.get(below)?, *values.get(above)?),
            least: *values.first()?,
            greatest: *values.last()?,
        })
    }

    /// The median as a cell of a table, with the range of the repetitions if it differs as printed.
    #[must_use]
    pub fn with_range(self, measure: Measure) -> String {
        let [median, least, greatest] =
            [self.median, self.least, self.greatest].map(|value| shown(measure, value));
        if least == greatest {
            median
        } else {
            format!("{median} ({least}..{greatest})")
        }
    }
}

/// A figure as a cell of a table.
#[must_use]
pub fn shown(measure: Measure, value: f64) -> String {
    match measure {
        _ if value.is_infinite() => "never".to_owned(),
        Measure::AdmittedP99Ms => format!("{value:.0}"),
        Measure::SettleS | Measure::RecoveryS | Measure::CalmS | Measure::ReachedOverCapacity => {
            format!("{value:.2}")
        }
        Measure::ShedRatio
        | Measure::FalseShedRatio
        | Measure::ReachedWhileDownRatio
        | Measure::WastedWork => {
            format!("{:.1}", value * 100.0)
        }
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::score::Figures;

    fn outcome(score: f64) -> RunOutcome {
        RunOutcome {
            scenario: "a".to_owned(),
            variant: Variant::Tidegate,
            figures: Figures {
                score,
                ..Figures::default()
            },
            envoy_cpu_s: 0.0,
            envoy_resident_bytes: 0,
            windows: Vec::new(),
            samples: Vec::new(),
        }
    }

    fn cell(scores: &[f64]) -> Option<String> {
        let outcomes: Vec<RunOutcome> = scores.iter().map(|score| outcome(*score)).collect();
        let spread = Runs(&outcomes).spread("a", Variant::Tidegate, Measure::Score);
        spread.map(|spread| spread.with_range(Measure::Score))
    }

    #[test]
    fn median_of_three_is_shown_with_its_range() {
        assert_eq!(cell(&[0.9, 0.99, 0.95]).unwrap(), "0.950 (0.900..0.990)");
    }

    #[test]
    fn median_of_two_is_between_them() {
        assert_eq!(cell(&[0.9, 0.5]).unwrap(), "0.700 (0.500..0.900)");
    }

    #[test]
    fn range_that_nobody_could_see_is_not_shown() {
        assert_eq!(cell(&[0.95]).unwrap(), "0.950");
        assert_eq!(cell(&[0.95, 0.950_01]).unwrap(), "0.950");
    }

    #[test]
    fn there_is_no_figure_without_a_run() {
        assert_eq!(cell(&[]), None);
    }
}
