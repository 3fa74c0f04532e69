//! Contenders side by side: every scenario with every contender, medians, verdicts, and a page to look at.
//!
//! A [`Comparison`] holds the outcomes of all runs. From it come the tables ([`table`]), the verdict whether the
//! targets are met ([`verdict`]) and the page ([`page`]). Runs are deterministic and independent, so they can be made on any
//! thread and in any order.

pub mod page;
pub mod table;
pub mod verdict;

mod charts;

use serde::Serialize;

use crate::contender::ContenderError;
use crate::kind::ContenderKind;
use crate::number;
use crate::scenario::{Measure, Scenario};
use crate::score::Figures;
use crate::series::{self, RunWindow, SeriesSample};
use crate::world;

/// Name of this project's contender.
pub const OURS: &str = crate::tidegate::KIND.name;

/// One in this many samples is kept: two of ten a second.
const SAMPLES: usize = 5;

/// One run of one contender.
#[derive(Debug, Clone, Serialize)]
pub struct ContenderRun {
    /// The scenario's name.
    pub scenario: String,
    /// The contender's name.
    pub contender: &'static str,
    /// The seed of the run.
    pub seed: u64,
    /// Hash of all events: the same for the same seed, on every machine.
    pub digest: String,
    /// The figures of the run.
    pub figures: Figures,
    /// What the callers saw, over time; of the first repetition alone.
    pub windows: Vec<RunWindow>,
    /// What upstreams and contender did, every half second; likewise.
    pub samples: Vec<SeriesSample>,
}

impl ContenderRun {
    /// Makes a run. Another repetition, from 0, draws other arrivals and service times; within one all contenders
    /// get the same.
    ///
    /// # Errors
    /// When the contender cannot be made for the scenario.
    pub fn of(
        scenario: &Scenario,
        contender: &ContenderKind,
        repetition: u64,
    ) -> Result<Self, ContenderError> {
        let scenario = &Scenario {
            seed: scenario.seed.wrapping_add(repetition),
            ..scenario.clone()
        };
        let run = world::play(scenario, contender)?;
        let is_first = repetition == 0;
        Ok(Self {
            scenario: scenario.name.clone(),
            contender: contender.name,
            seed: scenario.seed,
            digest: run.digest.to_string(),
            figures: run.figures,
            windows: if is_first {
                series::windows(scenario, &run.records)
            } else {
                Vec::new()
            },
            samples: if is_first {
                run.samples.into_iter().step_by(SAMPLES).collect()
            } else {
                Vec::new()
            },
        })
    }
}

/// All runs of some scenarios with some contenders.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The scenarios, in the order of tables.
    pub scenarios: Vec<Scenario>,
    /// The contenders, in the order of tables.
    pub contenders: Vec<ContenderKind>,
    /// Every run.
    pub outcomes: Vec<ContenderRun>,
}

impl Comparison {
    /// The runs of a contender in a scenario, one for each seed.
    pub fn runs<'a>(
        &'a self,
        scenario: &'a str,
        contender: &'a str,
    ) -> impl Iterator<Item = &'a ContenderRun> {
        self.outcomes
            .iter()
            .filter(move |o| o.scenario == scenario && o.contender == contender)
    }

    /// The median of a figure over the seeds; none when no run has it.
    ///
    /// A time that was never reached is infinite, and so may be its median.
    #[must_use]
    pub fn median(&self, scenario: &str, contender: &str, measure: Measure) -> Option<f64> {
        let runs = self.runs(scenario, contender);
        let mut values: Vec<f64> = runs.filter_map(|o| o.figures.measure(measure)).collect();
        values.sort_by(f64::total_cmp);
        number::quantile(&values, 0.5)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::contender::{ContenderError, Made};
    use crate::kind::Make;

    fn never(_scenario: &Scenario, _seed: u64) -> Made {
        Err(ContenderError {
            contender: "none",
            cause: "a name for tests of tables".to_owned(),
        })
    }

    /// A contender that only has a name.
    pub(crate) const fn kind(name: &'static str, is_tuned: bool) -> ContenderKind {
        ContenderKind {
            name,
            title: name,
            make: if is_tuned {
                Make::Tuned(never)
            } else {
                Make::Published(never)
            },
        }
    }

    /// A run with a score.
    pub(crate) fn outcome(contender: &'static str, seed: u64, score: f64) -> ContenderRun {
        ContenderRun {
            scenario: "t".to_owned(),
            contender,
            seed,
            digest: String::new(),
            figures: Figures {
                offered: 100,
                score,
                ..Figures::default()
            },
            windows: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// A scenario "t" with the scores of some contenders, one run each.
    pub(crate) fn comparison(scores: &[(&'static str, bool, f64)]) -> Comparison {
        let text = "name='t'\ntitle='Tee'\nprose='p'\nseed=1\nduration='9s'\n[[clients]]\nload=[{at='0s',x=1.0}]";
        Comparison {
            scenarios: vec![Scenario::parse(text, "test").unwrap()],
            contenders: scores.iter().map(|(n, tuned, _)| kind(n, *tuned)).collect(),
            outcomes: scores
                .iter()
                .map(|(n, _, score)| outcome(n, 1, *score))
                .collect(),
        }
    }

    #[test]
    fn median_is_over_the_seeds_of_one_contender() {
        let mut all = comparison(&[(OURS, false, 0.9), ("other", false, 0.1)]);
        all.outcomes.push(outcome(OURS, 2, 0.5));
        all.outcomes.push(outcome(OURS, 3, 0.8));
        assert_eq!(all.median("t", OURS, Measure::Score), Some(0.8));
        assert_eq!(all.median("t", OURS, Measure::SettleS), None);
        assert_eq!(all.median("t", "nobody", Measure::Score), None);
    }
}
