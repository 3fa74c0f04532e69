//! The cost of the filter if nothing else limits: saturated closed loops through Envoy without and with it.

use tidegate_report::page::Page;
use tidegate_report::table::Table;

use super::groups::CellGroup;
use crate::result::{Figure, Topology};

/// The loops to compare: connections, clients, and the topology, which decides the number of Envoys.
const LOOPS: [(f64, f64, Topology); 2] = [
    (64.0, 1.0, Topology::Shared),
    (64.0, 8.0, Topology::Sidecar),
];

/// The figures to compare, and how their difference is shown.
const FIGURES: [(Figure, DifferenceKind); 4] = [
    (Figure::Qps, DifferenceKind::Share),
    (Figure::P99Ms, DifferenceKind::Amount),
    (Figure::CpuMicros, DifferenceKind::Amount),
    (Figure::RssMib, DifferenceKind::Amount),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DifferenceKind {
    Share,
    Amount,
}

/// Adds the table: a row for each loop and figure; nothing if none was played.
pub(super) fn write(page: &mut Page, groups: &[CellGroup<'_>]) {
    let rows: Vec<Vec<String>> = LOOPS
        .into_iter()
        .flat_map(|which| rows(groups, which))
        .collect();
    if rows.is_empty() {
        return;
    }
    page.subheading("What the filter costs in a saturated closed loop");
    page.paragraph(
        "Closed loops at full rate over 64 connections, through one Envoy and through eight. All processes share the cores, so \
         that CPU time that a proxy needs is missing at the client and shows as throughput. Medians, with the least and the \
         greatest of several repetitions.",
    );
    let head = [
        "Envoys",
        "figure",
        "Envoy alone",
        "with the filter",
        "the filter adds",
    ];
    page.table(Table::with_names(2, &head, rows));
}

fn rows(
    groups: &[CellGroup<'_>],
    (connections, clients, topology): (f64, f64, Topology),
) -> Vec<Vec<String>> {
    let of = |contender: &str| {
        groups.iter().find(|group| {
            group.any.number("connections") == Some(connections)
                && group.any.number("clients") == Some(clients)
                && group.any.topology == topology
                && group.any.contender == contender
        })
    };
    let Some((without, with)) = of("none").zip(of("tidegate")) else {
        return Vec::new();
    };
    let row = |(figure, difference): (Figure, DifferenceKind)| {
        vec![
            format!("{clients}"),
            figure.head().to_owned(),
            without.shown(figure),
            with.shown(figure),
            added(without, with, figure, difference),
        ]
    };
    FIGURES.into_iter().map(row).collect()
}

fn added(
    without: &CellGroup<'_>,
    with: &CellGroup<'_>,
    figure: Figure,
    difference: DifferenceKind,
) -> String {
    let medians = [without, with].map(|group| group.spread(figure).map(|spread| spread.median));
    let [Some(before), Some(after)] = medians else {
        return "-".to_owned();
    };
    match difference {
        DifferenceKind::Share => format!("{:+.0} %", (after / before - 1.0) * 100.0),
        DifferenceKind::Amount => format!("{:+.2}", after - before),
    }
}

#[cfg(test)]
mod tests {
    use super::super::groups::groups;
    use super::super::groups::tests::cell;
    use super::*;
    use crate::result::CellResult;

    fn played(contender: &str, qps: f64, rss_mib: f64) -> CellResult {
        let mut cell = cell("c", (Topology::Sidecar, contender), 0, 5.0);
        cell.parameters = [
            ("connections".to_owned(), 64_u32.into()),
            ("clients".to_owned(), 8_u32.into()),
        ]
        .into();
        cell.figures.qps = Some(qps);
        cell.figures.rss_mib = Some(rss_mib);
        cell
    }

    #[test]
    fn throughput_is_a_share_and_memory_an_amount() {
        let cells = [
            played("none", 20_000.0, 500.0),
            played("tidegate", 15_000.0, 800.0),
        ];
        let mut page = Page::new("d");
        write(&mut page, &groups(&cells));
        let text = page.markdown();
        assert!(
            text.contains("| 8 | qps | 20000 | 15000 | -25 % |"),
            "{text}"
        );
        assert!(text.contains("| 8 | MiB | 500 | 800 | +300.00 |"), "{text}");
        assert!(
            text.contains("| 8 | CPU us/request | - | - | - |"),
            "{text}"
        );
    }

    #[test]
    fn without_both_there_is_no_table() {
        let cells = [played("none", 1.0, 1.0)];
        let mut page = Page::new("d");
        write(&mut page, &groups(&cells));
        assert!(!page.markdown().contains("saturated"));
    }
}
