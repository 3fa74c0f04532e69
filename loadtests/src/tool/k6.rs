//! k6: users that wait for their answers.
//!
//! k6 writes each of its points as a line of CSV, from which figures and points over time are computed; the file is then
//! removed, because it is large, and k6's own summary stays. If the proxy says that it shed a request, the script counts the
//! request once more as `sheds`, so that it can be distinguished from a failure.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use tidegate_testbed::client::headers::SHED_DETAILS;
use tidegate_testbed::envoy;

use super::tally::{Fate, TalliedRequest};
use super::{ToolError, program, read, run};
use crate::matrix::Users;

/// The expected content of its file, for errors.
const EXPECTED: &str = "k6's points as CSV";

/// The columns that are needed.
const COLUMNS: [&str; 4] = ["metric_name", "timestamp", "metric_value", "status"];

/// Metric with one point for each request; `sheds` has one for each shed request.
const DURATION: &str = "http_req_duration";

/// Runs the users against `target`; the summary goes to `folder` as `name`.json.
///
/// # Errors
/// When k6 fails or its file cannot be used.
pub async fn drive(
    load: Users,
    target: SocketAddr,
    folder: &Path,
    name: &str,
) -> Result<Vec<TalliedRequest>, ToolError> {
    let points = folder.join(format!("{name}.csv"));
    let mut command = Command::new(program("k6")?);
    let set = |name: &str, value: String| ["-e".to_owned(), format!("{name}={value}")];
    command
        .args([
            "run",
            "--quiet",
            "--no-usage-report",
            "--address",
            "127.0.0.1:0",
        ])
        .args(set("BASE_URL", format!("http://{target}/")))
        .args(set("USERS", load.users.to_string()))
        .args(set("USERS_PER_SECOND", load.per_second.to_string()))
        .args(set("LENGTH_SECONDS", load.length.as_secs_f64().to_string()))
        .args(set("THINK_SECONDS", load.think.as_secs_f64().to_string()))
        .args(set("SHED_DETAILS", SHED_DETAILS.join(",")))
        .args(set(
            "SUMMARY",
            folder.join(format!("{name}.json")).display().to_string(),
        ))
        .env("K6_CSV_TIME_FORMAT", "unix_milli")
        .arg("--out")
        .arg(format!("csv={}", points.display()))
        .arg(envoy::repository().join("loadtests/k6/users.js"));
    run("k6", command, load.length).await?;
    let requests = parse(&points, &read(&points, EXPECTED)?)?;
    // A failure only wastes space.
    let _ = std::fs::remove_file(&points);
    Ok(requests)
}

/// The requests of a file.
fn parse(path: &Path, text: &str) -> Result<Vec<TalliedRequest>, ToolError> {
    let wrong = |found: String| ToolError::File {
        path: path.to_owned(),
        found,
        expected: EXPECTED,
    };
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| head.iter().position(|column| *column == name);
    let [Some(metric), Some(time), Some(value), Some(status)] = COLUMNS.map(column) else {
        return Err(wrong(format!("columns {}", head.join(","))));
    };
    let mut requests = Vec::new();
    let mut sheds: Vec<f64> = Vec::new();
    for (number, line) in (2..).zip(lines) {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or_default();
        let is_shed = field(metric) == "sheds";
        if !is_shed && field(metric) != DURATION {
            continue;
        }
        let (Ok(end_ms), Ok(latency_ms)) =
            (field(time).parse::<f64>(), field(value).parse::<f64>())
        else {
            return Err(wrong(format!("{line} in line {number}")));
        };
        if is_shed {
            sheds.push(end_ms);
        } else {
            let fate = if field(status) == "200" {
                Fate::Served
            } else {
                Fate::Failed
            };
            requests.push(TalliedRequest {
                at_s: (end_ms - latency_ms) / 1_000.0,
                latency_ms,
                fate,
            });
        }
    }
    if requests.is_empty() {
        return Err(wrong("no request".to_owned()));
    }
    mark(&mut requests, sheds);
    let start = requests
        .iter()
        .map(|request| request.at_s)
        .fold(f64::INFINITY, f64::min);
    for request in &mut requests {
        request.at_s -= start;
    }
    Ok(requests)
}

/// Turns the last failure that ended before each shed into that shed: the script counts it right after the answer.
fn mark(requests: &mut [TalliedRequest], mut sheds: Vec<f64>) {
    sheds.sort_unstable_by(f64::total_cmp);
    let end = |request: &TalliedRequest| request.at_s * 1_000.0 + request.latency_ms;
    requests.sort_unstable_by(|a, b| end(a).total_cmp(&end(b)));
    let mut failed: Vec<&mut TalliedRequest> = requests
        .iter_mut()
        .filter(|request| request.fate == Fate::Failed)
        .collect();
    for shed_ms in sheds.iter().rev() {
        // Times are whole milliseconds, so a request may seem to end after its count.
        let found = failed
            .iter()
            .rposition(|request| end(request) <= shed_ms + 1.0);
        if let Some(index) = found {
            failed.remove(index).fate = Fate::Shed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: &str = "metric_name,timestamp,metric_value,check,status,extra_tags\n\
        http_reqs,1000,1.000000,,200,\nhttp_req_duration,1000,200.000000,,200,\n\
        http_req_duration,1900,0.500000,,503,\nsheds,1900,1.000000,,,\n\
        http_req_duration,2100,10.000000,,500,\nvus,2200,2.000000,,,\n";

    fn at(text: &str) -> Result<Vec<TalliedRequest>, ToolError> {
        parse(Path::new("points.csv"), text)
    }

    #[test]
    fn points_become_requests() {
        let requests = at(POINTS).unwrap();
        let fates: Vec<Fate> = requests.iter().map(|request| request.fate).collect();
        assert_eq!(fates, [Fate::Served, Fate::Shed, Fate::Failed]);
        assert!(
            (requests[0].at_s - 0.0).abs() < 1e-9,
            "time begins with the first request"
        );
        assert!((requests[2].at_s - 1.29).abs() < 1e-9, "{requests:?}");
    }

    #[test]
    fn a_file_that_is_cut_short_is_named() {
        let said = at("metric_name,timestamp\nhttp_req_duration,1")
            .unwrap_err()
            .to_string();
        assert_eq!(
            said,
            "points.csv: found columns metric_name,timestamp, expected k6's points as CSV"
        );
        let cut = POINTS.replace(
            "http_req_duration,2100,10.000000,,500,\nvus,2200,2.000000,,,\n",
            "http_req_duration,21",
        );
        let said = at(&cut).unwrap_err().to_string();
        assert!(
            said.contains("found http_req_duration,21 in line 6"),
            "{said}"
        );
        assert!(
            at(&POINTS[..58])
                .unwrap_err()
                .to_string()
                .contains("found no request")
        );
    }
}
