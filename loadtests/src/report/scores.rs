//! The composite score of each contender, part by part.

use tidegate_advise::score::Cost;
use tidegate_report::chart::bars::{Bar, BarSeries, Bars};
use tidegate_report::color::Color;
use tidegate_report::page::Page;
use tidegate_report::table::Table;

use super::groups::{CellGroup, contender, entrants};
use crate::result::{CellFigures, Figure};
use crate::score::{CellScore, ScoreTargets, Weights};

/// Adds table and chart; contenders are sorted by the composite.
pub(super) fn write(page: &mut Page, groups: &[CellGroup<'_>], targets: &ScoreTargets) {
    page.subheading("Composite score");
    let reference = targets.relative_to.as_deref();
    let is_reference = |group: &&CellGroup<'_>| reference == Some(group.any.contender.as_str());
    let absolute = match reference {
        None => Some(targets.clone()),
        Some(_) => groups
            .iter()
            .find(is_reference)
            .and_then(|group| targets.of(&medians(group))),
    };
    let Some(targets) = absolute else {
        page.paragraph(&format!(
            "No score: targets are multiples of what {} has, of which there are no figures.",
            contender(reference.unwrap_or_default())
        ));
        return;
    };
    let mut scored: Vec<(String, CellScore)> = entrants(groups)
        .into_iter()
        .filter_map(|(entrant, name, _)| {
            let group = groups.iter().find(|group| group.entrant() == entrant)?;
            Some((name, targets.score(&medians(group))))
        })
        .collect();
    scored.sort_by(|(_, a), (_, b)| {
        let [a, b] = [a, b].map(|score| score.composite(Weights::Equal).unwrap_or(-1.0));
        b.total_cmp(&a)
    });
    let rps = |value| Figure::Qps.shown(value);
    page.paragraph(&format!(
        "Each part is 0 to 1, of the medians: p95 {}, p99 {}, throughput {}, CPU {}, memory {}. The composite is their \
         mean, and beside it the mean in which p99 counts twice. The publication prints no targets, and its two latency \
         columns fit none; here all parts follow the formula.{}",
        cost(targets.p95_ms, Figure::P95Ms, "ms"),
        cost(targets.p99_ms, Figure::P99Ms, "ms"),
        format_args!(
            "0 up to {}, 1 from {} a second",
            rps(targets.throughput_rps.floor),
            rps(targets.throughput_rps.ceiling)
        ),
        cost(targets.cpu_us, Figure::CpuMicros, "us a request"),
        cost(targets.memory_mib, Figure::RssMib, "MiB"),
        reference.map_or_else(String::new, |name| format!(
            " These targets are multiples of what {} has in the same run, so that its own score is 1.",
            contender(name)
        )),
    ));
    let head = [
        "contender",
        "equal",
        "p99 twice",
        "p95",
        "p99",
        "throughput",
        "CPU",
        "memory",
    ];
    let shown =
        |part: Option<f64>| part.map_or_else(|| "-".to_owned(), |part| format!("{part:.2}"));
    let row = |(name, score): &(String, CellScore)| {
        let composites =
            [Weights::Equal, Weights::DoubleP99].map(|weights| score.composite(weights));
        let parts = [
            score.p95,
            score.p99,
            score.throughput,
            score.cpu,
            score.memory,
        ];
        std::iter::once(name.clone())
            .chain(composites.into_iter().chain(parts).map(shown))
            .collect()
    };
    page.table(Table::with_names(
        1,
        &head,
        scored.iter().map(row).collect(),
    ));
    page.charts([chart(&scored)]);
}

fn cost(cost: Cost, figure: Figure, unit: &str) -> String {
    format!(
        "1 up to {}, 0 from {} {unit}",
        figure.shown(cost.target),
        figure.shown(cost.target + cost.budget)
    )
}

fn medians(group: &CellGroup<'_>) -> CellFigures {
    let median = |figure| group.spread(figure).map(|spread| spread.median);
    // CPU time of a request is what counts: given for a second, it is the same for the rate of that second.
    let qps = median(Figure::Qps);
    let cpu_seconds = median(Figure::CpuMicros)
        .zip(qps)
        .map(|(micros, qps)| micros * qps / 1e6);
    CellFigures {
        seconds: Some(1.0),
        qps,
        cpu_seconds,
        p95_ms: median(Figure::P95Ms),
        p99_ms: median(Figure::P99Ms),
        rss_mib: median(Figure::RssMib),
        ..CellFigures::default()
    }
}

fn chart(scored: &[(String, CellScore)]) -> Bars {
    let groups = scored
        .iter()
        .map(|(name, _)| name.replace('-', "-\n"))
        .collect();
    let mut bars = Bars::new("Composite score", "0 to 1", groups);
    for (weights, color) in [
        (Weights::Equal, Color::Teal),
        (Weights::DoubleP99, Color::Violet),
    ] {
        let bar = |(_, score): &(String, CellScore)| {
            score.composite(weights).map(|value| Bar {
                value,
                least: value,
                greatest: value,
            })
        };
        bars.series.push(BarSeries {
            name: weights.to_string(),
            color,
            bars: scored.iter().map(bar).collect(),
        });
    }
    bars.top = Some(1.0);
    bars
}

#[cfg(test)]
mod tests {
    use super::super::groups::groups;
    use super::super::groups::tests::cell;
    use super::*;
    use crate::result::Topology;

    #[test]
    fn the_best_comes_first_and_who_lacks_a_part_last() {
        let with = |contender: &str, p99_ms: f64| {
            let mut cell = cell("c", (Topology::Shared, contender), 0, p99_ms);
            cell.figures = CellFigures {
                seconds: Some(2.0),
                qps: Some(1_000.0),
                cpu_seconds: Some(1.0),
                rss_mib: Some(50.0),
                p95_ms: Some(1.0),
                ..cell.figures
            };
            cell
        };
        let mut cells = [with("a", 1e6), with("b", 1.0), with("c", 1.0)];
        cells[2].figures.rss_mib = None;
        let mut page = Page::new("d");
        let targets = ScoreTargets::parse(
            "p95_ms={target=5,budget=45}\np99_ms={target=10,budget=90}\ncpu_us={target=50,budget=450}\n\
             memory_mib={target=40,budget=160}\nthroughput_rps={floor=0,ceiling=8000}",
            "absolute",
        );
        write(&mut page, &groups(&cells), &targets.unwrap());
        let text = page.markdown();
        let rows: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("| "))
            .skip(1)
            .map(|line| &line[..4])
            .collect();
        assert_eq!(rows, ["| b ", "| a ", "| c "], "{text}");
        assert!(text.contains("| c | - | - |"), "{text}");
    }

    #[test]
    fn without_the_contender_that_targets_refer_to_there_is_no_score() {
        let cells = [cell("c", (Topology::Shared, "tidegate"), 0, 1.0)];
        let mut page = Page::new("d");
        write(&mut page, &groups(&cells), &ScoreTargets::ours().unwrap());
        let text = page.markdown();
        assert!(
            text.contains("No score: targets are multiples of what Envoy alone has")
                && !text.contains("| tidegate"),
            "{text}"
        );
    }

    #[test]
    fn the_cost_of_a_request_is_kept() {
        let mut cell = cell("c", (Topology::Shared, "a"), 0, 1.0);
        cell.figures.seconds = Some(4.0);
        cell.figures.qps = Some(500.0);
        cell.figures.cpu_seconds = Some(1.0);
        let cells = [cell];
        let found = Figure::CpuMicros.of(&medians(&groups(&cells)[0])).unwrap();
        assert!((found - 500.0).abs() < 1e-6, "{found}");
    }
}
