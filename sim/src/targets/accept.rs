//! What must be reached on stories that nobody chose.

use serde::Deserialize;

use super::Verdict;
use super::judge::{ROUNDING, shown};
use crate::scenario::Range;
use crate::sweep::Standing;

/// Bounds for our scores in one group of stories, each of which counts as 1 at most.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// Our mean.
    pub mean: Range,
    /// A tenth of our scores lies below.
    pub tenth: Range,
    /// Share of the stories in which our score is below 0.7, at most.
    pub below_seven_tenths: f64,
}

impl Accept {
    /// Holds what we came to in a group against the bounds; one who played nothing meets nothing.
    #[must_use]
    pub fn judge(&self, group: &str, ours: Option<&Standing>) -> Vec<Verdict> {
        let figure = |of: fn(&Standing) -> f64| ours.map_or(f64::NAN, of);
        let (mean, tenth) = (figure(|one| one.mean), figure(|one| one.tenth));
        let bad = figure(|one| one.bad);
        let verdict = |target: String, found: f64, is_met: bool| Verdict {
            scenario: group.to_owned(),
            target: format!("{group}: {target}"),
            found: shown(found),
            is_met,
        };
        vec![
            verdict(
                format!("mean score {}", self.mean),
                mean,
                self.mean.contains(mean),
            ),
            verdict(
                format!("10th percentile {}", self.tenth),
                tenth,
                self.tenth.contains(tenth),
            ),
            verdict(
                format!("share of stories below 0.7 <= {}", self.below_seven_tenths),
                bad,
                bad <= self.below_seven_tenths + ROUNDING,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Targets;

    const GOOD: Standing = Standing {
        contender: "us",
        mean: 0.97,
        median: 0.99,
        tenth: 0.91,
        worst: 0.5,
        poor: 0.1,
        bad: 0.005,
        best: 1,
    };

    fn met(ours: Option<&Standing>) -> Vec<bool> {
        let at_least = |min| Range {
            min: Some(min),
            max: None,
        };
        let bounds = Accept {
            mean: at_least(0.96),
            tenth: at_least(0.9),
            below_seven_tenths: 0.005,
        };
        let verdicts = bounds.judge("one", ours);
        verdicts.iter().map(|verdict| verdict.is_met).collect()
    }

    #[test]
    fn each_bound_is_held_by_itself() {
        assert_eq!(met(Some(&GOOD)), [true, true, true]);
        let low = Standing { mean: 0.95, ..GOOD };
        assert_eq!(met(Some(&low)), [false, true, true]);
        let rough = Standing {
            tenth: 0.89,
            ..GOOD
        };
        assert_eq!(met(Some(&rough)), [true, false, true]);
        let bad = Standing { bad: 0.01, ..GOOD };
        assert_eq!(met(Some(&bad)), [true, true, false]);
        assert_eq!(met(None), [false, false, false]);
    }

    #[test]
    fn the_repository_has_bounds_for_one_proxy_and_for_several() {
        let targets = Targets::read().unwrap();
        let groups: Vec<&str> = targets.accept.keys().map(String::as_str).collect();
        assert_eq!(groups, ["one", "some"]);
    }
}
