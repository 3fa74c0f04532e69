//! A run for charts: figures, what happened over time, and why limits and breakers moved.

use std::collections::BTreeMap;

use serde::Serialize;
use tidegate_core::{BreakerPhase, LimitReason};
use tidegate_sim::decision::LimitMove;
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::run::{Noted, Run};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::score::Figures;
use tidegate_sim::series::{self, RunWindow};
use tidegate_sim::world::{self, PlayError};

use crate::explain;

/// Events of a run that a browser plays within some seconds. The largest story has half as many; endless retries of requests
/// that are shed make a hundred times as many.
const MOST_EVENTS: u64 = 5_000_000;

/// A run of one contender.
#[derive(Debug, Serialize)]
pub struct Played {
    contender: &'static str,
    digest: String,
    seed: u64,
    requests: usize,
    events: u64,
    figures: Figures,
    /// Attempts that were shed, by reason.
    sheds: BTreeMap<&'static str, u64>,
    samples: Samples,
    windows: Windows,
    notes: Vec<ToldNote>,
    moves: Vec<ToldMove>,
}

/// What was seen every tenth of a second, by column.
#[derive(Debug, Default, Serialize)]
struct Samples {
    at: Vec<f64>,
    limit: Vec<Option<u64>>,
    in_flight: Vec<Option<u64>>,
    waiting: Vec<u64>,
    breaker: Vec<Option<u64>>,
}

/// What happened to the requests of each half second, by column; rates are per second.
#[derive(Debug, Default, Serialize)]
struct Windows {
    at: Vec<f64>,
    offered: Vec<f64>,
    good: Vec<f64>,
    possible: Vec<f64>,
    shed: Vec<f64>,
    failed: Vec<f64>,
    p99_ms: Vec<Option<f64>>,
}

/// A change of a breaker's phase.
#[derive(Debug, Serialize)]
struct ToldNote {
    at: f64,
    proxy: usize,
    upstream: usize,
    state: &'static str,
    why: String,
}

/// A change of the first proxy's limit.
#[derive(Debug, Serialize)]
struct ToldMove {
    at: f64,
    upstream: usize,
    limit: u32,
    law: &'static str,
    why: String,
}

impl Played {
    /// Plays a scenario.
    ///
    /// # Errors
    /// When the contender cannot be made for this scenario, or the run has more than `MOST_EVENTS`.
    pub fn of(scenario: &Scenario, kind: &ContenderKind) -> Result<Self, PlayError> {
        Self::within(scenario, kind, MOST_EVENTS)
    }

    fn within(
        scenario: &Scenario,
        kind: &ContenderKind,
        most_events: u64,
    ) -> Result<Self, PlayError> {
        let run = world::play_within(scenario, kind, most_events)?;
        let windows = series::windows(scenario, &run.records);
        Ok(Self {
            contender: kind.name,
            digest: run.digest.to_string(),
            seed: scenario.seed,
            requests: run.records.len(),
            events: run.events,
            samples: samples(scenario, &run),
            windows: columns(&windows),
            notes: run.notes.iter().map(told).collect(),
            moves: moves(scenario, &run),
            sheds: run.sheds,
            figures: run.figures,
        })
    }

    /// Hash of the whole run.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

fn samples(scenario: &Scenario, run: &Run) -> Samples {
    let mut columns = Samples::default();
    let end = scenario.duration.as_secs_f64();
    for sample in run.samples.iter().filter(|sample| sample.at_s <= end) {
        columns.at.push(sample.at_s);
        columns.limit.push(sample.limit);
        columns.in_flight.push(sample.in_flight);
        columns.waiting.push(sample.waiting);
        columns.breaker.push(sample.breaker);
    }
    columns
}

fn columns(windows: &[RunWindow]) -> Windows {
    let mut columns = Windows::default();
    for window in windows {
        columns.at.push(window.at_s);
        columns.offered.push(window.offered);
        columns.good.push(window.good);
        columns.possible.push(window.oracle);
        columns.shed.push(window.shed);
        columns.failed.push(window.failed);
        columns.p99_ms.push(window.p99_ms);
    }
    columns
}

fn told(noted: &Noted) -> ToldNote {
    let Noted { proxy, note } = noted;
    ToldNote {
        at: at_s(noted),
        proxy: *proxy,
        upstream: note.upstream,
        state: match note.breaker {
            BreakerPhase::Closed => "closed",
            BreakerPhase::HalfOpen => "half-open",
            BreakerPhase::Open => "open",
        },
        why: explain::note(note.reason).to_owned(),
    }
}

fn moves(scenario: &Scenario, run: &Run) -> Vec<ToldMove> {
    let end = scenario.duration.as_secs_f64();
    let mut before = BTreeMap::new();
    let mut told = Vec::new();
    for one in run.moves.iter().filter(|one| one.at_s <= end) {
        let last = before.insert(one.upstream, one.decision);
        told.push(ToldMove {
            at: one.at_s,
            upstream: one.upstream,
            limit: one.decision.limit,
            law: one.decision.reason.map_or("no_leader", LimitReason::as_str),
            why: explain::limit(last.as_ref(), &one.decision, breaker_at(run, one)),
        });
    }
    told
}

/// The breaker beside a limit, of the same proxy and upstream.
fn breaker_at(run: &Run, one: &LimitMove) -> BreakerPhase {
    let notes = run.notes.iter();
    let its = notes.filter(|noted| noted.proxy == 0 && noted.note.upstream == one.upstream);
    let before = its.take_while(|noted| at_s(noted) <= one.at_s);
    let last = before.last().map(|noted| noted.note.breaker);
    last.unwrap_or(BreakerPhase::Closed)
}

fn at_s(noted: &Noted) -> f64 {
    noted.note.at.saturating_since(world::START).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use tidegate_sim::tidegate;

    use super::*;
    use crate::settings::Settings;

    #[test]
    fn a_played_run_is_the_laboratorys_own_and_says_why_its_limit_moved() {
        let scenario = Settings::parse("story=step").unwrap().scenario().unwrap();
        let played = Played::of(&scenario, &tidegate::KIND).unwrap();
        let run = world::play(&scenario, &tidegate::KIND).unwrap();
        assert_eq!(played.digest(), run.digest.to_string());
        let laws: Vec<&str> = played.moves.iter().map(|one| one.law).collect();
        for law in ["warm_up", "cruise", "hold"] {
            assert!(laws.contains(&law), "{law} is missing in {laws:?}");
        }
        assert!(played.moves.iter().all(|one| one.why.len() > 20));
        let end = scenario.duration.as_secs_f64();
        assert!(played.samples.at.iter().all(|at| *at <= end));
    }

    #[test]
    fn an_objective_that_changes_during_the_run_moves_the_limit() {
        let limit_at = |fragment: &str, at: f64| {
            let scenario = Settings::parse(fragment).unwrap().scenario().unwrap();
            let played = Played::of(&scenario, &tidegate::KIND).unwrap();
            let index = played.samples.at.iter().position(|sampled| *sampled >= at);
            played.samples.limit[index.unwrap()].unwrap()
        };
        let calm = "story=own&len=20&load=0.7";
        let (before, after) = (
            limit_at(calm, 15.0),
            limit_at(&format!("{calm}&push=10:150"), 15.0),
        );
        assert!(after < before, "{after} is not below {before}");
        let early = limit_at(&format!("{calm}&push=10:150"), 9.5);
        assert_eq!(early, limit_at(calm, 9.5), "nothing changes before");
    }

    #[test]
    fn an_answer_is_good_by_the_objective_that_was_promised_when_its_request_came() {
        // Few answers come within 20 ms, where 40 ms is the mean.
        let fragment = "story=own&len=20&load=0.7&push=10:20";
        let scenario = Settings::parse(fragment).unwrap().scenario().unwrap();
        let played = Played::of(&scenario, &tidegate::KIND).unwrap();
        let windows = &played.windows;
        let share = |range: std::ops::Range<usize>| {
            let good: f64 = windows.good[range.clone()].iter().sum();
            good / windows.offered[range].iter().sum::<f64>()
        };
        let (before, after) = (share(4..20), share(20..40));
        assert!(before > 0.99, "{before}");
        assert!(after < 0.3, "{after}");
        let score = played.figures.score;
        assert!((score - 1.0).abs() < 0.1, "nor can more be: {score}");
    }

    /// Before, only first attempts and bounded retries were counted, in advance; this run took 44 million events.
    #[test]
    fn endless_retries_end_a_run_that_a_browser_cannot_play() {
        let played = |harm: &str| {
            let fragment = format!("story=own&len=30&adversary=endless_retries&harm={harm}");
            let scenario = Settings::parse(&fragment).unwrap().scenario().unwrap();
            Played::within(&scenario, &tidegate::KIND, 500_000)
        };
        assert!(played("0.5").is_ok());
        let error = played("2").unwrap_err().to_string();
        assert_eq!(
            error,
            "the run of tidegate has more than 500000 events: fewer retries, less load or a shorter run make less"
        );
    }
}
