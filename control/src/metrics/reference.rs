//! The reference of the metrics, made from their table.

use std::fmt::Write as _;

use super::table::{MAX_VERSIONS, PREFIX, TABLE};

const HEAD: &str = "# Metrics of the control service

<!-- Generated from control/src/metrics/table.rs by `make docs`. Do not edit. -->

`tidegate serve` has them at `/metrics`, in the OpenMetrics text format that Prometheus reads. Those of the
filter are on [another page](metrics.md).

| metric | type | labels | meaning |
|---|---|---|---|
";

/// The page.
#[must_use]
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    for meaning in TABLE {
        let labels: Vec<String> = meaning
            .labels
            .iter()
            .map(|(label, values)| format!("`{label}`: {values}"))
            .collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| `{PREFIX}_{}{}` | {} | {} | {}. |",
            meaning.name,
            meaning.kind.ending(),
            meaning.kind.name(),
            labels.join("; "),
            meaning.help
        );
    }
    let _ = write!(
        page,
        "\nThe number of series is bounded whatever the fleet: labels take the values listed, and versions at most
{MAX_VERSIONS} and two more. Which proxy runs what is at `/v1/proxies`.
"
    );
    page
}
