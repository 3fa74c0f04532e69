//! The section of each study: the question, all cells, and the charts that answer it.

use tidegate_report::page::Page;
use tidegate_report::table::Table;

use super::groups::{CellGroup, entrants, groups};
use super::{pictures, scores};
use crate::result::{CellResult, Figure, LoadtestRun};
use crate::score::ScoreTargets;

/// A section of the report.
pub(super) struct ReportSection {
    /// Name of the study in the results.
    pub(super) name: &'static str,
    title: &'static str,
    text: &'static str,
    pictures: fn(&mut Page, &[CellGroup<'_>], &ScoreTargets),
}

/// The studies, in the order of the report.
pub(super) const SECTIONS: [ReportSection; 8] = [
    ReportSection {
        name: "transition",
        title: "From sidecars to a shared proxy",
        text: "After \"Adaptive Circuit Breaker Configuration for Transition from Istio Sidecar to Ambient Mode\" (2025): \
               values of a static breaker that fit sidecars do not fit a shared proxy. The same load with one unchanged \
               Tidegate policy beside it.",
        pictures: pictures::transition,
    },
    ReportSection {
        name: "traffic",
        title: "Partial failures, queues and retry storms",
        text: "After \"Efficient service mesh traffic management for cloud-native applications\" (2026), section 4.2: \
               response time and request rate over time, static breakers against Tidegate.",
        pictures: pictures::traffic,
    },
    ReportSection {
        name: "ambient",
        title: "What a proxy and the filter add",
        text: "After \"Ambient Mesh: Can Sidecar-less Istio Make Applications Faster?\" (2024): latency direct, through \
               Envoy, and through Envoy with the filter.",
        pictures: pictures::ambient,
    },
    ReportSection {
        name: "score",
        title: "Composite score",
        text: "After \"Performance and security of sidecar proxies\" (2026): one score from p95, p99, throughput, CPU and \
               memory.",
        pictures: |page, groups, targets| scores::write(page, groups, targets),
    },
    ReportSection {
        name: "replicas",
        title: "Cost of many servers",
        text: "After \"Test report: Istio ambient vs sidecar\" (2024): throughput, latency, CPU and memory for one to eight \
               replicas of the server, without a proxy, with a sidecar beside each, and behind one shared proxy.",
        pictures: pictures::replicas,
    },
    ReportSection {
        name: "clients",
        title: "Cost of many clients",
        text: "Ours, after the form of the study of servers: one to eight clients, each with a sidecar or all with one shared \
               proxy, in closed loops at full rate.",
        pictures: pictures::clients,
    },
    ReportSection {
        name: "k6",
        title: "k6 scenarios",
        text: "The scenarios of make loadtest-k6, each against an Envoy and an upstream of known capacity, with the \
               objective as thresholds.",
        pictures: pictures::k6,
    },
    ReportSection {
        name: "bench",
        title: "Scenarios on real sockets",
        text: "The scenarios of make bench: the same requests with each contender, held against an oracle that knows the \
               capacity.",
        pictures: pictures::bench,
    },
];

impl ReportSection {
    /// Adds the section of this study from `run`.
    pub(super) fn write(&self, page: &mut Page, run: &LoadtestRun, targets: &ScoreTargets) {
        let cells: Vec<&CellResult> = run
            .cells
            .iter()
            .filter(|cell| cell.study == self.name)
            .collect();
        let groups = groups(cells);
        page.heading(self.title);
        page.paragraph(self.text);
        (self.pictures)(page, &groups, targets);
        table(page, &groups);
    }
}

/// Adds cells of studies without a section: only the table.
pub(super) fn write_unknown(page: &mut Page, run: &LoadtestRun) {
    let is_known = |cell: &&CellResult| SECTIONS.iter().any(|section| section.name == cell.study);
    let mut names: Vec<&str> = run
        .cells
        .iter()
        .filter(|cell| !is_known(cell))
        .map(|cell| cell.study.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        page.heading(name);
        table(
            page,
            &groups(run.cells.iter().filter(|cell| cell.study == name)),
        );
    }
}

/// Adds the table of all cells, with the figures that any of them has.
fn table(page: &mut Page, groups: &[CellGroup<'_>]) {
    let entrants = entrants(groups);
    let name = |group: &CellGroup<'_>| {
        let entrant = group.entrant();
        entrants
            .iter()
            .find(|(other, ..)| *other == entrant)
            .map_or_else(String::new, |(_, name, _)| name.clone())
    };
    let has = |figure: &Figure| groups.iter().any(|group| group.spread(*figure).is_some());
    let figures: Vec<Figure> = Figure::ALL.into_iter().filter(has).collect();
    let mut head = vec!["cell", "contender"];
    head.extend(figures.iter().map(|figure| figure.head()));
    let row = |group: &CellGroup<'_>| {
        let mut row = vec![group.any.cell.clone(), name(group)];
        row.extend(figures.iter().map(|figure| group.shown(*figure)));
        row
    };
    let summary = format!("All {} cells", groups.len());
    page.folded_table(
        &summary,
        Table::with_names(2, &head, groups.iter().map(row).collect()),
    );
}

#[cfg(test)]
mod tests {
    use super::super::groups::tests::cell;
    use super::*;
    use crate::result::Topology;

    #[test]
    fn a_study_without_a_section_has_its_table() {
        let run = LoadtestRun {
            info: crate::result::tests::info(),
            cells: vec![cell("a", (Topology::Shared, "tidegate"), 0, 1.5)],
            damaged: Vec::new(),
        };
        let text = super::super::report(&[run], &ScoreTargets::ours().unwrap()).markdown();
        assert!(
            text.contains("## s\n") && text.contains("| a | tidegate | 1.50 |"),
            "{text}"
        );
    }
}
