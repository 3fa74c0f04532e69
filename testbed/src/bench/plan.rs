//! The order of the runs.

use std::time::Duration;

use crate::variant::Variant;
use tidegate_sim::scenario::Scenario;

/// One planned run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRun {
    /// The scenario, with the seed of this repetition.
    pub scenario: Scenario,
    /// The contender.
    pub variant: Variant,
    /// The repetition, from 0.
    pub repetition: u32,
}

impl PlannedRun {
    /// Length of its story.
    #[must_use]
    pub const fn length(&self) -> Duration {
        self.scenario.duration
    }
}

/// Every run, in order: a repetition ends before the next begins, so that the results of an interrupted benchmark are
/// comparable.
///
/// Another repetition draws other arrivals; within one, all contenders get the same.
#[must_use]
pub fn turns(scenarios: &[Scenario], variants: &[Variant], repeat: u32) -> Vec<PlannedRun> {
    let mut turns = Vec::new();
    for repetition in 0..repeat {
        for scenario in scenarios {
            let scenario = Scenario {
                seed: scenario.seed + u64::from(repetition),
                ..scenario.clone()
            };
            turns.extend(variants.iter().map(|variant| PlannedRun {
                scenario: scenario.clone(),
                variant: *variant,
                repetition,
            }));
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(name: &str) -> Scenario {
        let text = format!(
            "name='{name}'\ntitle='t'\nprose='p'\nseed=7\nduration='10s'\n[[clients]]\nload=[{{at='0s', x=0.5}}]"
        );
        Scenario::parse(&text, "test").unwrap()
    }

    #[test]
    fn contenders_share_arrivals_and_repetitions_do_not() {
        let variants = [Variant::Tidegate, Variant::None];
        let turns = turns(&[scenario("a"), scenario("b")], &variants, 2);
        let order: Vec<_> = turns
            .iter()
            .map(|t| {
                (
                    t.repetition,
                    t.scenario.name.as_str(),
                    t.variant.name(),
                    t.scenario.seed,
                )
            })
            .collect();
        assert_eq!(order.len(), 8);
        assert_eq!(order[0], (0, "a", "tidegate", 7));
        assert_eq!(order[1], (0, "a", "none", 7));
        assert_eq!(order[2], (0, "b", "tidegate", 7));
        assert_eq!(order[4], (1, "a", "tidegate", 8));
    }
}
