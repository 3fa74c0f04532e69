//! The answers to callers in a k6 scenario, from k6's points as CSV.
//!
//! The scenarios' library records each request once, in `caller_latency`, with tags for its outcome, its criticality and, if
//! it was shed, the reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tidegate_sim::number;

use super::error::SuiteError;
use crate::result::{CellFigures, Point};
use crate::tool::tally::{Fate, RequestTally, TalliedRequest};

/// The metric that has one point for each request.
const METRIC: &str = "caller_latency";

/// The columns that are needed.
const COLUMNS: [&str; 4] = ["metric_name", "timestamp", "metric_value", "extra_tags"];

/// The requests of a test.
#[derive(Debug, Default)]
pub(super) struct Answers {
    requests: Vec<TalliedRequest>,
    sheds: BTreeMap<String, u64>,
    /// Number of successes and of all requests, by criticality.
    classes: BTreeMap<String, (u64, u64)>,
}

/// Reads the requests of a file.
pub(super) fn read(path: &Path) -> Result<Answers, SuiteError> {
    let text = fs::read_to_string(path).map_err(|source| SuiteError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|found| SuiteError::File {
        path: path.to_owned(),
        found,
        expected: "k6's points as CSV",
    })
}

fn parse(text: &str) -> Result<Answers, String> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| head.iter().position(|column| *column == name);
    let [Some(metric), Some(time), Some(value), Some(tags)] = COLUMNS.map(column) else {
        return Err(format!("columns {}", head.join(",")));
    };
    let mut answers = Answers::default();
    for (number, line) in (2..).zip(lines) {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or_default();
        if field(metric) != METRIC {
            continue;
        }
        let wrong = || format!("{line} in line {number}");
        let end_ms: f64 = field(time).parse().map_err(|_| wrong())?;
        let latency_ms: f64 = field(value).parse().map_err(|_| wrong())?;
        let tags: BTreeMap<&str, &str> = field(tags)
            .split('&')
            .filter_map(|tag| tag.split_once('='))
            .collect();
        let fate = fate(tags.get("outcome").copied()).ok_or_else(wrong)?;
        answers.note(
            TalliedRequest {
                at_s: (end_ms - latency_ms) / 1_000.0,
                latency_ms,
                fate,
            },
            &tags,
        );
    }
    if answers.requests.is_empty() {
        return Err("no request".to_owned());
    }
    answers.begin_at_zero();
    Ok(answers)
}

fn fate(outcome: Option<&str>) -> Option<Fate> {
    match outcome? {
        "good" | "late" => Some(Fate::Served),
        "shed" => Some(Fate::Shed),
        "error" => Some(Fate::Failed),
        _ => None,
    }
}

impl Answers {
    fn note(&mut self, request: TalliedRequest, tags: &BTreeMap<&str, &str>) {
        if request.fate == Fate::Shed {
            let reason = tags.get("reason").copied().unwrap_or("unnamed");
            *self.sheds.entry(reason.to_owned()).or_default() += 1;
        }
        if let Some(class) = tags.get("criticality").filter(|class| **class != "none") {
            let (successes, all) = self.classes.entry((*class).to_owned()).or_default();
            *successes += u64::from(request.fate == Fate::Served);
            *all += 1;
        }
        self.requests.push(request);
    }

    fn begin_at_zero(&mut self) {
        let start = self
            .requests
            .iter()
            .map(|request| request.at_s)
            .fold(f64::INFINITY, f64::min);
        for request in &mut self.requests {
            request.at_s -= start;
        }
    }

    fn tally(&self, objective: Duration) -> RequestTally<'_> {
        let last = self
            .requests
            .iter()
            .map(|request| request.at_s)
            .fold(0.0, f64::max);
        let length = number::seconds(last.ceil().max(1.0));
        RequestTally {
            requests: &self.requests,
            length,
            objective,
        }
    }

    /// The figures of the whole test.
    pub(super) fn figures(&self, objective: Duration) -> CellFigures {
        self.tally(objective).figures()
    }

    /// Second by second.
    pub(super) fn points(&self, objective: Duration) -> Vec<Point> {
        self.tally(objective).points()
    }

    /// How many were shed for which reason, such as `limit 812, retry 3`.
    pub(super) fn reasons(&self) -> String {
        let reasons = self
            .sheds
            .iter()
            .map(|(reason, count)| format!("{reason} {count}"));
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        if reasons.is_empty() {
            "none".to_owned()
        } else {
            reasons
        }
    }

    /// The share of successes of each criticality, such as `critical 99.1 %`.
    pub(super) fn criticalities(&self) -> String {
        let classes = self.classes.iter().map(|(class, (successes, all))| {
            format!("{class} {:.1} %", 100.0 * number::ratio(*successes, *all))
        });
        let classes = classes.collect::<Vec<_>>().join(", ");
        if classes.is_empty() {
            "none".to_owned()
        } else {
            classes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: &str = "metric_name,timestamp,metric_value,status,extra_tags,metadata\n\
        http_reqs,1000,1.000000,200,phase=a,\n\
        caller_latency,1200,200.000000,,phase=a&outcome=good&criticality=critical,\n\
        caller_latency,2600,500.000000,,phase=a&outcome=late&criticality=sheddable,\n\
        caller_latency,2700,1.000000,,outcome=shed&criticality=sheddable&reason=limit,\n\
        caller_latency,2800,1.000000,,outcome=error&criticality=none,\n";

    #[test]
    fn points_become_requests() {
        let answers = parse(POINTS).unwrap();
        let figures = answers.figures(Duration::from_millis(300));
        assert_eq!(
            (figures.requests, figures.success_ratio, figures.shed_ratio),
            (Some(4.0), Some(0.5), Some(0.25))
        );
        assert_eq!(figures.seconds, Some(2.0));
        assert_eq!(figures.goodput_rps, Some(0.5), "late is not good");
        assert_eq!(answers.points(Duration::from_millis(300)).len(), 2);
        assert_eq!(answers.reasons(), "limit 1");
        assert_eq!(
            answers.criticalities(),
            "critical 100.0 %, sheddable 50.0 %"
        );
    }

    #[test]
    fn a_file_that_is_cut_short_is_rejected() {
        assert_eq!(parse(&POINTS[..70]).unwrap_err(), "no request");
        let cut = &POINTS[..POINTS.find("2600,500").unwrap() + 8];
        assert_eq!(parse(cut).unwrap_err(), "caller_latency,2600,500 in line 4");
        assert_eq!(
            parse("metric_name,timestamp\n").unwrap_err(),
            "columns metric_name,timestamp"
        );
    }
}
