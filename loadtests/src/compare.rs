//! Compares two runs: which differences are more than noise.
//!
//! For each cell, contender and figure the repetitions of both runs are compared by Welch's t-test, which does not need equal
//! variances. With many figures, some seem to differ by chance; the procedure of Benjamini and Hochberg keeps the expected
//! share of false ones among the reported differences below [`FALSE_SHARE`]. A difference is shown with its 95 % confidence
//! interval.
//!
//! Edges: with a single repetition on either side the noise is unknown, and the report says so. A difference below [`WORTH`]
//! is not reported, however certain. Cells that only one run has, or that failed in one, are listed.

mod page;
pub(crate) mod welch;

use std::collections::BTreeMap;

use crate::report::{CellGroup, groups};
use crate::result::{Better, Figure, LoadtestRun};

pub use page::page;

/// Expected share of false differences among those reported, 0..=1.
pub const FALSE_SHARE: f64 = 0.05;

/// The least relative difference that is reported, 0..=1.
pub const WORTH: f64 = 0.01;

/// One figure of one cell in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Study, cell, topology and contender.
    pub what: String,
    /// The figure.
    pub figure: Figure,
    /// Its mean in the first run.
    pub before: f64,
    /// Its mean in the second run.
    pub after: f64,
    /// Repetitions of both.
    pub repetitions: (usize, usize),
    /// 95 % confidence interval of the difference; `None` with too few repetitions.
    pub interval: Option<(f64, f64)>,
    /// The judgment of it.
    pub verdict: Verdict,
}

/// The judgment of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The second run is worse.
    Worse,
    /// The second run is better.
    Better,
    /// They differ, and which is better depends on the load.
    Different,
    /// The difference is within the noise of repetitions, or too small to matter.
    Noise,
    /// Too few repetitions to know the noise.
    Unknown,
}

/// Two runs, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct RunComparison {
    /// Every figure that both have.
    pub differences: Vec<Difference>,
    /// Cells with figures in one run only, each with the name of the run that lacks it.
    pub gaps: Vec<(String, String)>,
    /// Circumstances that differ: name, first run, second run.
    pub circumstances: Vec<(&'static str, String, String)>,
}

/// A figure of a cell before it is judged.
struct Pair {
    what: String,
    figure: Figure,
    before: Vec<f64>,
    after: Vec<f64>,
    test: Option<welch::Test>,
}

/// Compares `after` with `before`.
#[must_use]
pub fn compare(before: &LoadtestRun, after: &LoadtestRun) -> RunComparison {
    let [first, second] = [before, after].map(|run| by_name(&run.cells));
    let mut gaps = Vec::new();
    let mut pairs = Vec::new();
    for (name, one) in &first {
        match second.get(name) {
            Some(other) => pairs.extend(
                Figure::ALL
                    .into_iter()
                    .filter_map(|figure| pair(name, figure, one, other)),
            ),
            None => gaps.push((name.clone(), after.info.run.clone())),
        }
    }
    let missing = second.keys().filter(|name| !first.contains_key(*name));
    gaps.extend(missing.map(|name| (name.clone(), before.info.run.clone())));
    let chances: Vec<f64> = pairs
        .iter()
        .filter_map(|pair| pair.test.map(|test| test.chance))
        .collect();
    let bound = welch::bound(&chances, FALSE_SHARE);
    RunComparison {
        differences: pairs.into_iter().map(|pair| judge(pair, bound)).collect(),
        gaps,
        circumstances: circumstances(before, after),
    }
}

/// Groups that have figures, by study, cell, topology and contender.
fn by_name(cells: &[crate::result::CellResult]) -> BTreeMap<String, CellGroup<'_>> {
    let with_figures = groups(cells)
        .into_iter()
        .filter(|group| !group.ended.is_empty());
    with_figures
        .map(|group| {
            let any = group.any;
            (
                format!(
                    "{} {} {} {}",
                    any.study, any.cell, any.topology, any.contender
                ),
                group,
            )
        })
        .collect()
}

fn pair(name: &str, figure: Figure, one: &CellGroup<'_>, other: &CellGroup<'_>) -> Option<Pair> {
    let (before, after) = (one.values(figure), other.values(figure));
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let test = welch::test(&before, &after);
    Some(Pair {
        what: name.to_owned(),
        figure,
        before,
        after,
        test,
    })
}

fn judge(pair: Pair, bound: f64) -> Difference {
    let Pair {
        what,
        figure,
        before,
        after,
        test,
    } = pair;
    let repetitions = (before.len(), after.len());
    let [before, after] = [before, after].map(|values| welch::mean(&values));
    let change = after - before;
    let is_worth = change.abs() > WORTH * before.abs().max(after.abs());
    let verdict = match test {
        None => Verdict::Unknown,
        Some(test) if test.chance > bound || !is_worth => Verdict::Noise,
        Some(_) => match figure.better() {
            Better::Depends => Verdict::Different,
            Better::More if change > 0.0 => Verdict::Better,
            Better::Less if change < 0.0 => Verdict::Better,
            Better::More | Better::Less => Verdict::Worse,
        },
    };
    Difference {
        what,
        figure,
        before,
        after,
        repetitions,
        interval: test.map(|test| test.interval),
        verdict,
    }
}

/// Circumstances that differ between the two runs, and that matter.
fn circumstances(before: &LoadtestRun, after: &LoadtestRun) -> Vec<(&'static str, String, String)> {
    let facts = |run: &LoadtestRun| {
        let info = &run.info;
        let version = |name: &str| info.versions.get(name).cloned().unwrap_or_default();
        [
            ("machine", info.machine.clone()),
            ("cores", info.cores.to_string()),
            ("kernel", info.kernel.clone()),
            ("envoy", version("envoy")),
            ("fortio", version("fortio")),
            ("k6", version("k6")),
            ("extent", info.extent.to_string()),
            ("commit", info.commit.clone()),
            (
                "module",
                info.module_sha256.get(..12).unwrap_or_default().to_owned(),
            ),
        ]
    };
    let both = facts(before).into_iter().zip(facts(after));
    both.filter(|((_, one), (_, other))| one != other)
        .map(|((name, one), (_, other))| (name, one, other))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::{cell, info};
    use crate::result::{CellFigures, CellOutcome, CellResult};

    fn run(name: &str, cells: Vec<CellResult>) -> LoadtestRun {
        let mut info = info();
        info.run = name.to_owned();
        LoadtestRun {
            info,
            cells,
            damaged: Vec::new(),
        }
    }

    fn with(p99: &[f64]) -> Vec<CellResult> {
        let cell = |(repetition, p99_ms): (u32, &f64)| CellResult {
            figures: CellFigures {
                p99_ms: Some(*p99_ms),
                ..CellFigures::default()
            },
            ..cell("a", "tidegate", repetition)
        };
        (0..).zip(p99).map(cell).collect()
    }

    fn verdict(before: &[f64], after: &[f64]) -> Verdict {
        compare(&run("a", with(before)), &run("b", with(after))).differences[0].verdict
    }

    #[test]
    fn what_repetitions_differ_by_anyway_is_noise() {
        assert_eq!(
            verdict(&[10.0, 14.0, 12.0], &[13.0, 11.0, 15.0]),
            Verdict::Noise
        );
        assert_eq!(
            verdict(&[10.0, 10.1, 9.9], &[20.0, 20.1, 19.9]),
            Verdict::Worse
        );
        assert_eq!(
            verdict(&[20.0, 20.1, 19.9], &[10.0, 10.1, 9.9]),
            Verdict::Better
        );
        assert_eq!(
            verdict(&[10.0, 10.0, 10.0], &[10.05, 10.05, 10.05]),
            Verdict::Noise,
            "half a percent"
        );
    }

    #[test]
    fn of_one_repetition_nothing_is_known() {
        assert_eq!(verdict(&[10.0], &[90.0, 91.0]), Verdict::Unknown);
    }

    #[test]
    fn among_many_figures_one_that_is_a_little_apart_is_no_difference() {
        let apart = ([10.0, 10.4, 10.2], [10.7, 11.1, 10.9]);
        assert_eq!(
            verdict(&apart.0, &apart.1),
            Verdict::Worse,
            "alone it is one"
        );
        let mut before = with(&apart.0);
        let mut after = with(&apart.1);
        for (figures, noisy) in [
            (&mut before, [5.0, 9.0, 7.0]),
            (&mut after, [6.0, 8.0, 7.5]),
        ] {
            for number in 0..40 {
                let cells = with(&noisy).into_iter().map(|cell| CellResult {
                    cell: format!("n{number}"),
                    ..cell
                });
                figures.extend(cells);
            }
        }
        let differences = compare(&run("a", before), &run("b", after)).differences;
        assert!(
            differences
                .iter()
                .all(|difference| difference.verdict == Verdict::Noise)
        );
    }

    #[test]
    fn cells_that_one_run_lacks_or_that_failed_in_it_are_gaps() {
        let mut failed = cell("b", "tidegate", 0);
        failed.outcome = CellOutcome::Failed {
            error: "envoy ended".to_owned(),
        };
        let one = run(
            "one",
            vec![cell("a", "tidegate", 0), cell("b", "tidegate", 0)],
        );
        let other = run("other", vec![cell("c", "tidegate", 0), failed]);
        let comparison = compare(&one, &other);
        let gaps: Vec<(&str, &str)> = comparison
            .gaps
            .iter()
            .map(|(cell, run)| (cell.as_str(), run.as_str()))
            .collect();
        let expected = [
            ("breakers a shared tidegate", "other"),
            ("breakers b shared tidegate", "other"),
            ("breakers c shared tidegate", "one"),
        ];
        assert_eq!(gaps, expected);
    }

    #[test]
    fn another_machine_is_said() {
        let (one, mut other) = (run("a", Vec::new()), run("b", Vec::new()));
        other.info.machine = "four cores".to_owned();
        let found = compare(&one, &other).circumstances;
        assert_eq!(
            found,
            [("machine", "two cores".to_owned(), "four cores".to_owned())]
        );
    }
}
