//! The comparison as tables, for a terminal and for the page.

use std::fmt::Write as _;

use super::Comparison;
use crate::known_gaps::{Grade, Judged};
use crate::scenario::{Measure, Scenario};
use tidegate_report::table::Table;

/// Columns behind the contender's name.
const COLUMNS: [(&str, Measure); 9] = [
    ("score", Measure::Score),
    ("p99 ms", Measure::AdmittedP99Ms),
    ("shed %", Measure::ShedRatio),
    ("false shed %", Measure::FalseShedRatio),
    ("settle s", Measure::SettleS),
    ("recovery s", Measure::RecoveryS),
    ("reached dead %", Measure::ReachedWhileDownRatio),
    ("critical", Measure::CriticalSuccess),
    ("wasted %", Measure::WastedWork),
];

/// A figure, formatted.
#[must_use]
pub fn shown(measure: Measure, value: Option<f64>) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    match measure {
        _ if value.is_infinite() => "never".to_owned(),
        Measure::AdmittedP99Ms => format!("{value:.0}"),
        Measure::SettleS | Measure::RecoveryS => format!("{value:.2}"),
        Measure::ShedRatio
        | Measure::FalseShedRatio
        | Measure::ReachedWhileDownRatio
        | Measure::WastedWork => {
            format!("{:.1}", value * 100.0)
        }
        _ => format!("{value:.3}"),
    }
}

/// Contenders of one scenario below each other; columns without any figure are left out.
#[must_use]
pub fn contenders(comparison: &Comparison, scenario: &Scenario) -> Table {
    let of = |name: &str, measure| comparison.median(&scenario.name, name, measure);
    let kept: Vec<(&'static str, Measure)> = COLUMNS
        .into_iter()
        .filter(|(_, measure)| {
            let mut kinds = comparison.contenders.iter();
            kinds.any(|kind| of(kind.name, *measure).is_some())
        })
        .collect();
    let rows = comparison.contenders.iter().map(|kind| {
        let figures = kept.iter().map(|(_, m)| shown(*m, of(kind.name, *m)));
        std::iter::once(kind.name.to_owned())
            .chain(figures)
            .collect()
    });
    let head = std::iter::once("contender").chain(kept.iter().map(|(name, _)| *name));
    Table::new(&head.collect::<Vec<_>>(), rows.collect())
}

/// Scores: scenarios below each other, contenders beside each other.
#[must_use]
pub fn scores(comparison: &Comparison) -> Table {
    let names = comparison.contenders.iter().map(|kind| kind.name);
    let rows = comparison.scenarios.iter().map(|scenario| {
        let cells = comparison.contenders.iter().map(|kind| {
            let score = comparison.median(&scenario.name, kind.name, Measure::Score);
            score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"))
        });
        std::iter::once(scenario.name.clone())
            .chain(cells)
            .collect()
    });
    let head = std::iter::once("scenario").chain(names);
    Table::new(&head.collect::<Vec<_>>(), rows.collect())
}

/// The verdicts below each other.
#[must_use]
pub fn verdicts(verdicts: &[Judged]) -> Table {
    let rows = verdicts.iter().map(|verdict| {
        vec![
            verdict.scenario.clone(),
            verdict.target.clone(),
            verdict.found.clone(),
            verdict.standing.name().to_owned(),
        ]
    });
    Table::new(&["scenario", "target", "found", "verdict"], rows.collect())
}

/// The verdicts of one grade, each as a line that begins with `word`.
#[must_use]
pub fn lines(verdicts: &[Judged], standing: Grade, word: &str) -> String {
    let those = verdicts.iter().filter(|one| one.standing == standing);
    let line = |one: &Judged| format!("{word}  {}: {}: {}\n", one.scenario, one.target, one.found);
    those.map(line).collect()
}

/// How many verdicts have a grade.
#[must_use]
pub fn count(verdicts: &[Judged], standing: Grade) -> usize {
    let those = verdicts.iter().filter(|one| one.standing == standing);
    those.count()
}

/// Everything for a terminal.
#[must_use]
pub fn text(comparison: &Comparison, verdicts: &[Judged]) -> String {
    let mut text = String::new();
    for scenario in &comparison.scenarios {
        let table = contenders(comparison, scenario).text();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}: {}\n{table}", scenario.name, scenario.title);
    }
    let _ = writeln!(text, "scores\n{}", scores(comparison).text());
    if !verdicts.is_empty() {
        let _ = writeln!(text, "verdict\n{}", self::verdicts(verdicts).text());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::OURS;
    use super::super::tests::comparison;
    use super::*;

    #[test]
    fn columns_without_a_figure_are_left_out() {
        let mut all = comparison(&[(OURS, false, 0.9)]);
        let scenario = all.scenarios[0].clone();
        assert_eq!(
            contenders(&all, &scenario).head,
            ["contender", "score", "shed %", "false shed %"]
        );
        all.outcomes[0].figures.recovery_s = vec![None];
        let rows = contenders(&all, &scenario);
        assert_eq!(rows.head[4], "recovery s");
        assert_eq!(rows.rows[0][4], "never");
    }

    #[test]
    fn text_says_what_is_missed() {
        let all = comparison(&[(OURS, false, 0.9), ("other", false, 0.95)]);
        let missed = Judged {
            scenario: "t".to_owned(),
            target: "score within 0.01 of the best untuned rival".to_owned(),
            found: "0.9000 (other 0.9500)".to_owned(),
            standing: Grade::Missed,
        };
        assert_eq!(
            lines(std::slice::from_ref(&missed), Grade::Missed, "FAILED"),
            "FAILED  t: score within 0.01 of the best untuned rival: 0.9000 (other 0.9500)\n"
        );
        assert_eq!(count(std::slice::from_ref(&missed), Grade::Met), 0);
        let text = text(&all, &[missed]);
        assert!(text.contains("0.9000 (other 0.9500)   MISSED"), "{text}");
        assert!(text.contains("t             0.90   0.95"), "{text}");
    }
}
