//! Whether a spike of load became a retry storm: retries that continue when their cause is over.
//!
//! A storm feeds itself. Shed or late requests are tried again, keep the service from new ones, and make those late as
//! well, so that goodput stays low although the load is below the capacity again. A cell's values over time are checked for
//! two signs: more attempts reach the upstream than there are requests (retries are additional load), and goodput does not
//! recover soon after the spike.
//!
//! Edges: a story that ends early, or failed, gets no verdict. Of several repetitions the worst counts for each figure.

use std::ops::Range;

use tidegate_report::page::Page;
use tidegate_report::table::Table;
use tidegate_sim::number;

use super::groups::{CellGroup, contender};
use crate::result::{CellResult, Point};
use crate::study::{REQUESTS_BEFORE_SPIKE, storm_spike};

/// Most times that a request may reach the upstream, from the beginning of the spike on.
const MOST_REACHED: f64 = 1.2;

/// A second with less than this share of the goodput before the spike is lost. Random arrivals vary by 6 % from one second to
/// the next, so chance alone does not cause a lost second.
const LOST: f64 = 0.8;

/// Goodput must be back within this time after the spike, in seconds, and must stay.
const SOON_S: f64 = 2.0;

/// The aftermath of a spike of load.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Storm {
    /// Attempts that reached the upstream per request, from the beginning of the spike on.
    reached: f64,
    /// Good answers a second during the spike.
    goodput_rps: f64,
    /// Number of lost seconds after the spike.
    lost: usize,
    /// From the end of the spike to that of the last lost second; infinite if the very last second is lost.
    back_s: f64,
}

impl Storm {
    /// Evaluates the cell's values over time; `None` if they do not reach from before the spike to after it.
    fn of(cell: &CellResult, spike: &Range<f64>) -> Option<Self> {
        let points = || cell.series.iter();
        let before: Vec<&Point> = points()
            .filter(|point| point.t + 1.0 <= spike.start)
            .collect();
        let within: Vec<&Point> = points().filter(|point| spike.contains(&point.t)).collect();
        let after: Vec<&Point> = points().filter(|point| point.t >= spike.end).collect();
        let calm = mean_goodput(&before)?;
        let goodput_rps = mean_goodput(&within)?;
        let last = after.last()?;
        // If nothing is tried again before the spike, attempts equal requests.
        let attempts = || before.iter().map(|point| point.rps).sum();
        let requests =
            cell.figures.requests? - cell.number(REQUESTS_BEFORE_SPIKE).unwrap_or_else(attempts);
        let reached: f64 = within
            .iter()
            .chain(&after)
            .map(|point| point.rps - point.shed_rps)
            .sum();
        let lost: Vec<&&Point> = after
            .iter()
            .filter(|point| point.good_rps < LOST * calm)
            .collect();
        let back_s = match lost.last() {
            None => 0.0,
            Some(point) if point.t >= last.t => f64::INFINITY,
            Some(point) => point.t + 1.0 - spike.end,
        };
        (requests > 0.0).then(|| Self {
            reached: reached / requests,
            goodput_rps,
            lost: lost.len(),
            back_s,
        })
    }

    fn worst(self, other: Self) -> Self {
        Self {
            reached: self.reached.max(other.reached),
            goodput_rps: self.goodput_rps.min(other.goodput_rps),
            lost: self.lost.max(other.lost),
            back_s: self.back_s.max(other.back_s),
        }
    }

    fn is_storm(self) -> bool {
        self.reached > MOST_REACHED || self.back_s > SOON_S
    }
}

fn mean_goodput(points: &[&Point]) -> Option<f64> {
    let sum: f64 = points.iter().map(|point| point.good_rps).sum();
    (!points.is_empty()).then(|| sum / number::float_len(points.len()))
}

/// Adds the table: each spike and contender with the verdict; nothing if no spike was played.
pub(super) fn write(page: &mut Page, groups: &[CellGroup<'_>]) {
    let Some(spike) = storm_spike() else {
        return;
    };
    let of_spikes = groups
        .iter()
        .filter(|group| group.any.cell.starts_with("storm "));
    let rows: Vec<Vec<String>> = of_spikes.map(|group| row(group, &spike)).collect();
    if rows.is_empty() {
        return;
    }
    page.subheading("Retry storms");
    page.paragraph(&format!(
        "A storm goes on when its cause is over. There is none when, from the beginning of the spike on, each request \
         reached the upstream at most {MOST_REACHED} times, and goodput was back for good within {SOON_S} s of its \
         end. A second is lost when it has less than {:.0} % of the goodput of the calm before. Of several repetitions \
         the worst counts.",
        LOST * 100.0
    ));
    let head = [
        "spike",
        "contender",
        "verdict",
        "reached x",
        "goodput /s in it",
        "seconds lost after it",
        "back after s",
    ];
    page.table(Table::with_names(3, &head, rows));
}

fn row(group: &CellGroup<'_>, spike: &Range<f64>) -> Vec<String> {
    let all: Option<Vec<Storm>> = group
        .ended
        .iter()
        .map(|cell| Storm::of(cell, spike))
        .collect();
    let worst = all.and_then(|all| all.into_iter().reduce(Storm::worst));
    let name = [
        group.any.cell.clone(),
        contender(&group.any.contender).to_owned(),
    ];
    let figures = match worst {
        None => vec!["!gap".to_owned(); 5],
        Some(storm) => vec![
            if storm.is_storm() {
                "!storm"
            } else {
                "*no storm"
            }
            .to_owned(),
            format!("{:.2}", storm.reached),
            format!("{:.0}", storm.goodput_rps),
            storm.lost.to_string(),
            if storm.back_s.is_finite() {
                format!("{:.0}", storm.back_s)
            } else {
                "never".to_owned()
            },
        ],
    };
    name.into_iter().chain(figures).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::groups::groups;
    use super::super::groups::tests::cell;
    use super::*;
    use crate::result::{CellFigures, LoadtestRun, Topology};

    /// Two calm seconds, two of the spike, and then these, as attempts, shed, good.
    fn story(requests: f64, seconds: &[(f64, f64, f64)]) -> CellResult {
        let mut told = cell("storm retry=2s", (Topology::Shared, "tidegate"), 0, 1.0);
        told.figures = CellFigures {
            requests: Some(requests),
            ..CellFigures::default()
        };
        told.series = (0..seconds.len())
            .zip(seconds)
            .map(|(t, (rps, shed_rps, good_rps))| Point {
                t: number::float_len(t),
                rps: *rps,
                shed_rps: *shed_rps,
                good_rps: *good_rps,
                ..Point::default()
            })
            .collect();
        told
    }

    const SPIKE: Range<f64> = 2.0..4.0;
    const CALM: (f64, f64, f64) = (100.0, 0.0, 100.0);
    /// 200 new ones, as many again that were tried before; half pass and are good.
    const HELD: (f64, f64, f64) = (200.0, 100.0, 100.0);

    #[test]
    fn a_spike_that_is_over_when_it_is_over_is_no_storm() {
        let told = story(600.0, &[CALM, CALM, HELD, HELD, (120.0, 20.0, 85.0), CALM]);

        let storm = Storm::of(&told, &SPIKE).unwrap();

        let expected = Storm {
            reached: 1.0,
            goodput_rps: 100.0,
            lost: 0,
            back_s: 0.0,
        };
        assert_eq!(storm, expected);
        assert!(!storm.is_storm());
    }

    #[test]
    fn goodput_that_comes_back_late_is_a_storm() {
        let away = (150.0, 50.0, 79.0);
        let told = |after: &[_]| story(1_000.0, &[&[CALM, CALM, HELD, HELD], after].concat());
        let storm = |after: &[_]| Storm::of(&told(after), &SPIKE).unwrap();

        assert!(!storm(&[away, away, CALM]).is_storm(), "after 2 s");
        let late = storm(&[away, CALM, away, CALM]);
        assert_eq!(
            (late.lost, late.back_s),
            (2, 3.0),
            "a wave counts to its end"
        );
        assert!(late.is_storm());
        let never = storm(&[CALM, away]);
        assert_eq!((never.back_s, never.is_storm()), (f64::INFINITY, true));
    }

    #[test]
    fn retries_that_reach_the_upstream_are_a_storm() {
        let doubled = (250.0, 0.0, 100.0);
        let told = story(600.0, &[CALM, CALM, doubled, doubled, CALM, CALM]);

        let storm = Storm::of(&told, &SPIKE).unwrap();

        assert!((storm.reached - 1.75).abs() < 1e-9, "{storm:?}");
        assert!(storm.is_storm());
    }

    #[test]
    fn what_was_tried_again_before_the_spike_is_no_request() {
        let mut told = story(600.0, &[CALM, (150.0, 0.0, 100.0), CALM, CALM, CALM, CALM]);
        told.parameters
            .insert(REQUESTS_BEFORE_SPIKE.to_owned(), 200.0.into());

        let storm = Storm::of(&told, &SPIKE).unwrap();

        assert!((storm.reached - 1.0).abs() < 1e-9, "{storm:?}");
    }

    #[test]
    fn nothing_is_said_of_a_story_that_was_cut_short() {
        let told = story(600.0, &[CALM, CALM, HELD, HELD]);
        assert_eq!(Storm::of(&told, &SPIKE), None);
        let row = row(&groups([&told])[0], &SPIKE);
        assert_eq!(row[2], "!gap");
    }

    #[test]
    fn of_repetitions_the_worst_counts() {
        let good = story(600.0, &[CALM, CALM, HELD, HELD, CALM, CALM]);
        let mut bad = story(
            600.0,
            &[CALM, CALM, HELD, HELD, CALM, HELD, (9.0, 0.0, 9.0)],
        );
        bad.repetition = 1;
        let row = row(&groups([&good, &bad])[0], &SPIKE);
        assert_eq!(row[2..], ["!storm", "1.02", "100", "1", "never"]);
    }

    #[test]
    fn without_a_queue_the_committed_run_shows_a_storm_with_static_values_only() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("baselines/reduced");
        let run = LoadtestRun::read(&folder).unwrap();
        let spike = storm_spike().unwrap();
        let mut verdicts: Vec<(String, String, String)> = groups(&run.cells)
            .iter()
            // With a queue, at the capacity, Tidegate's goodput takes longer to come back.
            .filter(|group| group.any.cell.starts_with("storm retry="))
            .map(|group| {
                let row = row(group, &spike);
                (row[0].clone(), row[1].clone(), row[2].clone())
            })
            .collect();
        verdicts.sort();
        let expected = [
            ("storm retry=2s", "static-outlier", "!storm"),
            ("storm retry=2s", "tidegate", "*no storm"),
            ("storm retry=5s", "static-outlier", "!storm"),
            ("storm retry=5s", "tidegate", "*no storm"),
        ]
        .map(|(spike, who, verdict)| (spike.to_owned(), who.to_owned(), verdict.to_owned()));
        assert_eq!(verdicts, expected);
    }
}
