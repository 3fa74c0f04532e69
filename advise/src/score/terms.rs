//! The parts of the score, their weights and scales: `terms.toml`.

use serde::Deserialize;
use thiserror::Error;

use super::formula::{Cost, ScaleFault};

/// The terms of this repository.
const OURS: &str = include_str!("terms.toml");

/// The terms of a score.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreTerms {
    pub(super) objective: FallbackObjective,
    pub(super) evidence: ScoreEvidence,
    pub(super) benefit: BenefitTerms,
    pub(super) cost: CostTerms,
}

/// The objective of upstreams that no policy names.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FallbackObjective {
    pub(super) quantile: f64,
    pub(super) success_rate: f64,
}

/// The evidence that a score needs.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScoreEvidence {
    pub(super) min_answers: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BenefitTerms {
    pub(super) latency: ObjectiveTerms,
    pub(super) success: ObjectiveTerms,
}

/// How misses of an objective count.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectiveTerms {
    pub(super) weight: f64,
    pub(super) times: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CostTerms {
    pub(super) needless: WeightedCost,
    pub(super) cpu_us: WeightedCost,
    pub(super) memory_mib: WeightedCost,
}

/// A cost and its weight.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WeightedCost {
    pub(super) weight: f64,
    target: f64,
    budget: f64,
}

/// Why terms cannot be used.
#[derive(Debug, Error)]
pub enum TermsError {
    /// The text is not a valid document.
    #[error("{name}: {source}")]
    Format {
        /// The source of the text.
        name: String,
        /// The cause.
        source: Box<toml::de::Error>,
    },
    /// A value is out of range.
    #[error("{name}: {part}.{fault}")]
    Value {
        /// The source of the text.
        name: String,
        /// The table of the value.
        part: &'static str,
        /// What is wrong.
        fault: ScaleFault,
    },
}

impl WeightedCost {
    pub(super) const fn cost(self) -> Cost {
        Cost {
            target: self.target,
            budget: self.budget,
        }
    }
}

impl ObjectiveTerms {
    /// The cost of misses if the objective allows a share of `allowed`.
    pub(super) fn cost(self, allowed: f64) -> Cost {
        Cost {
            target: allowed,
            budget: allowed * (self.times - 1.0),
        }
    }
}

impl ScoreTerms {
    /// Reads terms; `name` is the source of the text, for errors.
    ///
    /// # Errors
    /// If the text is not a valid document, or a value is out of range.
    pub fn parse(text: &str, name: &str) -> Result<Self, TermsError> {
        let terms: Self = toml::from_str(text).map_err(|source| TermsError::Format {
            name: name.to_owned(),
            source: Box::new(source),
        })?;
        let fault = terms.fault();
        fault.map_or(Ok(terms), |(part, fault)| {
            Err(TermsError::Value {
                name: name.to_owned(),
                part,
                fault,
            })
        })
    }

    /// The terms of this repository.
    ///
    /// # Errors
    /// If they are wrong, which a test excludes.
    pub fn ours() -> Result<Self, TermsError> {
        Self::parse(OURS, "terms.toml")
    }

    /// The first value that is out of range.
    fn fault(&self) -> Option<(&'static str, ScaleFault)> {
        let FallbackObjective {
            quantile,
            success_rate,
        } = self.objective;
        let BenefitTerms { latency, success } = self.benefit;
        let CostTerms {
            needless,
            cpu_us,
            memory_mib,
        } = self.cost;
        let share = |value: f64| value > 0.0 && value < 1.0;
        let weight = |value: f64| value >= 0.0 && value.is_finite();
        let times = |value: f64| value > 1.0 && value.is_finite();
        let checks = [
            ("objective", "quantile", quantile, share(quantile)),
            (
                "objective",
                "success_rate",
                success_rate,
                share(success_rate),
            ),
            (
                "benefit.latency",
                "weight",
                latency.weight,
                weight(latency.weight),
            ),
            (
                "benefit.success",
                "weight",
                success.weight,
                weight(success.weight),
            ),
            (
                "cost.needless",
                "weight",
                needless.weight,
                weight(needless.weight),
            ),
            (
                "cost.cpu_us",
                "weight",
                cpu_us.weight,
                weight(cpu_us.weight),
            ),
            (
                "cost.memory_mib",
                "weight",
                memory_mib.weight,
                weight(memory_mib.weight),
            ),
            (
                "benefit.latency",
                "times",
                latency.times,
                times(latency.times),
            ),
            (
                "benefit.success",
                "times",
                success.times,
                times(success.times),
            ),
        ];
        let expected = |field: &str| match field {
            "weight" => "a number of at least 0",
            "times" => "a number above 1",
            _ => "a number between 0 and 1",
        };
        let wrong = checks.into_iter().find(|(.., is_right)| !is_right);
        let costs = [
            ("cost.needless", needless),
            ("cost.cpu_us", cpu_us),
            ("cost.memory_mib", memory_mib),
        ];
        let mut costs = costs.into_iter();
        wrong
            .map(|(part, field, found, _)| {
                let expected = expected(field);
                let fault = ScaleFault {
                    field,
                    found,
                    expected,
                };
                (part, fault)
            })
            .or_else(|| costs.find_map(|(part, cost)| Some((part, cost.cost().check().err()?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_terms_are_a_whole_document_and_wrong_ones_are_named() {
        ScoreTerms::ours().unwrap();
        for (before, after, expected) in [
            (
                "quantile = 0.99",
                "quantile = 1.5",
                "x: objective.quantile: found 1.5, expected a number between 0 and 1",
            ),
            (
                "budget = 800",
                "budget = 0",
                "x: cost.cpu_us.budget: found 0, expected a number above 0",
            ),
            (
                "latency = { weight = 1",
                "latency = { weight = -1",
                "x: benefit.latency.weight: found -1, expected a number of at least 0",
            ),
            (
                "weight = 1, times = 10",
                "weight = 1, times = 1",
                "x: benefit.latency.times: found 1, expected a number above 1",
            ),
        ] {
            let text = OURS.replacen(before, after, 1);
            assert_eq!(
                ScoreTerms::parse(&text, "x").unwrap_err().to_string(),
                expected
            );
        }
        let text = OURS.replacen("min_answers", "answers", 1);
        let said = ScoreTerms::parse(&text, "x").unwrap_err().to_string();
        assert!(
            said.starts_with("x: TOML parse error") && said.contains("answers"),
            "{said}"
        );
    }
}
