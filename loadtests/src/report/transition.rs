//! Whether a setting has the same effect in both topologies: a shared proxy compared with sidecars, under the same load.

use tidegate_report::page::Page;
use tidegate_report::table::Table;

use super::groups::{CellGroup, contender};
use crate::result::{Figure, Topology};

/// Greatest difference, as a share, of success and goodput between the two topologies that counts as equal.
const ALIKE: f64 = 0.05;

/// Adds the table: for each load and contender, both topologies and their difference.
pub(super) fn write(page: &mut Page, groups: &[CellGroup<'_>]) {
    let shared = groups
        .iter()
        .filter(|group| group.any.topology == Topology::Shared);
    let rows: Vec<Vec<String>> = shared.filter_map(|shared| row(groups, shared)).collect();
    if rows.is_empty() {
        return;
    }
    page.subheading("The same setting in both topologies");
    let mut text = "The medians of success and goodput with sidecars and with a shared proxy, and how many times the \
         greater is the smaller. Up to 1.05 they count as alike. Scaled values are those of the sidecars times their number."
        .to_owned();
    if groups.iter().any(|group| group.ended.len() == 1) {
        text += " What was played once has no spread: a few percent more may be noise.";
    }
    page.paragraph(&text);
    let head = [
        "load",
        "contender",
        "success % sidecar",
        "shared",
        "apart",
        "goodput /s sidecar",
        "shared",
        "apart",
    ];
    page.table(Table::with_names(2, &head, rows));
}

fn row(groups: &[CellGroup<'_>], shared: &CellGroup<'_>) -> Option<Vec<String>> {
    // For sidecars the values are not scaled.
    let before = match shared.any.contender.as_str() {
        "static-scaled" => "static",
        other => other,
    };
    let is_twin = |group: &&CellGroup<'_>| {
        group.any.topology == Topology::Sidecar
            && group.any.cell == shared.any.cell
            && group.any.contender == before
    };
    let sidecar = groups.iter().find(is_twin)?;
    let mut row = vec![
        shared.any.cell.clone(),
        contender(&shared.any.contender).to_owned(),
    ];
    for figure in [Figure::SuccessRatio, Figure::GoodputRps] {
        let both = [sidecar, shared].map(|group| group.spread(figure).map(|spread| spread.median));
        row.extend(
            both.map(|value| value.map_or_else(|| "-".to_owned(), |value| figure.shown(value))),
        );
        let [one, other] = both;
        row.push(
            one.zip(other)
                .map_or_else(|| "-".to_owned(), |(one, other)| apart(one, other)),
        );
    }
    Some(row)
}

fn apart(one: f64, other: f64) -> String {
    let (most, least) = (one.max(other), one.min(other));
    if most <= 0.0 {
        return "1.00".to_owned();
    }
    let times = most / least;
    let mark = if times <= 1.0 + ALIKE { "*" } else { "!" };
    if times.is_finite() {
        format!("{mark}{times:.2}")
    } else {
        "!all".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_five_percent_is_alike() {
        assert_eq!(apart(100.0, 105.0), "*1.05");
        assert_eq!(apart(250.0, 130.0), "!1.92");
        assert_eq!(apart(0.0, 3.0), "!all");
        assert_eq!(apart(0.0, 0.0), "1.00");
    }
}
