//! The comparison as a page.

use super::{Comparison, OURS};
use super::{charts, table};
use crate::known_gaps::{self, Grade, Judged};
use crate::scenario::Scenario;
use tidegate_report::page::Page;
use tidegate_report::table::Table;

/// Makes the page.
#[must_use]
pub fn page(comparison: &Comparison, verdicts: &[Judged], seeds: u64) -> Page {
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
    let mut scores = table::scores(comparison);
    scores.stress_column(OURS);
    page.table(scores);
    who(&mut page, comparison);
    for scenario in &comparison.scenarios {
        one(&mut page, comparison, scenario);
    }
    page
}

fn verdict(page: &mut Page, verdicts: &[Judged]) {
    if verdicts.is_empty() {
        return;
    }
    page.heading("Verdict");
    page.paragraph(
        "The targets: ranges for single scenarios, and in every one a score within a margin of the best untuned \
         rival and of the one that knows the capacity.",
    );
    page.paragraph(&format!(
        "Met {} of {}; {} more are as near as {} grants, and says why.",
        table::count(verdicts, Grade::Met),
        verdicts.len(),
        table::count(verdicts, Grade::AtLimit),
        known_gaps::FILE
    ));
    let mut table = table::verdicts(verdicts);
    for (row, verdict) in verdicts.iter().enumerate() {
        if verdict.standing == Grade::Missed {
            table.stress_row(row);
        }
    }
    page.table(table);
}

fn who(page: &mut Page, comparison: &Comparison) {
    page.heading("Contenders");
    let rows = comparison.contenders.iter().map(|kind| {
        let tuned = if kind.is_inside() {
            "measures inside the services"
        } else if kind.is_tuned() {
            "knows the capacity"
        } else {
            "untuned"
        };
        vec![
            kind.name.to_owned(),
            kind.title.to_owned(),
            tuned.to_owned(),
        ]
    });
    page.table(Table::new(
        &["name", "what it is", "settings"],
        rows.collect(),
    ));
}

fn one(page: &mut Page, comparison: &Comparison, scenario: &Scenario) {
    page.heading(&format!("{}: {}", scenario.name, scenario.title));
    page.paragraph(&scenario.prose.replace('\n', " "));
    let mut table = table::contenders(comparison, scenario);
    let is_ours = |row: &Vec<String>| row.first().is_some_and(|name| name == OURS);
    if let Some(ours) = table.rows.iter().position(is_ours) {
        table.stress_row(ours);
    }
    let charts = charts::of(comparison, scenario);
    page.table(table)
        .charts(charts.together)
        .folded_charts("Each contender by itself", charts.each);
}

#[cfg(test)]
mod tests {
    use super::super::tests::comparison;
    use super::*;
    use crate::series::RunWindow;

    #[test]
    fn holds_the_verdict_the_tables_and_a_chart_of_each() {
        let mut all = comparison(&[(OURS, false, 0.9), ("other", false, 0.95)]);
        for outcome in &mut all.outcomes {
            outcome.windows = vec![
                RunWindow::default(),
                RunWindow {
                    at_s: 1.0,
                    ..RunWindow::default()
                },
            ];
        }
        let missed = Judged {
            scenario: "t".to_owned(),
            target: "score >= 0.95".to_owned(),
            found: "0.9000".to_owned(),
            standing: Grade::Missed,
        };
        let page = page(&all, &[missed], 3).html();
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
