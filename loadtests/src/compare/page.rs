//! A comparison as a page.

use tidegate_report::page::Page;
use tidegate_report::table::Table;

use super::{Difference, FALSE_SHARE, RunComparison, Verdict, WORTH};
use crate::report::circumstances;
use crate::result::LoadtestRun;

/// The comparison as a page.
#[must_use]
pub fn page(before: &LoadtestRun, after: &LoadtestRun, comparison: &RunComparison) -> Page {
    let mut page = Page::new(&format!("{} against {}", after.info.run, before.info.run));
    page.paragraph(&format!(
        "A difference counts when Welch's t-test over the repetitions says so, with at most {:.0} % expected false ones \
         among all that count (Benjamini and Hochberg), and when it is above {:.0} %. Everything else is noise. The range \
         is the 95 % confidence interval of the difference.",
        FALSE_SHARE * 100.0,
        WORTH * 100.0,
    ));
    for run in [before, after] {
        page.note(&circumstances(run));
    }
    let words = |(name, one, other): &(&'static str, String, String)| {
        vec![(*name).to_owned(), one.clone(), other.clone()]
    };
    if !comparison.circumstances.is_empty() {
        page.heading("Not the same circumstances");
        let head = ["", before.info.run.as_str(), after.info.run.as_str()];
        page.table(Table::with_names(
            3,
            &head,
            comparison.circumstances.iter().map(words).collect(),
        ));
    }
    page.heading("Differences");
    page.paragraph(&summary(comparison));
    let mut real: Vec<&Difference> = comparison
        .differences
        .iter()
        .filter(|one| one.verdict < Verdict::Noise)
        .collect();
    real.sort_by_key(|one| one.verdict);
    page.table(Table::with_names(
        2,
        &HEAD,
        real.iter().map(|one| row(one)).collect(),
    ));
    if !comparison.gaps.is_empty() {
        page.heading("Gaps");
        let row = |(cell, run): &(String, String)| vec![cell.clone(), run.clone()];
        page.table(Table::with_names(
            2,
            &["cell", "no figures in"],
            comparison.gaps.iter().map(row).collect(),
        ));
    }
    let rest: Vec<&Difference> = comparison
        .differences
        .iter()
        .filter(|one| one.verdict >= Verdict::Noise)
        .collect();
    if !rest.is_empty() {
        let summary = format!(
            "{} figures that differ by noise, or of which nothing is known",
            rest.len()
        );
        page.folded_table(
            &summary,
            Table::with_names(2, &HEAD, rest.iter().map(|one| row(one)).collect()),
        );
    }
    page
}

/// Head of the tables of differences.
const HEAD: [&str; 8] = [
    "cell", "figure", "before", "after", "change", "95 %", "runs", "",
];

/// The number of differences by verdict, in a sentence.
#[must_use]
pub(crate) fn summary(comparison: &RunComparison) -> String {
    let count = |verdict| {
        comparison
            .differences
            .iter()
            .filter(|one| one.verdict == verdict)
            .count()
    };
    let [worse, better, different, noise, unknown] = [
        Verdict::Worse,
        Verdict::Better,
        Verdict::Different,
        Verdict::Noise,
        Verdict::Unknown,
    ]
    .map(count);
    let mut text = format!(
        "Of {} figures {worse} are worse, {better} better, {different} different in a way that may be either; {noise} \
         differ by noise.",
        comparison.differences.len()
    );
    if unknown > 0 {
        text +=
            &format!(" Of {unknown} nothing can be said, because a run has a single repetition.");
    }
    text
}

fn row(one: &Difference) -> Vec<String> {
    let percent = |difference: f64| {
        let share = difference / one.before.abs() * 100.0;
        if share.is_finite() {
            format!("{share:+.1} %")
        } else {
            "-".to_owned()
        }
    };
    let word = match one.verdict {
        Verdict::Worse => "!worse",
        Verdict::Better => "*better",
        Verdict::Different => "*different",
        Verdict::Noise => "noise",
        Verdict::Unknown => "one run",
    };
    vec![
        one.what.clone(),
        one.figure.head().to_owned(),
        one.figure.shown(one.before),
        one.figure.shown(one.after),
        percent(one.after - one.before),
        one.interval.map_or_else(
            || "-".to_owned(),
            |(low, high)| format!("{}..{}", percent(low), percent(high)),
        ),
        format!("{}, {}", one.repetitions.0, one.repetitions.1),
        word.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::compare;
    use super::*;
    use crate::result::tests::{cell, info};
    use crate::result::{CellFigures, CellResult};

    fn run(values: &[f64]) -> LoadtestRun {
        let cell = |(repetition, qps): (u32, &f64)| CellResult {
            figures: CellFigures {
                qps: Some(*qps),
                ..CellFigures::default()
            },
            ..cell("a", "tidegate", repetition)
        };
        LoadtestRun {
            info: info(),
            cells: (0..).zip(values).map(cell).collect(),
            damaged: Vec::new(),
        }
    }

    #[test]
    fn a_difference_is_shown_with_its_spread() {
        let (before, after) = (run(&[100.0, 101.0, 99.0]), run(&[200.0, 202.0, 198.0]));
        let text = page(&before, &after, &compare(&before, &after)).markdown();
        assert!(
            text.contains("Of 1 figures 0 are worse, 1 better"),
            "{text}"
        );
        assert!(
            text.contains("| breakers a shared tidegate | qps | 100 | 200 | +100.0 % | +"),
            "{text}"
        );
    }

    #[test]
    fn noise_is_said_to_be_noise() {
        let (before, after) = (run(&[100.0, 120.0]), run(&[101.0, 119.0]));
        let text = page(&before, &after, &compare(&before, &after)).markdown();
        assert!(
            text.contains("1 differ by noise") && text.contains("| noise |"),
            "{text}"
        );
    }
}
