//! The scenarios of `loadtests/k6`, each on its own stage or against an external address.
//!
//! k6 judges: its thresholds come from the objective, and a missed threshold fails the test. Its output becomes figures and
//! points over time like those of every other tool (`answers`).
//!
//! Edges: a test that falls behind its arrival rate fails by a separate threshold; a k6 that does not end is killed.

mod answers;
mod drive;
mod error;

use std::fs;
use std::path::Path;

use tidegate_sim::number;
use tidegate_testbed::variant::Variant;

use crate::result::{CellFigures, CellOutcome, CellResult, Parameter, Tool, Topology};
use crate::stage::LoadStage;

use drive::drive;

pub use drive::PlayedTest;
pub use error::{SuiteError, TESTS};

/// Name of the study under which results are kept.
pub const STUDY: &str = "k6";

/// The tests that `names` selects: each name is a test, or `all`.
///
/// # Errors
/// When there is no such test.
pub fn chosen(names: &[String]) -> Result<Vec<&'static str>, SuiteError> {
    let mut chosen = Vec::new();
    for name in names {
        if name == "all" {
            chosen.extend(TESTS);
            continue;
        }
        let known = TESTS.into_iter().find(|test| test == name);
        chosen.push(known.ok_or_else(|| SuiteError::Unknown(name.clone()))?);
    }
    Ok(chosen)
}

/// Plays a test on its own stage; k6's files go to `folder`.
///
/// # Errors
/// If the stage cannot be started or k6 gives no verdict.
pub async fn on_stage(
    test: &str,
    variant: Variant,
    repetition: u32,
    folder: &Path,
) -> Result<PlayedTest, SuiteError> {
    let stage = LoadStage::start(variant).await?;
    let (quantile, latency) = stage.objective();
    let settings = [
        ("BASE_URL", stage.base_url()),
        ("FAULT_URL", stage.fault_url()),
        ("CAPACITY", stage.capacity().to_string()),
        ("SLO_MS", number::millis(latency).to_string()),
        ("SLO_QUANTILE", quantile.to_string()),
    ];
    let (cpu, received) = (stage.envoy().cpu_time(), stage.counts().received);
    let mut played = drive(test, &settings, folder).await?;
    let path = folder.join(format!("{test}.csv"));
    let answers = answers::read(&path)?;
    let mut figures = answers.figures(latency);
    let reached = number::float(stage.counts().received.saturating_sub(received));
    figures.reached_per_request = figures
        .requests
        .filter(|requests| *requests > 0.0)
        .map(|requests| reached / requests);
    let cpu = stage
        .envoy()
        .cpu_time()
        .zip(cpu)
        .map(|(after, before)| after.saturating_sub(before));
    figures.cpu_seconds = cpu.map(|cpu| cpu.as_secs_f64());
    figures.rss_mib = stage
        .envoy()
        .resident_bytes()
        .map(|bytes| number::float(bytes) / (1024.0 * 1024.0));
    let missed = if played.missed.is_empty() {
        "none".to_owned()
    } else {
        played.missed.join(", ")
    };
    let parameters = [
        ("capacity_rps", Parameter::Number(stage.capacity())),
        ("objective_ms", Parameter::Number(number::millis(latency))),
        (
            "thresholds",
            Parameter::Number(number::float_len(played.thresholds)),
        ),
        ("thresholds_missed", Parameter::Text(missed)),
        ("shed_by_reason", Parameter::Text(answers.reasons())),
        (
            "success_by_criticality",
            Parameter::Text(answers.criticalities()),
        ),
    ];
    played.result = Some(CellResult {
        parameters: parameters
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        figures,
        series: answers.points(latency),
        raw: Some(format!("{test}.json")),
        ..blank(test, variant, repetition, CellOutcome::Ok)
    });
    // A failure only wastes space: the figures are taken, and k6's own summary and page are kept.
    let _ = fs::remove_file(&path);
    Ok(played)
}

/// The result of a test that gave no verdict.
#[must_use]
pub fn failed(test: &str, variant: Variant, repetition: u32, error: String) -> CellResult {
    blank(test, variant, repetition, CellOutcome::Failed { error })
}

fn blank(test: &str, variant: Variant, repetition: u32, outcome: CellOutcome) -> CellResult {
    CellResult {
        study: STUDY.to_owned(),
        cell: test.to_owned(),
        parameters: [].into(),
        topology: Topology::Shared,
        contender: variant.name().to_owned(),
        repetition,
        tool: Tool::K6,
        outcome,
        figures: CellFigures::default(),
        series: Vec::new(),
        raw: None,
    }
}

/// Plays a test against the address in the environment (`BASE_URL` and the other settings), of which only k6's measurements
/// are known.
///
/// # Errors
/// When k6 gives no verdict.
pub async fn outside(test: &str, folder: &Path) -> Result<PlayedTest, SuiteError> {
    let played = drive(test, &[], folder).await;
    // Points over time are only for our own report, which is not written here; k6's page has its own.
    let _ = fs::remove_file(folder.join(format!("{test}.csv")));
    played
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_testbed::envoy;

    #[test]
    fn every_test_has_its_file() {
        for test in TESTS {
            let path = envoy::repository().join(format!("loadtests/k6/{test}.js"));
            assert!(path.exists(), "{}", path.display());
        }
    }

    #[test]
    fn tests_are_chosen_by_name() {
        let names = |text: &str| -> Vec<String> { text.split(',').map(str::to_owned).collect() };
        assert_eq!(chosen(&names("outage,smoke")).unwrap(), ["outage", "smoke"]);
        assert_eq!(chosen(&names("all")).unwrap(), TESTS);
        let said = chosen(&names("smok")).unwrap_err().to_string();
        assert!(
            said.starts_with("test: found smok, expected one of: smoke, overload"),
            "{said}"
        );
    }
}
