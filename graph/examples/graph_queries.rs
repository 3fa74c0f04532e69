//! Prints every query, as it is planned with default settings, as a rule for promtool: `graph/tests/promtool/rules.yaml`.

use std::process::ExitCode;

use tidegate_graph::{HistogramForm, ObservationWindow, PlannedQuery, QueryMeasure, planned};

/// The defaults of `tidegate graph`. The queries have no place for the end.
const OBSERVED: ObservationWindow = ObservationWindow {
    end: 0,
    window_seconds: 3_600,
    step_seconds: 300,
};

fn main() -> ExitCode {
    match planned(OBSERVED, "job") {
        Ok(plan) => {
            print(&plan);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(plan: &[PlannedQuery]) {
    println!(
        "# The queries of graph/src/queries.toml with default settings: generated for rules_test.yaml. `make docs` writes it."
    );
    println!("groups:");
    let mut family = "";
    for query in plan {
        if query.family != family {
            family = &query.family;
            println!("- name: {family}\n  rules:");
        }
        let name = format!("graph:{}:{}", family.replace('-', "_"), name(query.measure));
        // Text in YAML: only the quote of YAML has to be doubled.
        println!(
            "  - record: {name}\n    expr: '{}'",
            query.promql.replace('\'', "''")
        );
    }
}

fn name(measure: QueryMeasure) -> &'static str {
    use HistogramForm::{Classic, Native};
    match measure {
        QueryMeasure::Rate => "rate",
        QueryMeasure::Points => "points",
        QueryMeasure::LastSeen => "last_seen",
        QueryMeasure::Requests => "requests",
        QueryMeasure::Failures => "failures",
        QueryMeasure::Mean(Classic) => "mean",
        QueryMeasure::Mean(Native) => "native_mean",
        QueryMeasure::P50(Classic) => "p50",
        QueryMeasure::P50(Native) => "native_p50",
        QueryMeasure::P95(Classic) => "p95",
        QueryMeasure::P95(Native) => "native_p95",
        QueryMeasure::P99(Classic) => "p99",
        QueryMeasure::P99(Native) => "native_p99",
        QueryMeasure::InFlight => "in_flight",
        QueryMeasure::Services => "services",
    }
}
