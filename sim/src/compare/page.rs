//! The comparison as one HTML page that needs nothing else.

use super::charts::charts;
use super::table::{self, Rows};
use super::{Comparison, OURS};
use crate::limits::{self, Judged, Standing};
use crate::scenario::Scenario;
use tidegate_report::page::Page;

/// Writes the page.
#[must_use]
pub fn page(comparison: &Comparison, verdicts: &[Judged], seeds: u64) -> String {
    let mut page = Page::new("Tidegate and its rivals in the laboratory");
    page.paragraph(
        "Every scenario with every contender, on simulated time: the same arrivals, the same service times, \
         nothing measured on a clock. A score is the good answers over those of an oracle that knows the capacity.",
    );
    let seeds = match seeds {
        1 => "One run of each.".to_owned(),
        seeds => format!("Figures are medians over {seeds} seeds; charts show the first."),
    };
    page.note(&seeds);
    verdict(&mut page, verdicts);
    page.heading("Scores");
    let scores = stressed(table::scores(comparison));
    page.table(&scores.head, &scores.rows);
    who(&mut page, comparison);
    for scenario in &comparison.scenarios {
        one(&mut page, comparison, scenario);
    }
    page.html()
}

fn verdict(page: &mut Page, verdicts: &[Judged]) {
    if verdicts.is_empty() {
        return;
    }
    page.heading("Verdict");
    page.paragraph(
        "The targets: ranges for single scenarios, and in every one a score within a margin of the best rival that \
         nobody tuned and of the one that knows the capacity.",
    );
    page.paragraph(&format!(
        "Met {} of {}; {} more are as near as {} grants, and says why.",
        table::count(verdicts, Standing::Met),
        verdicts.len(),
        table::count(verdicts, Standing::AtLimit),
        limits::FILE
    ));
    let mut rows = table::verdicts(verdicts);
    for (row, verdict) in rows.rows.iter_mut().zip(verdicts) {
        if verdict.standing == Standing::Missed {
            stress(row);
        }
    }
    page.table(&rows.head, &rows.rows);
}

fn who(page: &mut Page, comparison: &Comparison) {
    page.heading("Contenders");
    let rows = comparison.contenders.iter().map(|kind| {
        let tuned = if kind.is_tuned() {
            "knows the capacity"
        } else {
            "nobody tuned it"
        };
        vec![
            kind.name.to_owned(),
            kind.title.to_owned(),
            tuned.to_owned(),
        ]
    });
    page.table(
        &["name", "what it is", "settings"],
        &rows.collect::<Vec<_>>(),
    );
}

fn one(page: &mut Page, comparison: &Comparison, scenario: &Scenario) {
    page.heading(&format!("{}: {}", scenario.name, scenario.title));
    page.paragraph(&scenario.prose.replace('\n', " "));
    let mut rows = table::contenders(comparison, scenario);
    for row in &mut rows.rows {
        if row.first().is_some_and(|name| name == OURS) {
            stress(row);
        }
    }
    page.table(&rows.head, &rows.rows);
    let charts = charts(comparison, scenario);
    for chart in &charts.together {
        page.chart(chart);
    }
    page.raw("<details><summary>Each contender by itself</summary>");
    page.charts(&charts.each);
    page.raw("</details>");
}

fn stress(row: &mut [String]) {
    for cell in row {
        cell.insert(0, '*');
    }
}

/// Our column in stress.
fn stressed(rows: Rows) -> Rows {
    let Rows { head, mut rows } = rows;
    if let Some(ours) = head.iter().position(|name| *name == OURS) {
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(ours)) {
            cell.insert(0, '*');
        }
    }
    Rows { head, rows }
}

#[cfg(test)]
mod tests {
    use super::super::tests::comparison;
    use super::*;
    use crate::series::Window;

    #[test]
    fn holds_the_verdict_the_tables_and_a_chart_of_each() {
        let mut all = comparison(&[(OURS, false, 0.9), ("other", false, 0.95)]);
        for outcome in &mut all.outcomes {
            outcome.windows = vec![
                Window::default(),
                Window {
                    at_s: 1.0,
                    ..Window::default()
                },
            ];
        }
        let missed = Judged {
            scenario: "t".to_owned(),
            target: "score >= 0.95".to_owned(),
            found: "0.9000".to_owned(),
            standing: Standing::Missed,
        };
        let page = page(&all, &[missed], 3);
        assert!(page.contains("Met 0 of 1;"), "{page}");
        assert!(
            page.contains("<strong>score &gt;= 0.95</strong>"),
            "what is missed is stressed"
        );
        assert!(
            page.contains("<strong>0.90</strong>"),
            "our column is stressed"
        );
        // Goodput and latency together, and a small one of each.
        assert_eq!(page.matches("<svg").count(), 4);
        assert!(
            !page.contains("<script") && !page.contains("src="),
            "it needs nothing else"
        );
    }
}
