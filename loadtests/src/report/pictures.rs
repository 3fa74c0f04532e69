//! The charts of each study.

use tidegate_report::page::Page;
use tidegate_report::table::Table;

use super::added;
use super::groups::{CellGroup, distinct};
use super::over_time;
use super::panel::{Panel, parameter};
use super::storm;
use crate::result::{CellResult, Figure, Parameter};
use crate::score::ScoreTargets;

const LATENCIES: [Figure; 5] = [
    Figure::MeanMs,
    Figure::P50Ms,
    Figure::P90Ms,
    Figure::P95Ms,
    Figure::P99Ms,
];
const ANSWERS: [Figure; 2] = [Figure::Qps, Figure::SuccessRatio];

/// The settings of a static breaker: prefix of the names of their cells, and heading.
const KNOBS: [(&str, &str); 3] = [
    ("maxConnections", "Turning maxConnections"),
    ("http1MaxPendingRequests", "Turning http1MaxPendingRequests"),
    (
        "maxRequestsPerConnection",
        "Turning maxRequestsPerConnection",
    ),
];

pub(super) fn transition(page: &mut Page, all: &[CellGroup<'_>], _: &ScoreTargets) {
    let of = |knob: &str| -> Vec<CellGroup<'_>> {
        all.iter()
            .filter(|group| group.any.cell.starts_with(knob))
            .cloned()
            .collect()
    };
    let loads = of("load ");
    let figures: Vec<Figure> = ANSWERS
        .into_iter()
        .chain([Figure::GoodputRps])
        .chain(LATENCIES)
        .collect();
    Panel {
        title: "One setting under all loads",
        text: "Requests a second; below them the number of clients, each with a sidecar or all with one shared proxy.",
        figures: &figures,
        label: |cell| format!("{}\nx{}", parameter(cell, "qps"), parameter(cell, "clients")),
    }
    .write(page, &loads);
    super::transition::write(page, all);
    for (knob, title) in KNOBS {
        let panel = Panel {
            title,
            text: "Values of the setting; below them requests a second.",
            figures: &figures,
            label: |cell| {
                let value = cell.cell.split(['=', ' ']).nth(1).unwrap_or_default();
                format!("{value}\n{}", parameter(cell, "qps"))
            },
        };
        panel.write(page, &of(knob));
    }
}

pub(super) fn traffic(page: &mut Page, all: &[CellGroup<'_>], _: &ScoreTargets) {
    stories(page, all);
    let part = |group: &CellGroup<'_>| {
        group
            .any
            .cell
            .split(' ')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    // Each part of the study separately: not every contender plays all of them, and that is no gap.
    for name in distinct(all.iter().map(part)) {
        let of_this: Vec<CellGroup<'_>> = all
            .iter()
            .filter(|group| part(group) == name)
            .cloned()
            .collect();
        became(
            page,
            &format!("What became of the requests: {name}"),
            &of_this,
        );
    }
    storm::write(page, all);
}

/// Adds the results of the requests of some cells.
fn became(page: &mut Page, title: &str, groups: &[CellGroup<'_>]) {
    let panel = Panel {
        title,
        text: "",
        figures: &[
            Figure::SuccessRatio,
            Figure::GoodputRps,
            Figure::ShedRatio,
            Figure::ReachedPerRequest,
            Figure::P95Ms,
        ],
        // A delay is in one row with its share.
        label: |cell| {
            cell.cell
                .replace(" by ", "\u{a0}by\u{a0}")
                .replace(' ', "\n")
        },
    };
    panel.write(page, groups);
}

pub(super) fn bench(page: &mut Page, all: &[CellGroup<'_>], _: &ScoreTargets) {
    let panel = Panel {
        title: "Score and cost",
        text: "",
        figures: &[
            Figure::OracleRatio,
            Figure::ShedRatio,
            Figure::ReachedPerRequest,
            Figure::P99Ms,
            Figure::CpuMicros,
        ],
        label: |cell| cell.cell.replace('-', "\n"),
    };
    panel.write(page, all);
    stories(page, all);
}

/// Each cell over time, under its name.
fn stories(page: &mut Page, all: &[CellGroup<'_>]) {
    for name in distinct(all.iter().map(|group| group.any.cell.as_str())) {
        let of_this: Vec<CellGroup<'_>> = all
            .iter()
            .filter(|group| group.any.cell == name)
            .cloned()
            .collect();
        page.subheading(name);
        over_time::write(page, &of_this);
    }
}

/// The protocol of a cell's connections, if it is a parameter of the cell.
fn wire(cell: &CellResult) -> Option<&str> {
    cell.cell.rsplit(' ').next()?.strip_prefix("wire=")
}

pub(super) fn ambient(page: &mut Page, all: &[CellGroup<'_>], _: &ScoreTargets) {
    let latencies = [
        Figure::MeanMs,
        Figure::P50Ms,
        Figure::P75Ms,
        Figure::P90Ms,
        Figure::P99Ms,
        Figure::Qps,
    ];
    let (wired, fast): (Vec<_>, Vec<_>) = all
        .iter()
        .cloned()
        .partition(|group| wire(group.any).is_some());
    Panel {
        title: "Latency",
        text: "Requests a second on so many connections; c: each request with a connection of its own.",
        figures: &latencies,
        label: |cell| {
            let end = if cell.cell.ends_with("close") { " c" } else { "" };
            format!("{}\non {}{end}", parameter(cell, "qps"), parameter(cell, "connections"))
        },
    }
    .write(page, &fast);
    let figures: Vec<Figure> = latencies
        .into_iter()
        .chain([Figure::CpuMicros, Figure::ClientMicros])
        .collect();
    Panel {
        title: "HTTP/2 and mutual TLS",
        text: "1,000 requests a second on 100 connections, by fortio's client of Go's library, which alone can speak these. \
               Envoy ends TLS. There is no mutual TLS without a proxy.",
        figures: &figures,
        label: |cell| wire(cell).unwrap_or_default().replace('+', "\n+ "),
    }
    .write(page, &wired);
    added::write(page, all);
}

pub(super) fn replicas(page: &mut Page, all: &[CellGroup<'_>], _: &ScoreTargets) {
    saturated(page, all, ("Number of servers.", "replicas"));
}

pub(super) fn clients(page: &mut Page, all: &[CellGroup<'_>], _: &ScoreTargets) {
    super::filter_cost::write(page, all);
    let said = "Number of clients, each with a sidecar or all with one shared proxy.";
    saturated(page, all, (said, "clients"));
}

/// The cost of closed loops at full rate, over a growing number.
fn saturated(page: &mut Page, all: &[CellGroup<'_>], (text, number): (&str, &'static str)) {
    let figures = [
        Figure::CpuCores,
        Figure::CpuMicros,
        Figure::RssMib,
        Figure::Qps,
        Figure::P50Ms,
        Figure::P90Ms,
        Figure::P99Ms,
        Figure::P999Ms,
    ];
    let connections = |group: &CellGroup<'_>| parameter(group.any, "connections");
    for count in distinct(all.iter().map(connections)) {
        let of_this: Vec<CellGroup<'_>> = all
            .iter()
            .filter(|group| connections(group) == count)
            .cloned()
            .collect();
        let panel = Panel {
            title: &format!("{count} connections"),
            text,
            figures: &figures,
            label: if number == "replicas" {
                |cell| parameter(cell, "replicas")
            } else {
                |cell| parameter(cell, "clients")
            },
        };
        panel.write(page, &of_this);
    }
}

/// Results of k6 scenarios besides figures: parameter, and head of its column.
const SAID: [(&str, &str); 4] = [
    ("thresholds", "thresholds"),
    ("thresholds_missed", "missed"),
    ("shed_by_reason", "shed by reason"),
    ("success_by_criticality", "success by criticality"),
];

pub(super) fn k6(page: &mut Page, all: &[CellGroup<'_>], _: &ScoreTargets) {
    let head: Vec<&str> = std::iter::once("scenario")
        .chain(SAID.map(|(_, head)| head))
        .collect();
    // Each repetition has its own row, so that a missed threshold is not hidden.
    let cells = all.iter().flat_map(|group| &group.ended);
    let rows = cells.map(|cell| {
        let said = |(name, _): (&str, &str)| match (name, cell.parameters.get(name)) {
            (_, None) => "-".to_owned(),
            ("thresholds_missed", Some(Parameter::Text(missed))) if missed != "none" => {
                format!("!{missed}")
            }
            (_, Some(value)) => value.to_string(),
        };
        std::iter::once(cell.cell.clone())
            .chain(SAID.map(said))
            .collect()
    });
    page.table(Table::with_names(head.len(), &head, rows.collect()));
    stories(page, all);
    became(page, "What became of the requests", all);
}
