//! The story in figures, phase by phase, and the checks on them.

use serde::Serialize;

use super::story::Story;
use tidegate_sim::number;
use tidegate_sim::oracle;
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::series::SeriesSample;

/// One side in one phase; rates are per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PhaseFigures {
    /// Name of the phase.
    pub phase: String,
    /// Requests offered.
    pub offered: f64,
    /// Good answers.
    pub good: f64,
    /// Goodput of the oracle.
    pub oracle: f64,
    /// Sheds.
    pub shed: f64,
    /// Other failures, including abandoned and late requests.
    pub failed: f64,
    /// Attempts that reached the upstream.
    pub reached: f64,
    /// Median of the time until callers had an answer of any kind or gave up, in milliseconds.
    pub p50_any_ms: Option<f64>,
    /// 99th percentile of the answers 200, in milliseconds.
    pub p99_ms: Option<f64>,
}

/// Sorts one side's records and samples into the phases of the story.
#[must_use]
pub fn figures(story: &Story, records: &[Record], samples: &[SeriesSample]) -> Vec<PhaseFigures> {
    let mut records: Vec<&Record> = records.iter().collect();
    records.sort_by_key(|record| record.arrival.at);
    let arrivals: Vec<_> = records
        .iter()
        .map(|record| record.arrival.clone())
        .collect();
    let verdicts = oracle::judge(&story.scenario, &arrivals);
    let of_phase = |(phase, end): (&super::story::StoryPhase, std::time::Duration)| {
        let length = (end - phase.at).as_secs_f64();
        let mut figures = PhaseFigures {
            phase: phase.name.clone(),
            ..PhaseFigures::default()
        };
        let (mut ok, mut any) = (Vec::new(), Vec::new());
        for (record, verdict) in records.iter().zip(&verdicts) {
            let at = record.arrival.at;
            if at < phase.at || at >= end {
                continue;
            }
            let is_good = record.is_good(story.objective_at(at));
            figures.offered += 1.0 / length;
            figures.oracle += verdict.good / length;
            figures.good += f64::from(u8::from(is_good)) / length;
            figures.shed += f64::from(u8::from(record.is_shed())) / length;
            figures.failed += f64::from(u8::from(!is_good && !record.is_shed())) / length;
            any.push(record.latency);
            if record.answer == Answer::Ok {
                ok.push(record.latency);
            }
        }
        ok.sort_unstable();
        any.sort_unstable();
        figures.p99_ms = number::quantile(&ok, 0.99).map(number::millis);
        figures.p50_any_ms = number::quantile(&any, 0.5).map(number::millis);
        // Samples are as frequent as phase boundaries, but each comes a moment after it was due.
        let received_by = |at: f64| {
            let distance = |sample: &SeriesSample| (sample.at_s - at).abs();
            let nearest = samples
                .iter()
                .min_by(|a, b| distance(a).total_cmp(&distance(b)));
            nearest.map_or(0, |sample| sample.received)
        };
        let reached =
            received_by(end.as_secs_f64()).saturating_sub(received_by(phase.at.as_secs_f64()));
        figures.reached = number::float(reached) / length;
        figures
    };
    story.stretches().map(of_phase).collect()
}

/// With the filter, goodput under overload must be at least this multiple of goodput without it,
const OVERLOAD_MARGIN: f64 = 1.5;
/// and at least this share of the oracle's goodput.
const OVERLOAD_SHARE: f64 = 0.7;
/// Greatest share of the requests offered during the outage that may reach the upstream, with the filter.
const OUTAGE_REACHED: f64 = 0.35;
/// Least share of the oracle's goodput in the recovery phase, opening time included.
const RECOVERY_SHARE: f64 = 0.4;
/// Greatest share of requests shed while nothing is wrong.
const STEADY_SHED: f64 = 0.01;

/// The checks that fail; empty if the demo shows what it promises.
///
/// The bounds are loose on purpose: the short form on a busy machine must meet them too.
#[must_use]
pub fn faults(with: &[PhaseFigures], without: &[PhaseFigures]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut demand = |is_met: bool, text: String| {
        if !is_met {
            faults.push(text);
        }
    };
    for (ours, theirs) in with.iter().zip(without) {
        match ours.phase.as_str() {
            "steady" => demand(
                ours.shed <= STEADY_SHED * ours.offered,
                format!(
                    "steady: shed {:.1} of {:.0} a second, expected next to nothing",
                    ours.shed, ours.offered
                ),
            ),
            "overload" => {
                demand(
                    ours.good >= OVERLOAD_MARGIN * theirs.good,
                    format!(
                        "overload: goodput {:.0} with and {:.0} without, expected a factor of {OVERLOAD_MARGIN}",
                        ours.good, theirs.good
                    ),
                );
                demand(
                    ours.good >= OVERLOAD_SHARE * ours.oracle,
                    format!(
                        "overload: goodput {:.0}, expected at least {OVERLOAD_SHARE} of the oracle's {:.0}",
                        ours.good, ours.oracle
                    ),
                );
            }
            "errors" | "hang" => demand(
                ours.reached <= OUTAGE_REACHED * ours.offered,
                format!(
                    "{}: {:.0} of {:.0} a second reached the dead upstream",
                    ours.phase, ours.reached, ours.offered
                ),
            ),
            "recovery" => demand(
                ours.good >= RECOVERY_SHARE * ours.oracle,
                format!(
                    "recovery: goodput {:.0}, expected at least {RECOVERY_SHARE} of the oracle's {:.0}",
                    ours.good, ours.oracle
                ),
            ),
            _ => {}
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(name: &str, good: f64) -> PhaseFigures {
        PhaseFigures {
            phase: name.to_owned(),
            offered: 750.0,
            oracle: 250.0,
            good,
            ..PhaseFigures::default()
        }
    }

    #[test]
    fn overload_without_advantage_is_a_fault() {
        assert!(faults(&[phase("overload", 240.0)], &[phase("overload", 10.0)]).is_empty());
        assert_eq!(
            faults(&[phase("overload", 240.0)], &[phase("overload", 230.0)]).len(),
            1
        );
    }

    #[test]
    fn dead_upstream_that_is_hammered_is_a_fault() {
        let ours = PhaseFigures {
            reached: 700.0,
            ..phase("errors", 0.0)
        };
        assert_eq!(faults(&[ours], &[phase("errors", 0.0)]).len(), 1);
    }
}
