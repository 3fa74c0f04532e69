//! Targets against a table of medians.

use super::{Alike, Margins, Targets};
use crate::scenario::{Measure, Range};

/// What a contender is to a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RivalKind {
    /// This project's engine.
    Ours,
    /// A rival with its published settings, or no protection.
    Untuned,
    /// A rival tuned to the known capacity.
    Tuned,
}

/// One contender's score in one scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ContenderScore {
    /// Name of the contender.
    pub contender: String,
    /// What it is.
    pub kind: RivalKind,
    /// Its score.
    pub score: f64,
}

/// Whether one target is met.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetVerdict {
    /// The scenario or group of stories, or what differs between scenarios that must be alike.
    pub scenario: String,
    /// What is asked for, with its bound.
    pub target: String,
    /// What was found.
    pub found: String,
    /// Whether that is enough.
    pub is_met: bool,
}

/// Scores are ratios of counts: a smaller difference is rounding.
pub(crate) const ROUNDING: f64 = 1e-9;

impl Targets {
    /// Judges the played scenarios, in their order: `ours` returns one of our figures, `scores` the scores of all
    /// contenders.
    #[must_use]
    pub fn judge(
        &self,
        played: &[&str],
        ours: impl Fn(&str, Measure) -> Option<f64>,
        scores: impl Fn(&str) -> Vec<ContenderScore>,
    ) -> Vec<TargetVerdict> {
        let mut verdicts = Vec::new();
        for scenario in played {
            let ranges = self.scenarios.get(*scenario).into_iter().flatten();
            verdicts.extend(ranges.map(|(measure, range)| {
                judge_range(scenario, *measure, *range, ours(scenario, *measure))
            }));
            let gaps = self.comparison.gaps(&scores(scenario));
            verdicts.extend(gaps.iter().map(|gap| gap.verdict(scenario)));
        }
        let score = |scenario: &String| {
            let is_played = played.contains(&scenario.as_str());
            is_played.then(|| ours(scenario, Measure::Score)).flatten()
        };
        verdicts.extend(self.alike.iter().filter_map(|alike| alike.judge(score)));
        verdicts
    }
}

fn judge_range(
    scenario: &str,
    measure: Measure,
    range: Range,
    found: Option<f64>,
) -> TargetVerdict {
    TargetVerdict {
        scenario: scenario.to_owned(),
        target: format!("{measure} {range}"),
        found: found.map_or_else(|| "nothing".to_owned(), shown),
        is_met: found.is_some_and(|value| range.contains(value)),
    }
}

/// Our score beside the best rival of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// The kind of rival.
    pub kind: RivalKind,
    /// Our score.
    pub ours: f64,
    /// The best rival of that kind.
    pub rival: ContenderScore,
    /// How far behind it we may be.
    pub rule: f64,
}

impl Gap {
    /// How far we are behind; negative where we are ahead.
    #[must_use]
    pub fn behind(&self) -> f64 {
        self.rival.score - self.ours
    }

    /// Whether we are behind by no more than `bound`.
    #[must_use]
    pub fn is_within(&self, bound: f64) -> bool {
        self.behind() <= bound + ROUNDING
    }

    /// What the rule asks, and what was found.
    #[must_use]
    pub fn verdict(&self, scenario: &str) -> TargetVerdict {
        let name = match self.kind {
            RivalKind::Ours => "best of ours",
            RivalKind::Untuned => "best untuned rival",
            RivalKind::Tuned => "tuned rival",
        };
        TargetVerdict {
            scenario: scenario.to_owned(),
            target: format!("score within {} of the {name}", self.rule),
            found: format!(
                "{} ({} {})",
                shown(self.ours),
                self.rival.contender,
                shown(self.rival.score)
            ),
            is_met: self.is_within(self.rule),
        }
    }
}

impl Margins {
    /// Our score beside the best of each kind of rival that there is; the last of equals counts as best.
    #[must_use]
    pub fn gaps(&self, scores: &[ContenderScore]) -> Vec<Gap> {
        let best = |kind| {
            let of_kind = scores.iter().filter(move |score| score.kind == kind);
            of_kind.max_by(|a, b| a.score.total_cmp(&b.score))
        };
        let Some(ours) = best(RivalKind::Ours) else {
            return Vec::new();
        };
        let kinds = [
            (RivalKind::Untuned, self.behind_best_untuned),
            (RivalKind::Tuned, self.behind_tuned),
        ];
        let gap = |(kind, rule)| {
            Some(Gap {
                kind,
                ours: ours.score,
                rival: best(kind)?.clone(),
                rule,
            })
        };
        kinds.into_iter().filter_map(gap).collect()
    }
}

impl Alike {
    /// The distance between the best and the worst of the set; none until all of it was played.
    fn judge(&self, score: impl Fn(&String) -> Option<f64>) -> Option<TargetVerdict> {
        let scores: Option<Vec<f64>> = self.scenarios.iter().map(score).collect();
        let scores = scores?;
        let least = scores.iter().copied().min_by(f64::total_cmp)?;
        let greatest = scores.iter().copied().max_by(f64::total_cmp)?;
        Some(TargetVerdict {
            scenario: self.what.clone(),
            target: format!("scores within {} of each other", self.within),
            found: format!("{} to {}", shown(least), shown(greatest)),
            is_met: greatest - least <= self.within + ROUNDING,
        })
    }
}

/// A figure with as many digits as a verdict needs.
pub(crate) fn shown(value: f64) -> String {
    if value.is_infinite() {
        "never".to_owned()
    } else if value >= 10.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets() -> Targets {
        let text = "scenarios.a = { score = { min = 0.98 }, settle_s = { max = 1.0 } }\n\
            comparison = { behind_best_untuned = 0.01, behind_tuned = 0.02 }\n\
            [[alike]]\nwhat = 'a and b'\nscenarios = ['a', 'b']\nwithin = 0.02";
        Targets::parse(text, "test").unwrap()
    }

    fn score(contender: &str, kind: RivalKind, score: f64) -> ContenderScore {
        ContenderScore {
            contender: contender.to_owned(),
            kind,
            score,
        }
    }

    fn met(verdicts: &[TargetVerdict]) -> Vec<bool> {
        verdicts.iter().map(|verdict| verdict.is_met).collect()
    }

    #[test]
    fn figures_are_held_against_their_ranges() {
        let ours = |_: &str, measure| match measure {
            Measure::Score => Some(0.985),
            Measure::SettleS => Some(1.5),
            _ => None,
        };
        let verdicts = targets().judge(&["a"], ours, |_| Vec::new());
        assert_eq!(met(&verdicts), [true, false]);
        assert_eq!(verdicts[1].target, "settle_s <= 1");
    }

    #[test]
    fn a_figure_that_is_missing_is_missed() {
        let verdicts = targets().judge(&["a"], |_, _| None, |_| Vec::new());
        assert_eq!(met(&verdicts), [false, false]);
    }

    #[test]
    fn the_best_rival_of_each_kind_counts() {
        let scores = |_: &str| {
            vec![
                score("us", RivalKind::Ours, 0.97),
                score("none", RivalKind::Untuned, 0.1),
                score("gradient", RivalKind::Untuned, 0.98),
                score("static", RivalKind::Tuned, 1.0),
            ]
        };
        let verdicts = targets().judge(&["b"], |_, _| None, scores);
        assert_eq!(
            met(&verdicts),
            [true, false],
            "0.01 behind, then 0.03 behind"
        );
        assert!(verdicts[0].found.contains("gradient"), "{verdicts:?}");
    }

    #[test]
    fn scores_of_a_set_are_alike_or_not() {
        let with = |b: f64| {
            let ours = move |scenario: &str, measure| match (scenario, measure) {
                ("a", Measure::Score) => Some(1.0),
                ("b", Measure::Score) => Some(b),
                _ => Some(0.0),
            };
            let verdicts = targets().judge(&["a", "b"], ours, |_| Vec::new());
            verdicts.last().unwrap().is_met
        };
        assert!(with(0.98));
        assert!(!with(0.979));
    }

    #[test]
    fn a_set_that_was_not_played_as_a_whole_is_not_judged() {
        let verdicts = targets().judge(&["b"], |_, _| Some(1.0), |_| Vec::new());
        assert_eq!(verdicts, []);
    }
}
