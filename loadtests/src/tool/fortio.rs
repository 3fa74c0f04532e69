//! fortio: a fixed rate over a fixed number of connections, or full rate.
//!
//! A connection waits for its answer before it sends again, so fortio is a closed loop that keeps its rate if it can: after a
//! late answer it catches up at once, and does not count the wait (see the README on coordinated omission). Latencies are
//! those of answers with status 200: to shed quickly is no merit.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use tokio::task::JoinSet;

use super::histogram::ToolHistogram;
use super::{ToolError, program, read, run};
use crate::matrix::{Fortio, MeasurementEnd, Pace, Wire};
use crate::result::CellFigures;
use crate::topology::TlsFiles;

/// The expected content of its file, for errors.
const EXPECTED: &str = "a whole result of fortio";

/// Width of its finest buckets, in seconds.
const RESOLUTION: &str = "0.0001";

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The parts of a result that are needed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    /// In nanoseconds.
    actual_duration: f64,
    duration_histogram: Buckets,
    errors_duration_histogram: Option<Buckets>,
    ret_codes: std::collections::BTreeMap<String, f64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Buckets {
    sum: f64,
    data: Option<Vec<FortioBucket>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct FortioBucket {
    start: f64,
    end: f64,
    count: f64,
}

/// The measurements of one or more processes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FortioResult {
    seconds: f64,
    requests: f64,
    good: ToolHistogram,
}

impl FortioResult {
    /// Reads one file.
    ///
    /// # Errors
    /// If it is missing, truncated, or not from fortio.
    pub fn read(path: &Path) -> Result<Self, ToolError> {
        let text = read(path, EXPECTED)?;
        let document: Document = serde_json::from_str(&text).map_err(|error| ToolError::File {
            path: path.to_owned(),
            found: if error.is_eof() {
                format!("{} bytes, cut short", text.len())
            } else {
                error.to_string()
            },
            expected: EXPECTED,
        })?;
        let requests: f64 = document.ret_codes.values().sum();
        let mut good = document.duration_histogram.histogram();
        if let Some(errors) = document.errors_duration_histogram {
            good.add_all(&errors.histogram(), -1.0);
        }
        Ok(Self {
            seconds: document.actual_duration / 1e9,
            requests,
            good,
        })
    }

    /// Adds the measurements that another process made at the same time.
    pub fn add(&mut self, other: &Self) {
        self.seconds = self.seconds.max(other.seconds);
        self.requests += other.requests;
        self.good.add_all(&other.good, 1.0);
    }

    /// The figures that fortio provides; `objective` is the latency within which an answer is good.
    #[must_use]
    pub fn figures(&self, offered_qps: Option<f64>, objective: Duration) -> CellFigures {
        let per_second = |count: f64| (self.seconds > 0.0).then(|| count / self.seconds);
        let at = |quantile: f64| self.good.quantile_ms(quantile);
        CellFigures {
            seconds: Some(self.seconds),
            requests: Some(self.requests),
            qps: per_second(self.requests),
            offered_qps,
            success_ratio: (self.requests > 0.0).then(|| self.good.count() / self.requests),
            goodput_rps: per_second(self.good.within(objective.as_secs_f64() * 1_000.0)),
            mean_ms: self.good.mean_ms(),
            p50_ms: at(0.5),
            p75_ms: at(0.75),
            p90_ms: at(0.9),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            ..CellFigures::default()
        }
    }
}

impl Buckets {
    fn histogram(&self) -> ToolHistogram {
        let mut histogram = ToolHistogram::default();
        for bucket in self.data.iter().flatten() {
            histogram.add(bucket.start * 1_000.0, bucket.end * 1_000.0, bucket.count);
        }
        histogram.add_sum(self.sum * 1_000.0);
        histogram
    }
}

/// Runs one process for each of `targets`, at the same time; files go to `folder` under names that begin with `name`. A load
/// with TLS needs `tls`.
///
/// # Errors
/// If one of them fails; the others are then ended.
pub async fn drive(
    load: Fortio,
    targets: &[SocketAddr],
    (folder, name): (&Path, &str),
    tls: Option<&TlsFiles>,
) -> Result<FortioResult, ToolError> {
    let program = program("fortio")?;
    let count = u32::try_from(targets.len()).unwrap_or(u32::MAX).max(1);
    let mut processes = JoinSet::new();
    for (index, target) in (0_u32..).zip(targets) {
        let path = folder.join(format!("{name}-{index}.json"));
        let mut command = command(&program, load, (index, count), &path);
        speak(&mut command, load.wire, tls);
        command.arg(url(load.wire, *target));
        let length = load.until.longest();
        processes.spawn(async move { run("fortio", command, length).await.map(|()| path) });
    }
    let mut sum = FortioResult::default();
    while let Some(ended) = processes.join_next().await {
        let path: PathBuf = ended.map_err(|error| ToolError::Ended {
            program: "fortio",
            status: "a task that was lost".to_owned(),
            said: error.to_string(),
        })??;
        sum.add(&FortioResult::read(&path)?);
    }
    Ok(sum)
}

/// The share of `whole` for process `index` of `count`: as even as whole numbers allow, at least 1.
const fn part(whole: u32, index: u32, count: u32) -> u32 {
    let part = whole / count + (index < whole % count) as u32;
    if part == 0 { 1 } else { part }
}

fn command(program: &Path, load: Fortio, (index, count): (u32, u32), json: &Path) -> Command {
    let connections = part(load.connections, index, count);
    let qps = load.qps.map_or(0.0, |qps| qps / f64::from(count));
    let mut command = Command::new(program);
    command
        .args([
            "load",
            "-loglevel",
            "Critical",
            "-log-errors=false",
            "-allow-initial-errors",
        ])
        .args([
            "-r",
            RESOLUTION,
            "-qps",
            &qps.to_string(),
            "-c",
            &connections.to_string(),
        ])
        .args(["-timeout", &format!("{}s", TIMEOUT.as_secs())])
        .arg(format!("-keepalive={}", !load.close));
    if load.pace == Pace::Spread {
        command.arg("-uniform");
    }
    match load.until {
        MeasurementEnd::Passed(length) => {
            command.args(["-t", &format!("{}ms", length.as_millis())])
        }
        MeasurementEnd::Sent(requests) => {
            command.args(["-n", &part(requests, index, count).to_string()])
        }
    };
    command.arg("-json").arg(json);
    command
}

/// Adds the options for the protocol of the connections.
fn speak(command: &mut Command, wire: Wire, tls: Option<&TlsFiles>) {
    if wire != Wire::Fast {
        command.arg("-stdclient");
    }
    if wire.is_http2() {
        command.arg("-h2");
    }
    if let Some(files) = tls.filter(|_| wire.is_tls()) {
        command.arg("-cacert").arg(&files.authority);
        command.arg("-cert").arg(&files.certificate);
        command.arg("-key").arg(&files.key);
    }
}

fn url(wire: Wire, target: SocketAddr) -> String {
    let scheme = if wire.is_tls() { "https" } else { "http" };
    format!("{scheme}://{target}/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"ActualDuration":2000000000,"DurationHistogram":{"Count":400,"Sum":1.0,"Data":[
        {"Start":0.0001,"End":0.001,"Percent":25,"Count":100},{"Start":0.002,"End":0.004,"Percent":100,"Count":300}]},
        "ErrorsDurationHistogram":{"Count":100,"Sum":0.1,"Data":[{"Start":0.0001,"End":0.001,"Count":100}]},
        "RetCodes":{"200":300,"503":100}}"#;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run-0.json");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn latencies_are_those_of_answers_with_success() {
        let (_folder, path) = file(RESULT);
        let figures = FortioResult::read(&path)
            .unwrap()
            .figures(Some(200.0), Duration::from_millis(3));
        assert_eq!(
            (figures.qps, figures.success_ratio),
            (Some(200.0), Some(0.75))
        );
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-6;
        assert!(
            near(figures.p50_ms, 3.0) && near(figures.mean_ms, 3.0),
            "{figures:?}"
        );
        assert!(
            near(figures.goodput_rps, 75.0),
            "half of the 300 came within 3 ms: {figures:?}"
        );
    }

    #[test]
    fn processes_are_added_up() {
        let (_folder, path) = file(RESULT);
        let mut sum = FortioResult::read(&path).unwrap();
        sum.add(&FortioResult::read(&path).unwrap());
        let figures = sum.figures(None, Duration::from_secs(1));
        assert_eq!((figures.qps, figures.requests), (Some(400.0), Some(800.0)));
    }

    #[test]
    fn a_file_that_is_cut_short_is_named() {
        let (_folder, path) = file(&RESULT[..120]);
        let said = FortioResult::read(&path).unwrap_err().to_string();
        assert!(
            said.ends_with(
                "run-0.json: found 120 bytes, cut short, expected a whole result of fortio"
            ),
            "{said}"
        );
        let (_folder, path) = file("[]");
        assert!(
            FortioResult::read(&path)
                .unwrap_err()
                .to_string()
                .contains("found invalid"),
            "no result at all"
        );
    }

    #[test]
    fn connections_are_shared_out_evenly() {
        let parts: Vec<u32> = (0..6).map(|index| part(8, index, 6)).collect();
        assert_eq!(parts, [2, 2, 1, 1, 1, 1]);
        assert_eq!(part(1, 3, 4), 1, "no client stands idle");
    }
}
