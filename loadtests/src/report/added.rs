//! Latency added by a proxy, and by the filter in it: differences of means with their spread over repetitions.
//!
//! A difference whose 95 % confidence interval by Welch's test contains zero is noise. Many are tested, so that one in twenty
//! counts as a difference by chance: only what holds across loads and figures counts.

use tidegate_report::page::Page;
use tidegate_report::table::Table;

use super::groups::{CellGroup, Entrant, distinct};
use crate::compare::welch;
use crate::result::{Figure, Topology};

const FIGURES: [Figure; 7] = [
    Figure::MeanMs,
    Figure::P50Ms,
    Figure::P75Ms,
    Figure::P90Ms,
    Figure::P99Ms,
    Figure::CpuMicros,
    Figure::ClientMicros,
];

/// Changes of the protocol, each compared with HTTP/1.1 by the same client.
const WIRES: [(&str, &str); 3] = [
    ("HTTP/2", "wire=http2"),
    ("mutual TLS", "wire=mtls"),
    ("mutual TLS and HTTP/2", "wire=mtls+http2"),
];

/// The steps of the path: what is added, and the two entrants to compare.
fn steps() -> [(&'static str, Entrant, Entrant); 2] {
    let entrant = |topology, contender: &str| Entrant {
        topology,
        contender: contender.to_owned(),
    };
    let envoy = || entrant(Topology::Shared, "none");
    [
        (
            "Envoy, to direct",
            entrant(Topology::Direct, "none"),
            envoy(),
        ),
        (
            "the filter, to Envoy",
            envoy(),
            entrant(Topology::Shared, "tidegate"),
        ),
    ]
}

/// Adds the table: for each load the cost of each step.
pub(super) fn write(page: &mut Page, all: &[CellGroup<'_>]) {
    let mut rows = Vec::new();
    let of = |cell: &str, entrant: &Entrant| {
        all.iter()
            .find(|group| group.any.cell == cell && group.entrant() == *entrant)
    };
    for cell in distinct(all.iter().map(|group| group.any.cell.as_str())) {
        for (name, without, with) in steps() {
            if let (Some(without), Some(with)) = (of(cell, &without), of(cell, &with)) {
                rows.push(row((cell, name), without, with));
            }
        }
        for (name, wire) in WIRES {
            let Some(load) = cell.strip_suffix(wire) else {
                continue;
            };
            let before = format!("{load}wire=http1");
            for with in all.iter().filter(|group| group.any.cell == cell) {
                if let Some(without) = of(&before, &with.entrant()) {
                    let by = format!("{name}, {}", way(&with.entrant()));
                    rows.push(row((cell, &by), without, with));
                }
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    page.subheading("What each step adds");
    page.paragraph(
        "Difference of the means over the repetitions, latencies in milliseconds and CPU time in microseconds for each \
         request, with its 95 % confidence interval (Welch). Where the interval holds zero it is noise.",
    );
    let head: Vec<&str> = ["load", "added by"]
        .into_iter()
        .chain(FIGURES.map(Figure::head))
        .collect();
    page.table(Table::with_names(2, &head, rows));
}

/// The path of a request.
fn way(entrant: &Entrant) -> &'static str {
    match (entrant.topology, entrant.contender.as_str()) {
        (Topology::Direct, _) => "direct",
        (_, "none") => "through Envoy",
        _ => "through Envoy with the filter",
    }
}

fn row((cell, by): (&str, &str), without: &CellGroup<'_>, with: &CellGroup<'_>) -> Vec<String> {
    let added = FIGURES.into_iter().map(|figure| {
        let [without, with] = [without, with].map(|group| group.values(figure));
        // Without proxies there is no CPU time of proxies, and only fortio reports CPU time of clients.
        let is_cpu = matches!(figure, Figure::CpuMicros | Figure::ClientMicros);
        if is_cpu && (without.is_empty() || with.is_empty()) {
            return "-".to_owned();
        }
        added(&without, &with)
    });
    [cell.to_owned(), by.to_owned()]
        .into_iter()
        .chain(added)
        .collect()
}

/// A difference as a cell of a table.
fn added(without: &[f64], with: &[f64]) -> String {
    if without.is_empty() || with.is_empty() {
        return "!gap".to_owned();
    }
    let difference = welch::mean(with) - welch::mean(without);
    match welch::test(without, with).map(|test| test.interval) {
        None => format!("{difference:+.2} (one run)"),
        Some((low, high)) if low <= 0.0 && high >= 0.0 => format!("noise ({low:+.2}..{high:+.2})"),
        Some((low, high)) => format!("*{difference:+.2} ({low:+.2}..{high:+.2})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repetitions_differ_by_is_noise() {
        assert!(added(&[1.0, 1.2, 1.1], &[1.1, 1.3, 1.0]).starts_with("noise (-"));
        assert!(added(&[1.0, 1.02, 1.01], &[2.0, 2.02, 2.01]).starts_with("*+1.00 (+0.9"));
        assert_eq!(added(&[1.0], &[1.5]), "+0.50 (one run)");
        assert_eq!(added(&[], &[1.5]), "!gap");
    }
}
