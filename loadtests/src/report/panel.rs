//! Bar charts for some cells of a study: a chart for each figure, a group for each point, a bar for each contender.

use tidegate_report::chart::bars::{Bar, BarSeries, Bars, Scale};
use tidegate_report::page::Page;
use tidegate_sim::number;

use super::groups::{CellGroup, distinct, entrants};
use crate::result::{CellResult, Figure};

/// A set of bar charts of some cells.
pub(super) struct Panel<'a> {
    /// Heading above it.
    pub(super) title: &'a str,
    /// What readers should look for.
    pub(super) text: &'a str,
    /// The figures, with a chart for each.
    pub(super) figures: &'a [Figure],
    /// Label of a cell's point below its bars.
    pub(super) label: fn(&CellResult) -> String,
}

/// Width and height of charts side by side, in pixels.
const SMALL: (u32, u32) = (430, 230);

/// A chart with more bars than this fills a line of the page.
const FEW_BARS: usize = 26;

/// If the greatest latency is this many times the least, the scale is logarithmic.
const FAR: f64 = 20.0;

impl Panel<'_> {
    /// Adds the charts of `groups`; nothing if there are none.
    pub(super) fn write(&self, page: &mut Page, groups: &[CellGroup<'_>]) {
        if groups.is_empty() {
            return;
        }
        let all: Vec<Bars> = self
            .figures
            .iter()
            .filter(|figure| groups.iter().any(|group| group.spread(**figure).is_some()))
            .map(|figure| self.bars(groups, *figure))
            .collect();
        if !self.title.is_empty() {
            page.subheading(self.title);
        }
        if !self.text.is_empty() {
            page.paragraph(self.text);
        }
        page.charts(all);
    }

    fn bars(&self, groups: &[CellGroup<'_>], figure: Figure) -> Bars {
        let labels = distinct(groups.iter().map(|group| (self.label)(group.any)));
        let (name, unit) = heading(figure);
        let mut bars = Bars::new(name, unit, labels.clone());
        for (entrant, name, color) in entrants(groups) {
            let at = |label: &String| {
                let of = |group: &&CellGroup<'_>| {
                    group.entrant() == entrant && (self.label)(group.any) == *label
                };
                let spread = groups.iter().find(of)?.spread(figure)?;
                let shown = |value: f64| {
                    if is_ratio(figure) {
                        value * 100.0
                    } else {
                        value
                    }
                };
                let [value, least, greatest] =
                    [spread.median, spread.least, spread.greatest].map(shown);
                Some(Bar {
                    value,
                    least,
                    greatest,
                })
            };
            bars.series.push(BarSeries {
                name,
                color,
                bars: labels.iter().map(at).collect(),
            });
        }
        if bars.groups.len() * bars.series.len() <= FEW_BARS {
            (bars.width, bars.height) = SMALL;
        }
        if is_ratio(figure) {
            bars.top = Some(100.0);
        }
        bars.scale = scale(&bars, figure);
        bars
    }
}

const fn is_ratio(figure: Figure) -> bool {
    matches!(
        figure,
        Figure::SuccessRatio | Figure::OracleRatio | Figure::ShedRatio
    )
}

fn scale(bars: &Bars, figure: Figure) -> Scale {
    let is_latency = matches!(
        figure,
        Figure::MeanMs
            | Figure::P50Ms
            | Figure::P75Ms
            | Figure::P90Ms
            | Figure::P95Ms
            | Figure::P99Ms
            | Figure::P999Ms
    );
    let values: Vec<f64> = bars
        .series
        .iter()
        .flat_map(|series| &series.bars)
        .flatten()
        .map(|bar| bar.value)
        .collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    if is_latency && least > 0.0 && most > FAR * least {
        Scale::Log
    } else {
        Scale::Linear
    }
}

/// Title and unit of a figure's chart.
fn heading(figure: Figure) -> (&'static str, &'static str) {
    match figure {
        Figure::Qps => ("Throughput", "requests a second"),
        Figure::SuccessRatio => ("Success", "% of requests"),
        Figure::GoodputRps => ("Goodput", "good answers a second"),
        Figure::OracleRatio => ("Score", "% of what an oracle gets"),
        Figure::ShedRatio => ("Shed", "% of requests"),
        Figure::ReachedPerRequest => ("Reached the upstream", "attempts for each request"),
        Figure::MeanMs => ("Mean latency", "ms"),
        Figure::P50Ms => ("p50", "ms"),
        Figure::P75Ms => ("p75", "ms"),
        Figure::P90Ms => ("p90", "ms"),
        Figure::P95Ms => ("p95", "ms"),
        Figure::P99Ms => ("p99", "ms"),
        Figure::P999Ms => ("p99.9", "ms"),
        Figure::CpuCores => ("CPU of all proxies", "cores"),
        Figure::CpuMicros => ("CPU of all proxies for a request", "us"),
        Figure::ClientMicros => ("CPU of the clients for a request", "us"),
        Figure::RssMib => ("Memory of all proxies", "MiB"),
    }
}

/// A parameter of a cell as a label.
pub(super) fn parameter(cell: &CellResult, name: &str) -> String {
    match cell.number(name) {
        Some(number) if number >= 1_000.0 && number::floor(number).is_multiple_of(1_000) => {
            format!("{}k", number / 1_000.0)
        }
        Some(number) => format!("{number}"),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::groups::groups;
    use super::super::groups::tests::cell;
    use super::*;
    use crate::result::Topology;

    const PANEL: Panel<'static> = Panel {
        title: "t",
        text: "",
        figures: &[Figure::P99Ms, Figure::Qps],
        label: |cell| cell.cell.clone(),
    };

    #[test]
    fn a_point_that_somebody_lacks_is_a_gap() {
        let (ours, none) = ((Topology::Shared, "tidegate"), (Topology::Shared, "none"));
        let cells = [
            cell("a", ours, 0, 1.0),
            cell("b", ours, 0, 50.0),
            cell("b", none, 0, 2.0),
        ];
        let bars = PANEL.bars(&groups(&cells), Figure::P99Ms);
        assert_eq!(bars.groups, ["a", "b"]);
        let gaps: Vec<Vec<bool>> = bars
            .series
            .iter()
            .map(|series| series.bars.iter().map(Option::is_none).collect())
            .collect();
        assert_eq!(gaps, [[false, false], [true, false]]);
        assert_eq!(bars.scale, Scale::Log, "50 times apart");
    }

    #[test]
    fn a_figure_that_nobody_has_gets_no_picture() {
        let mut page = Page::new("d");
        let cells = [cell("a", (Topology::Shared, "tidegate"), 0, 1.0)];
        PANEL.write(&mut page, &groups(&cells));
        assert_eq!(page.html().matches("<svg").count(), 1);
    }
}
