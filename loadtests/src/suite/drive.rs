//! One run of k6, and its verdict.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tidegate_supervise::{Log, Process, ProcessError};
use tidegate_testbed::envoy;

use super::error::SuiteError;
use crate::result::CellResult;
use crate::tool;

/// The result of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayedTest {
    /// Its figures, if it ran on our own stage.
    pub result: Option<CellResult>,
    /// Number of thresholds.
    pub thresholds: usize,
    /// Thresholds that were missed.
    pub missed: Vec<String>,
}

/// A test that takes longer than this is killed.
const BOUND: Duration = Duration::from_secs(180);

/// Exit code of k6 when a threshold was missed.
const MISSED: i32 = 99;

/// Runs k6 and reads its verdict.
pub(super) async fn drive(
    test: &str,
    settings: &[(&str, String)],
    folder: &Path,
) -> Result<PlayedTest, SuiteError> {
    let file = |ending: &str| folder.join(format!("{test}.{ending}"));
    let summary = file("json");
    let path = tool::path("k6");
    let mut command = Command::new(&path);
    command
        .args([
            "run",
            "--quiet",
            "--no-color",
            "--no-usage-report",
            "--address",
            "",
        ])
        .arg("--summary-export")
        .arg(&summary)
        .arg("--out")
        .arg(format!("csv={}", file("csv").display()))
        .arg(envoy::repository().join(format!("loadtests/k6/{test}.js")))
        .envs(settings.iter().map(|(name, value)| (*name, value.as_str())))
        .env("K6_CSV_TIME_FORMAT", "unix_milli")
        .env("K6_WEB_DASHBOARD", "true")
        .env("K6_WEB_DASHBOARD_PORT", "-1")
        .env("K6_WEB_DASHBOARD_PERIOD", "1s")
        .env("K6_WEB_DASHBOARD_EXPORT", file("html"));
    // The scenarios look for files there. A caller's value may be of another folder.
    if let Ok(here) = env::current_dir() {
        command.env("PWD", here);
    }
    let mut process =
        Process::start(test, command, Log::In(folder)).map_err(|error| match error {
            ProcessError::Start { source, .. } => SuiteError::Run { path, source },
            other => SuiteError::Process(other),
        })?;
    let status = process.wait(BOUND).await?;
    if !status.success() && status.code() != Some(MISSED) {
        return Err(SuiteError::Ended {
            status: status.to_string(),
            log: file("log"),
        });
    }
    let (thresholds, missed) = verdict(&summary)?;
    if status.success() == missed.is_empty() {
        Ok(PlayedTest {
            result: None,
            thresholds,
            missed,
        })
    } else {
        let found = format!("{} thresholds missed after {status}", missed.len());
        Err(SuiteError::File {
            path: summary,
            found,
            expected: "a summary that agrees with how k6 ended",
        })
    }
}

/// The number of thresholds in a summary of k6, and those that were missed.
fn verdict(path: &Path) -> Result<(usize, Vec<String>), SuiteError> {
    let text = fs::read_to_string(path).map_err(|source| SuiteError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    let wrong = |found: String| SuiteError::File {
        path: path.to_owned(),
        found,
        expected: "a summary of k6's",
    };
    let summary: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let metrics = summary
        .get("metrics")
        .and_then(serde_json::Value::as_object);
    let metrics = metrics.ok_or_else(|| wrong("no metrics".to_owned()))?;
    let (mut count, mut missed) = (0, Vec::new());
    for (metric, values) in metrics {
        let thresholds = values
            .get("thresholds")
            .and_then(serde_json::Value::as_object);
        for (threshold, is_missed) in thresholds.into_iter().flatten() {
            count += 1;
            if is_missed.as_bool() != Some(false) {
                missed.push(format!("{metric} {threshold}"));
            }
        }
    }
    if count == 0 {
        Err(wrong("no thresholds".to_owned()))
    } else {
        Ok((count, missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_that_was_not_kept_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.json");
        let summary = r#"{"metrics":{"good":{"value":0.5,"thresholds":{"rate>=0.99":true}},
            "shed":{"thresholds":{"rate<=0.1":false}},"vus":{"value":1}}}"#;
        fs::write(&path, summary).unwrap();
        assert_eq!(
            verdict(&path).unwrap(),
            (2, vec!["good rate>=0.99".to_owned()])
        );
        fs::write(&path, &summary[..40]).unwrap();
        assert!(
            verdict(&path)
                .unwrap_err()
                .to_string()
                .contains("expected a summary of k6's")
        );
        fs::write(&path, r#"{"metrics":{}}"#).unwrap();
        assert!(
            verdict(&path)
                .unwrap_err()
                .to_string()
                .contains("found no thresholds")
        );
    }
}
