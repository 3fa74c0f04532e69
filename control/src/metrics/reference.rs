//! The reference of the metrics, generated from their table.

use std::fmt::Write as _;

use super::table::{MAX_VERSIONS, PREFIX, TABLE};

const HEAD: &str = "# Metrics of the control service

<!-- Generated from control/src/metrics/table.rs by `make docs`. Do not edit. -->

`tidegate serve` offers them at `/metrics`, in the OpenMetrics text format that Prometheus reads. The metrics of
the filter are on [another page](metrics.md).

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
        "\nThe number of series is bounded, independent of the number of proxies: labels have the listed values, and at most
{MAX_VERSIONS} versions plus two more have a series. `/v1/proxies` shows which proxy runs what.
"
    );
    page
}
