//! The journal of `make bench` as a run: the testbed's scores, beside the measurements by fortio and k6.
//!
//! Each line of `runs.jsonl` has its own metadata. Those of the first line become the run's; a line made in other conditions
//! (commit, build, Envoy, module, scale) is not compared, but listed as one that does not count. A scenario is a cell; its
//! score against an oracle that knows the capacity is an additional figure.
//!
//! Edges: the scorer's figures exclude the warm-up, values over time do not; rates are those over time. The journal has the
//! 99th percentile over time, but not the 95th.

use std::collections::BTreeMap;
use std::path::Path;

use tidegate_sim::number;
use tidegate_sim::series::{RunWindow, WINDOW};
use tidegate_testbed::bench::journal::{JournalLine, Metadata, is_alike};

use super::cell::STUDY_OF_BENCH;
use super::info::UNKNOWN;
use super::lines::{Damage, lines};
use super::{CellFigures, CellOutcome, CellResult, Extent, Point, RunInfo, Tool, Topology};

/// Bytes in a MiB.
const MIB: f64 = 1024.0 * 1024.0;

/// Reads a journal: the metadata of its first line, the runs as cells, and the lines that do not count. Without any complete
/// line the metadata are empty, which [`RunInfo::lacks`] reports.
pub(super) fn parse(text: &str, path: &Path) -> (RunInfo, Vec<CellResult>, Vec<Damage>) {
    let mut first: Option<Metadata> = None;
    let (cells, damaged) = lines(text, path, |line| {
        let line: JournalLine = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let first = first.get_or_insert_with(|| line.metadata.clone());
        if is_alike(first, &line.metadata) {
            Ok(cell(&line))
        } else {
            Err("made in other conditions than the first line".to_owned())
        }
    });
    (info(&first.unwrap_or_default(), path), cells, damaged)
}

fn info(metadata: &Metadata, path: &Path) -> RunInfo {
    let fact = |name: &str| metadata.get(name).cloned().unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name);
    let versions = ["tidegate", "envoy"].map(|name| (name.to_owned(), fact(name)));
    let parameters = ["build", "repeat", "scale"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), metadata.get(name)?.as_str().into())));
    let planned = fact("planned").parse().unwrap_or(0);
    RunInfo {
        run: folder.map_or_else(|| UNKNOWN.to_owned(), |name| name.to_string_lossy().into()),
        machine: fact("processor"),
        cores: fact("cores").parse().unwrap_or(0),
        kernel: fact("kernel"),
        versions: versions.into(),
        module_sha256: fact("module"),
        commit: fact("commit"),
        date: fact("date"),
        extent: match fact("scale").parse::<f64>() {
            Ok(scale) if scale >= 1.0 => Extent::Full,
            _ => Extent::Reduced,
        },
        parameters: parameters.collect(),
        planned: BTreeMap::from([(STUDY_OF_BENCH.to_owned(), planned)]),
    }
}

fn cell(line: &JournalLine) -> CellResult {
    let outcome = &line.outcome;
    CellResult {
        study: STUDY_OF_BENCH.to_owned(),
        cell: outcome.scenario.clone(),
        parameters: BTreeMap::from([
            ("seed".to_owned(), number::float(line.seed).into()),
            ("workers".to_owned(), line.workers.into()),
        ]),
        topology: Topology::Shared,
        contender: outcome.variant.name().to_owned(),
        repetition: line.repetition,
        tool: Tool::Testbed,
        outcome: CellOutcome::Ok,
        figures: figures(line),
        series: outcome.windows.iter().map(point).collect(),
        raw: None,
    }
}

fn figures(line: &JournalLine) -> CellFigures {
    let (outcome, scored) = (&line.outcome, &line.outcome.figures);
    let count = number::float_len(outcome.windows.len());
    let seconds = count * WINDOW.as_secs_f64();
    let mean = |rate: fn(&RunWindow) -> f64| {
        (count > 0.0).then(|| outcome.windows.iter().map(rate).sum::<f64>() / count)
    };
    let offered = mean(|window| window.offered);
    let requests = offered.map(|rate| rate * seconds);
    let lost = scored.shed + scored.failed + scored.gave_up;
    let share = |part: u64| (scored.offered > 0).then(|| number::ratio(part, scored.offered));
    CellFigures {
        seconds: (count > 0.0).then_some(seconds),
        requests,
        qps: offered,
        offered_qps: offered,
        success_ratio: share(scored.offered.saturating_sub(lost)),
        goodput_rps: mean(|window| window.good),
        oracle_ratio: Some(scored.score),
        shed_ratio: share(scored.shed),
        reached_per_request: requests
            .filter(|requests| *requests > 0.0)
            .map(|requests| number::float(scored.reached.received) / requests),
        p50_ms: scored.admitted_p50_ms,
        p99_ms: scored.admitted_p99_ms,
        cpu_seconds: Some(outcome.envoy_cpu_s),
        rss_mib: Some(number::float(outcome.envoy_resident_bytes) / MIB),
        ..CellFigures::default()
    }
}

fn point(window: &RunWindow) -> Point {
    Point {
        t: window.at_s - WINDOW.as_secs_f64() / 2.0,
        rps: window.offered,
        good_rps: window.good,
        shed_rps: window.shed,
        error_rps: window.failed,
        p95_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tidegate_sim::score;
    use tidegate_testbed::run;
    use tidegate_testbed::variant::Variant;

    use super::*;
    use crate::result::{Figure, JOURNAL_FILE, LoadtestRun};

    fn metadata(commit: &str) -> Metadata {
        let facts = [
            ("tidegate", "0.1.0"),
            ("envoy", "1.40.0"),
            ("commit", commit),
            ("date", "2026-11-21T10:00:00Z"),
            ("kernel", "Linux 6.1"),
            ("processor", "two cores"),
            ("cores", "2"),
            ("build", "release"),
            ("repeat", "1"),
            ("scale", "1"),
            ("planned", "3"),
        ];
        let module = ("module".to_owned(), "0".repeat(64));
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned()));
        facts.into_iter().chain([module]).collect()
    }

    fn line(metadata: &Metadata, variant: Variant) -> String {
        let window = |at_s, good| RunWindow {
            at_s,
            offered: 100.0,
            good,
            ..RunWindow::default()
        };
        let line = JournalLine {
            metadata: metadata.clone(),
            repetition: 0,
            seed: 7,
            workers: 2,
            outcome: run::RunOutcome {
                scenario: "steady".to_owned(),
                variant,
                figures: score::Figures {
                    offered: 80,
                    shed: 20,
                    failed: 10,
                    score: 0.9,
                    admitted_p99_ms: Some(12.0),
                    reached: score::Reached {
                        received: 150,
                        received_while_down: 0,
                    },
                    ..score::Figures::default()
                },
                envoy_cpu_s: 0.5,
                envoy_resident_bytes: 3 << 20,
                windows: vec![window(0.25, 100.0), window(0.75, 50.0)],
                samples: Vec::new(),
            },
        };
        serde_json::to_string(&line).unwrap() + "\n"
    }

    fn read(text: &str) -> Result<LoadtestRun, crate::result::RunReadError> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(JOURNAL_FILE), text).unwrap();
        LoadtestRun::read(folder.path())
    }

    #[test]
    fn a_journal_of_the_benchmark_is_a_run() {
        let about = metadata("abc");
        let run = read(&(line(&about, Variant::Tidegate) + &line(&about, Variant::None))).unwrap();

        assert_eq!((run.cells.len(), run.damaged.len()), (2, 0));
        assert_eq!(run.not_run().collect::<Vec<_>>(), [("bench", 1)]);
        assert_eq!((run.info.commit.as_str(), run.info.cores), ("abc", 2));
        let cell = &run.cells[0];
        assert_eq!(cell.name(), "bench steady shared tidegate #0");
        let figure = |figure: Figure| figure.of(&cell.figures).unwrap();
        assert_eq!(cell.figures.seconds, Some(1.0));
        assert!((figure(Figure::GoodputRps) - 75.0).abs() < 1e-9);
        assert!((figure(Figure::OracleRatio) - 0.9).abs() < 1e-9);
        assert!((figure(Figure::SuccessRatio) - 0.625).abs() < 1e-9);
        assert!((figure(Figure::ShedRatio) - 0.25).abs() < 1e-9);
        assert!((figure(Figure::ReachedPerRequest) - 1.5).abs() < 1e-9);
        assert!((figure(Figure::RssMib) - 3.0).abs() < 1e-9);
        let times: Vec<f64> = cell.series.iter().map(|point| point.t).collect();
        assert_eq!(times, [0.0, 0.5]);
    }

    #[test]
    fn a_line_of_other_conditions_is_named_and_does_not_count() {
        let (one, other) = (metadata("abc"), metadata("def"));
        let run = read(&(line(&one, Variant::Tidegate) + &line(&other, Variant::None))).unwrap();
        assert_eq!(run.cells.len(), 1);
        let said = run.damaged[0].to_string();
        assert!(
            said.contains("runs.jsonl:2: ")
                && said.ends_with("other conditions than the first line"),
            "{said}"
        );
    }

    #[test]
    fn a_journal_without_complete_metadata_is_rejected() {
        let mut about = metadata("abc");
        about.remove("module");
        about.remove("commit");
        let said = read(&line(&about, Variant::Tidegate))
            .unwrap_err()
            .to_string();
        for path in ["commit", "module_sha256"] {
            assert!(said.contains(&format!("  {path}: found nothing")), "{said}");
        }
        let said = read("").unwrap_err().to_string();
        assert!(said.contains("  versions.envoy: found nothing"), "{said}");
    }
}
