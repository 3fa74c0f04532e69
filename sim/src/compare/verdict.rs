//! A comparison against the targets, and who the rivals to beat are.

use super::{Comparison, OURS};
use crate::contender::Kind;
use crate::scenario::Measure;
use crate::targets::{self, Score, Targets, Verdict};

/// Whether each target is met by the medians; none without our contender.
#[must_use]
pub fn verdicts(comparison: &Comparison, targets: &Targets) -> Vec<Verdict> {
    if !comparison.contenders.iter().any(|kind| kind.name == OURS) {
        return Vec::new();
    }
    let played = comparison.scenarios.iter().map(|s| s.name.as_str());
    let ours = |scenario: &str, measure| comparison.median(scenario, OURS, measure);
    let scores = |scenario: &str| {
        let scored = |kind: &Kind| {
            let score = comparison.median(scenario, kind.name, Measure::Score)?;
            Some(Score {
                contender: kind.name.to_owned(),
                kind: role(kind),
                score,
            })
        };
        // The last of equals counts as best there: the first in the tables is to be named.
        let kinds = comparison.contenders.iter().rev();
        kinds.filter_map(scored).collect()
    };
    targets.judge(&played.collect::<Vec<_>>(), ours, scores)
}

fn role(kind: &Kind) -> targets::Kind {
    if kind.name == OURS {
        targets::Kind::Ours
    } else if kind.is_tuned {
        targets::Kind::Tuned
    } else {
        targets::Kind::Untuned
    }
}

/// The rival with the greatest score in a scenario, of those that somebody tuned or of those that nobody did; the
/// first of equals.
#[must_use]
pub fn best(comparison: &Comparison, scenario: &str, is_tuned: bool) -> Option<&'static str> {
    let rivals = comparison.contenders.iter().rev();
    let rivals = rivals.filter(|kind| kind.name != OURS && kind.is_tuned == is_tuned);
    let scored = rivals.filter_map(|kind| {
        let score = comparison.median(scenario, kind.name, Measure::Score)?;
        Some((kind.name, score))
    });
    scored
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::comparison;
    use super::*;

    fn targets() -> Targets {
        let text = "scenarios.t = { score = { min = 0.95 } }\n\
            comparison = { behind_best_untuned = 0.01, behind_tuned = 0.02 }";
        Targets::parse(text, "test").unwrap()
    }

    #[test]
    fn is_held_against_the_best_of_each_kind() {
        let all = comparison(&[
            (OURS, false, 0.97),
            ("worse", false, 0.5),
            ("best", false, 0.98),
            ("tuned", true, 0.995),
        ]);
        let met: Vec<bool> = verdicts(&all, &targets())
            .iter()
            .map(|v| v.is_met)
            .collect();
        assert_eq!(
            met,
            [true, true, false],
            "its range, the untuned, the tuned"
        );
        assert_eq!(best(&all, "t", false), Some("best"));
        assert_eq!(best(&all, "t", true), Some("tuned"));
    }

    #[test]
    fn without_us_there_is_no_verdict() {
        assert!(verdicts(&comparison(&[("other", false, 1.0)]), &targets()).is_empty());
    }

    #[test]
    fn the_first_of_equals_is_best() {
        let all = comparison(&[("a", false, 0.9), ("b", false, 0.9)]);
        assert_eq!(best(&all, "t", false), Some("a"));
        assert_eq!(best(&all, "t", true), None);
        let all = comparison(&[(OURS, false, 0.9), ("a", false, 0.9), ("b", false, 0.9)]);
        let verdicts = verdicts(&all, &targets());
        assert!(verdicts[1].found.contains("(a "), "{verdicts:?}");
    }
}
