//! A comparison against the targets and the known gaps, and the rivals to beat.

use super::{Comparison, OURS};
use crate::kind::{ContenderKind, Make};
use crate::known_gaps::row::{self, GapRow, Scores};
use crate::known_gaps::{self, Judged, KnownGaps, RunScope};
use crate::scenario::Measure;
use crate::targets::{self, ContenderScore, Gap, Targets};

/// What a comparison is checked against.
#[derive(Debug, Clone, Copy)]
pub struct Requirements<'a> {
    /// What must be reached.
    pub targets: &'a Targets,
    /// Where less is granted.
    pub known_gaps: &'a KnownGaps,
    /// Rows of the page on known gaps; without them the run is not checked against list and page.
    pub rows: Option<&'a [GapRow]>,
}

/// Whether each target is met by the medians, in the order of the scenarios; none without our contender.
#[must_use]
pub fn verdicts(comparison: &Comparison, bar: Requirements<'_>) -> Vec<Judged> {
    if !comparison.contenders.iter().any(|kind| kind.name == OURS) {
        return Vec::new();
    }
    let scenarios = comparison.scenarios.iter().map(|s| s.name.as_str());
    let played: Vec<&str> = scenarios.collect();
    let ours = |scenario: &str, measure| comparison.median(scenario, OURS, measure);
    let ranges = bar.targets.judge(&played, ours, |_| Vec::new());
    let mut judged: Vec<Judged> = ranges.into_iter().map(Judged::from).collect();
    for scenario in &played {
        judged.extend(against_rivals(comparison, scenario, bar));
    }
    // Verdicts about several scenarios come last.
    judged.sort_by_key(|one| {
        let place = played.iter().position(|name| *name == one.scenario);
        place.unwrap_or(played.len())
    });
    judged
}

/// Our score in a scenario beside the best rivals', and the page's row about that.
fn against_rivals(comparison: &Comparison, scenario: &str, bar: Requirements<'_>) -> Vec<Judged> {
    let gaps = gaps(comparison, scenario, bar.targets);
    let known = bar.known_gaps.scenarios.get(scenario);
    let held = match bar.rows {
        Some(_) => RunScope::Whole,
        None => RunScope::Part,
    };
    let judge = |gap| known_gaps::judge(scenario, gap, known, held);
    let mut judged: Vec<Judged> = gaps.iter().map(judge).collect();
    if let (Some(_), Some(rows), Some(found)) = (known, bar.rows, Scores::of(&gaps)) {
        judged.push(row::agree(scenario, rows, &found));
    }
    judged
}

/// Our score in a scenario beside the best rival of each kind.
#[must_use]
pub fn gaps(comparison: &Comparison, scenario: &str, targets: &Targets) -> Vec<Gap> {
    let scored = |kind: &ContenderKind| {
        let role = role(kind)?;
        let score = comparison.median(scenario, kind.name, Measure::Score)?;
        Some(ContenderScore {
            contender: kind.name.to_owned(),
            kind: role,
            score,
        })
    };
    // `gaps` takes the last of equals as the best. Reversed, so that messages name the first one in the tables.
    let kinds = comparison.contenders.iter().rev();
    let scores: Vec<ContenderScore> = kinds.filter_map(scored).collect();
    targets.comparison.gaps(&scores)
}

/// What a contender is to the comparison; none if it is neither ours nor a rival.
fn role(kind: &ContenderKind) -> Option<targets::RivalKind> {
    if kind.name == OURS {
        return Some(targets::RivalKind::Ours);
    }
    match kind.make {
        Make::Published(_) => Some(targets::RivalKind::Untuned),
        Make::Tuned(_) => Some(targets::RivalKind::Tuned),
        Make::Inside(_) | Make::Hindsight(_) => None,
    }
}

/// The tuned or untuned rival with the greatest score in a scenario; the first of equals.
#[must_use]
pub fn best(comparison: &Comparison, scenario: &str, is_tuned: bool) -> Option<&'static str> {
    let rivals = comparison.contenders.iter().rev();
    let is_rival =
        |kind: &&ContenderKind| kind.name != OURS && !kind.is_bound() && !kind.is_inside();
    let rivals = rivals.filter(|kind| is_rival(kind) && kind.is_tuned() == is_tuned);
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
    use std::collections::BTreeMap;

    use super::super::tests::comparison;
    use super::*;
    use crate::known_gaps::row::Best;
    use crate::known_gaps::{Grade, KnownGap};

    fn targets() -> Targets {
        let text = "scenarios.t = { score = { min = 0.95 } }\n\
            comparison = { behind_best_untuned = 0.01, behind_tuned = 0.02 }";
        Targets::parse(text, "test").unwrap()
    }

    /// What is granted to scenario "t" against untuned rivals; nothing without a bound.
    fn known_gaps(bound: Option<f64>) -> KnownGaps {
        let known = |bound| KnownGap {
            behind_best_untuned: Some(bound),
            behind_tuned: None,
            reason: "because".to_owned(),
            see: "why".to_owned(),
        };
        let scenarios = bound.map(|bound| ("t".to_owned(), known(bound)));
        KnownGaps {
            seeds: 1,
            scenarios: scenarios.into_iter().collect::<BTreeMap<_, _>>(),
        }
    }

    fn judged(
        comparison: &Comparison,
        known_gaps: &KnownGaps,
        rows: Option<&[GapRow]>,
    ) -> Vec<Judged> {
        let bar = Requirements {
            targets: &targets(),
            known_gaps,
            rows,
        };
        verdicts(comparison, bar)
    }

    fn standings(judged: &[Judged]) -> Vec<Grade> {
        judged.iter().map(|one| one.standing).collect()
    }

    /// We are 0.03 behind the best untuned rival, and 0.025 behind the tuned one.
    fn behind() -> Comparison {
        comparison(&[
            (OURS, false, 0.97),
            ("worse", false, 0.5),
            ("best", false, 1.0),
            ("tuned", true, 0.985),
        ])
    }

    #[test]
    fn is_held_against_the_best_of_each_kind() {
        let all = comparison(&[
            (OURS, false, 0.97),
            ("worse", false, 0.5),
            ("best", false, 0.98),
            ("tuned", true, 0.995),
        ]);
        assert_eq!(
            standings(&judged(&all, &known_gaps(None), None)),
            [Grade::Met, Grade::Met, Grade::Missed],
            "its range, the untuned, the tuned"
        );
        assert_eq!(best(&all, "t", false), Some("best"));
        assert_eq!(best(&all, "t", true), Some("tuned"));
    }

    #[test]
    fn what_is_granted_is_a_limit_and_what_is_not_is_missed() {
        let standing = |bound| standings(&judged(&behind(), &known_gaps(bound), None))[1];
        assert_eq!(standing(None), Grade::Missed, "it is not listed");
        assert_eq!(standing(Some(0.035)), Grade::AtLimit);
        assert_eq!(standing(Some(0.025)), Grade::Missed, "by more than that");
    }

    #[test]
    fn a_whole_run_is_held_against_the_page() {
        let known_gaps = known_gaps(Some(0.035));
        let row = |ours| {
            let best = |rival: &str, score| Best {
                rival: rival.to_owned(),
                score,
            };
            let scores = Scores {
                ours,
                untuned: best("best", 1.0),
                tuned: best("tuned", 0.985),
            };
            GapRow::new("t", scores, &known_gaps.scenarios["t"])
        };
        let last = |rows: &[GapRow]| {
            let judged = judged(&behind(), &known_gaps, Some(rows));
            assert_eq!(judged.len(), 4, "{judged:?}");
            judged[3].standing
        };
        assert_eq!(last(&[row(0.97)]), Grade::Met);
        assert_eq!(last(&[row(0.98)]), Grade::Missed);
        assert_eq!(last(&[]), Grade::Missed);
    }

    #[test]
    fn what_is_listed_without_need_is_missed_in_a_whole_run() {
        let all = comparison(&[(OURS, false, 0.97), ("best", false, 0.97)]);
        let known_gaps = known_gaps(Some(0.035));
        assert_eq!(standings(&judged(&all, &known_gaps, None))[1], Grade::Met);
        assert_eq!(
            standings(&judged(&all, &known_gaps, Some(&[])))[1],
            Grade::Missed
        );
    }

    #[test]
    fn without_us_there_is_no_verdict() {
        let all = comparison(&[("other", false, 1.0)]);
        assert!(judged(&all, &known_gaps(None), None).is_empty());
    }

    #[test]
    fn the_first_of_equals_is_best() {
        let all = comparison(&[("a", false, 0.9), ("b", false, 0.9)]);
        assert_eq!(best(&all, "t", false), Some("a"));
        assert_eq!(best(&all, "t", true), None);
        let all = comparison(&[(OURS, false, 0.9), ("a", false, 0.9), ("b", false, 0.9)]);
        let judged = judged(&all, &known_gaps(None), None);
        assert!(judged[1].found.contains("(a "), "{judged:?}");
    }
}
