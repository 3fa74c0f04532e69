//! A row of the page's table. The bounds and reasons come from the list. The figures come from a whole run, which writes
//! them or checks them (`agree`).

use super::judge::{Grade, Judged};
use super::{KnownGap, PAGE};
use crate::targets::{Gap, RivalKind};

/// How far a figure of the page may be from the measured one: not every small change of a law needs a new table.
const STALE: f64 = 0.005;

/// Greatest difference by rounding between two figures of the table: half of the last digit of each.
const DIGITS: f64 = 0.001;

/// A contender with its score.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The best of its kind; one of them if several are equal.
    pub rival: String,
    /// Its score.
    pub score: f64,
}

/// The figures of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// Our score.
    pub ours: f64,
    /// The best untuned contender.
    pub untuned: Best,
    /// The best tuned contender.
    pub tuned: Best,
}

impl Scores {
    /// From the gaps to both kinds of rival; none without one of them.
    #[must_use]
    pub fn of(gaps: &[Gap]) -> Option<Self> {
        let best = |kind| {
            let gap = gaps.iter().find(|gap| gap.kind == kind)?;
            Some(Best {
                rival: gap.rival.contender.clone(),
                score: gap.rival.score,
            })
        };
        Some(Self {
            ours: gaps.first()?.ours,
            untuned: best(RivalKind::Untuned)?,
            tuned: best(RivalKind::Tuned)?,
        })
    }

    fn agree(&self, found: &Self) -> bool {
        let pairs = [
            (self.ours, found.ours),
            (self.untuned.score, found.untuned.score),
            (self.tuned.score, found.tuned.score),
        ];
        pairs
            .iter()
            .all(|(says, found)| (says - found).abs() <= STALE)
    }

    fn cells(&self) -> String {
        format!(
            "{:.3} | {} {:.3} | {} {:.3}",
            self.ours, self.untuned.rival, self.untuned.score, self.tuned.rival, self.tuned.score
        )
    }
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct GapRow {
    /// The scenario.
    pub scenario: String,
    /// Its figures.
    pub scores: Scores,
    /// What is granted, as it is written.
    granted: String,
    /// Why, as it is written.
    why: String,
}

impl GapRow {
    /// The row of a scenario of the list.
    #[must_use]
    pub fn new(scenario: &str, scores: Scores, known: &KnownGap) -> Self {
        let bound = |bound: Option<f64>| bound.map_or_else(|| "-".to_owned(), |b| b.to_string());
        Self {
            scenario: scenario.to_owned(),
            scores,
            granted: format!(
                "{}, {}",
                bound(known.behind_best_untuned),
                bound(known.behind_tuned)
            ),
            why: format!("[{}](#{})", known.reason, known.see),
        }
    }

    pub(super) fn line(&self) -> String {
        let (name, figures) = (&self.scenario, self.scores.cells());
        format!("| {name} | {figures} | {} | {} |", self.granted, self.why)
    }

    pub(super) fn read(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').collect();
        let cells: Vec<&str> = cells.into_iter().map(str::trim).collect();
        let [scenario, ours, untuned, tuned, granted, why] = cells.as_slice() else {
            return None;
        };
        let best = |cell: &str| {
            let (rival, score) = cell.rsplit_once(' ')?;
            Some(Best {
                rival: rival.to_owned(),
                score: score.parse().ok()?,
            })
        };
        Some(Self {
            scenario: (*scenario).to_owned(),
            scores: Scores {
                ours: ours.parse().ok()?,
                untuned: best(untuned)?,
                tuned: best(tuned)?,
            },
            granted: (*granted).to_owned(),
            why: (*why).to_owned(),
        })
    }

    /// Where the row contradicts the list: other words, or figures further behind than is granted.
    pub(super) fn faults(&self, known: &KnownGap) -> Vec<String> {
        let mut faults = Vec::new();
        let expected = Self::new(&self.scenario, self.scores.clone(), known);
        if *self != expected {
            faults.push(format!("expected {}", expected.line()));
        }
        let rivals = [
            (&self.scores.untuned, known.behind_best_untuned),
            (&self.scores.tuned, known.behind_tuned),
        ];
        for (rival, bound) in rivals {
            let behind = rival.score - self.scores.ours;
            if bound.is_some_and(|bound| behind > bound + DIGITS) {
                faults.push(format!(
                    "{behind:.3} behind {}, more than is granted",
                    rival.rival
                ));
            }
        }
        faults
    }
}

/// Whether the page's row of a scenario agrees with the run.
#[must_use]
pub(crate) fn agree(scenario: &str, rows: &[GapRow], found: &Scores) -> Judged {
    let row = rows.iter().find(|row| row.scenario == scenario);
    let is_true = row.is_some_and(|row| row.scores.agree(found));
    let says = row.map_or_else(|| "no row".to_owned(), |row| row.scores.cells());
    Judged {
        scenario: scenario.to_owned(),
        target: format!("its row in {PAGE}, within {STALE}"),
        found: if is_true {
            found.cells()
        } else {
            format!("{}; the page says {says}", found.cells())
        },
        standing: if is_true { Grade::Met } else { Grade::Missed },
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::targets::ContenderScore;

    /// Scores beside `none`, which is untuned, and `static-tuned`.
    pub(in crate::known_gaps) fn found(ours: f64) -> Scores {
        let best = |rival: &str, score| Best {
            rival: rival.to_owned(),
            score,
        };
        Scores {
            ours,
            untuned: best("none", 1.0),
            tuned: best("static-tuned", 0.999),
        }
    }

    #[test]
    fn figures_that_are_no_longer_true_are_missed() {
        let line =
            "| outage | 0.978 | none 1.000 | static-tuned 0.999 | 0.03, - | [probes](#limits) |";
        let rows = [GapRow::read(line).unwrap()];
        let standing = |scenario, ours| agree(scenario, &rows, &found(ours)).standing;
        assert_eq!(standing("outage", 0.982), Grade::Met);
        assert_eq!(standing("outage", 0.985), Grade::Missed);
        assert_eq!(standing("hang", 0.978), Grade::Missed, "it has no row");
        let judged = agree("outage", &rows, &found(0.985));
        assert!(
            judged.found.contains("says 0.978 | none 1.000"),
            "{}",
            judged.found
        );
    }

    #[test]
    fn scores_are_the_best_of_both_kinds() {
        let gap = |kind, contender: &str, score| Gap {
            kind,
            ours: 0.978,
            rival: ContenderScore {
                contender: contender.to_owned(),
                kind,
                score,
            },
            rule: 0.01,
        };
        let gaps = [
            gap(RivalKind::Untuned, "none", 1.0),
            gap(RivalKind::Tuned, "static-tuned", 0.999),
        ];
        assert_eq!(Scores::of(&gaps), Some(found(0.978)));
        assert_eq!(Scores::of(&gaps[..1]), None);
    }
}
