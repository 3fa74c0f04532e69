//! Repetitions of one cell with one contender in one topology, combined.

use std::collections::BTreeMap;

use tidegate_report::color::Color;
use tidegate_testbed::bench::report::median::Spread;

use crate::result::{CellResult, Figure, Topology};

/// All repetitions of one cell with one contender in one topology.
#[derive(Debug, Clone)]
pub(crate) struct CellGroup<'a> {
    /// One of them, for their common properties.
    pub(crate) any: &'a CellResult,
    /// Those that came to an end.
    pub(crate) ended: Vec<&'a CellResult>,
}

/// Groups cells by their common properties, in order of the first of each.
pub(crate) fn groups<'a>(cells: impl IntoIterator<Item = &'a CellResult>) -> Vec<CellGroup<'a>> {
    let mut groups: Vec<CellGroup<'a>> = Vec::new();
    let mut places = BTreeMap::new();
    for cell in cells {
        let key = (&cell.study, &cell.cell, cell.topology, &cell.contender);
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push(CellGroup {
                any: cell,
                ended: Vec::new(),
            });
        }
        if let Some(group) = groups.get_mut(place).filter(|_| cell.error().is_none()) {
            group.ended.push(cell);
        }
    }
    groups
}

impl CellGroup<'_> {
    /// The values of a figure, one for each repetition that has it.
    pub(crate) fn values(&self, figure: Figure) -> Vec<f64> {
        self.ended
            .iter()
            .filter_map(|cell| figure.of(&cell.figures))
            .collect()
    }

    /// A figure over the repetitions.
    pub(crate) fn spread(&self, figure: Figure) -> Option<Spread> {
        Spread::of(self.values(figure))
    }

    /// A figure as a cell of a table.
    pub(crate) fn shown(&self, figure: Figure) -> String {
        if self.ended.is_empty() {
            return "!failed".to_owned();
        }
        let Some(spread) = self.spread(figure) else {
            return "-".to_owned();
        };
        let [median, least, greatest] =
            [spread.median, spread.least, spread.greatest].map(|value| figure.shown(value));
        if least == greatest {
            median
        } else {
            format!("{median} ({least}..{greatest})")
        }
    }

    /// The entrant to compare.
    pub(crate) fn entrant(&self) -> Entrant {
        Entrant {
            topology: self.any.topology,
            contender: self.any.contender.clone(),
        }
    }
}

/// A contender in a topology: the unit of comparison.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entrant {
    pub(crate) topology: Topology,
    pub(crate) contender: String,
}

/// The distinct values, in order of appearance.
pub(super) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// All entrants in some groups, in order of appearance, each with a name and a color.
pub(super) fn entrants(groups: &[CellGroup<'_>]) -> Vec<(Entrant, String, Color)> {
    let all = distinct(groups.iter().map(CellGroup::entrant));
    let first = all
        .iter()
        .map(|entrant| entrant.topology)
        .find(|topology| *topology != Topology::Direct);
    let has_one = all
        .iter()
        .all(|entrant| entrant.topology == Topology::Direct || Some(entrant.topology) == first);
    let mut free = FREE.iter().cycle();
    let painted = |entrant: Entrant| {
        let color = color(&entrant, has_one)
            .or_else(|| free.next().copied())
            .unwrap_or(Color::Slate);
        let name = name(&entrant, has_one);
        (entrant, name, color)
    };
    all.into_iter().map(painted).collect()
}

/// Colors for entrants without one of their own; none is similar to orange or plum, which mark sheds and failures in a
/// contender's own chart.
const FREE: [Color; 6] = [
    Color::Violet,
    Color::Slate,
    Color::Navy,
    Color::Olive,
    Color::Blue,
    Color::Cyan,
];

fn color(entrant: &Entrant, is_one_topology: bool) -> Option<Color> {
    // Tidegate is teal and no protection red in every report; only reports with both topologies have two of each.
    let is_second = entrant.topology == Topology::Sidecar && !is_one_topology;
    match (entrant.topology, entrant.contender.as_str()) {
        (Topology::Direct, _) => Some(Color::Grey),
        (_, "tidegate") if is_second => Some(Color::Green),
        (_, "tidegate") => Some(Color::Teal),
        (_, "native") if is_second => Some(Color::Olive),
        (_, "native") => Some(Color::Navy),
        (_, "none") if is_second => Some(Color::Pink),
        (_, "none") => Some(Color::Red),
        _ => None,
    }
}

/// The name of an entrant; without the topology if all have the same.
fn name(entrant: &Entrant, is_one_topology: bool) -> String {
    let contender = contender(&entrant.contender);
    match entrant.topology {
        Topology::Direct => "direct".to_owned(),
        _ if is_one_topology => contender.to_owned(),
        topology => format!("{topology}, {contender}"),
    }
}

/// The display name of a contender.
pub(super) fn contender(name: &str) -> &str {
    if name == "none" { "Envoy alone" } else { name }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::result::{CellFigures, CellOutcome, Parameter, Tool};

    pub(crate) fn cell(
        cell: &str,
        (topology, contender): (Topology, &str),
        repetition: u32,
        p99_ms: f64,
    ) -> CellResult {
        CellResult {
            study: "s".to_owned(),
            cell: cell.to_owned(),
            parameters: [("qps".to_owned(), Parameter::Number(100.0))].into(),
            topology,
            contender: contender.to_owned(),
            repetition,
            tool: Tool::Fortio,
            outcome: CellOutcome::Ok,
            figures: CellFigures {
                p99_ms: Some(p99_ms),
                ..CellFigures::default()
            },
            series: Vec::new(),
            raw: None,
        }
    }

    const OURS: (Topology, &str) = (Topology::Shared, "tidegate");

    #[test]
    fn repetitions_are_taken_together_and_failures_do_not_count() {
        let mut cells = [
            cell("a", OURS, 0, 3.0),
            cell("b", OURS, 0, 9.0),
            cell("a", OURS, 1, 1.0),
            cell("a", OURS, 2, 2.0),
        ];
        let found = groups(&cells);
        assert_eq!(found[0].shown(Figure::P99Ms), "2.00 (1.00..3.00)");
        assert_eq!(
            (found[1].shown(Figure::P99Ms), found[1].shown(Figure::Qps)),
            ("9.00".to_owned(), "-".to_owned())
        );
        cells[1].outcome = CellOutcome::Failed {
            error: "port in use".to_owned(),
        };
        assert_eq!(groups(&cells)[1].shown(Figure::P99Ms), "!failed");
    }

    #[test]
    fn topologies_are_named_where_there_are_several() {
        let names = |cells: &[CellResult]| -> Vec<String> {
            entrants(&groups(cells))
                .into_iter()
                .map(|(_, name, _)| name)
                .collect()
        };
        let direct = cell("a", (Topology::Direct, "none"), 0, 1.0);
        let one = [
            direct,
            cell("a", (Topology::Shared, "none"), 0, 1.0),
            cell("a", OURS, 0, 1.0),
        ];
        assert_eq!(names(&one), ["direct", "Envoy alone", "tidegate"]);
        let two = [
            cell("a", (Topology::Sidecar, "none"), 0, 1.0),
            cell("a", OURS, 0, 1.0),
        ];
        assert_eq!(names(&two), ["sidecar, Envoy alone", "shared, tidegate"]);
    }
}
