//! A run in figures: goodput against the oracle, sheds, latency, settle and recovery times.

mod settle;
mod work;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::number;
use crate::oracle::{self, OracleVerdict};
use crate::record::{Answer, Record};
use crate::scenario::{CRITICALITIES, MarkKind, Measure, Scenario};

pub use settle::{time_until_calm, time_until_settled};
pub use work::WorkLedger;

/// What the upstreams counted in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Attempts that reached an upstream.
    pub received: u64,
    /// Of these, the ones that came while it was down; each retry is one.
    pub received_while_down: u64,
}

/// The figures of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Requests offered after the warm-up.
    pub offered: u64,
    /// Answers 200 within the objective's latency.
    pub good: u64,
    /// What the oracle would have got.
    pub oracle_good: f64,
    /// `good / oracle_good`; 1 when the oracle gets nothing either.
    pub score: f64,
    /// Score of each upstream.
    pub score_by_upstream: BTreeMap<String, f64>,
    /// Requests that were shed in the end.
    pub shed: u64,
    /// Sheds beyond those the oracle would have made.
    pub false_shed: f64,
    /// Requests that ended with another failure.
    pub failed: u64,
    /// Requests whose caller gave up.
    pub gave_up: u64,
    /// Median latency of the requests that got an answer 200, in milliseconds; none without any.
    pub admitted_p50_ms: Option<f64>,
    /// 99th percentile of the same.
    pub admitted_p99_ms: Option<f64>,
    /// Seconds after each step until goodput caught up; none when it never did.
    pub settle_s: Vec<Option<f64>>,
    /// Seconds after each recovery until goodput was back; none when it never was.
    pub recovery_s: Vec<Option<f64>>,
    /// Seconds after each fall of the load until the last shed before the next mark.
    #[serde(default)]
    pub calm_s: Vec<f64>,
    /// Lowest score of an upstream that is up all the time; none without such an upstream.
    #[serde(default)]
    pub score_healthy: Option<f64>,
    /// Good answers / offered for each criticality.
    pub success_by_criticality: BTreeMap<String, f64>,
    /// What the upstreams counted.
    pub reached: Reached,
    /// Requests offered to an upstream while it was down.
    pub offered_while_down: u64,
    /// `received` over what the upstreams could have served at their first capacity.
    pub reached_over_capacity: f64,
    /// How often a breaker opened; none for contenders without one.
    pub breaker_opened: Option<u64>,
    /// How evenly good answers are spread over the proxies, by Jain's index (1: evenly); none for a single proxy.
    #[serde(default)]
    pub proxy_fairness: Option<f64>,
    /// Share of the upstreams' work, in slot time, for requests whose caller got no answer 200 ([`WorkLedger`]); known of runs with
    /// services that call services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasted_work: Option<f64>,
    /// The same for each upstream, as a share of its own work.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wasted_by_upstream: BTreeMap<String, f64>,
}

impl Figures {
    /// Scores a run; `records` in any order. Requests of adversaries count only in what has reached the upstreams.
    #[must_use]
    pub fn of(scenario: &Scenario, records: &[Record], reached: Reached) -> Self {
        let mut records: Vec<&Record> = records.iter().collect();
        records.sort_by_key(|record| record.arrival.at);
        let arrivals: Vec<_> = records
            .iter()
            .map(|record| record.arrival.clone())
            .collect();
        let verdicts = oracle::judge(scenario, &arrivals);
        let judged: Vec<ScoredRecord<'_>> = records
            .into_iter()
            .zip(verdicts)
            .filter(|(record, _)| record.arrival.at >= scenario.warmup)
            .filter(|(record, _)| scenario.adversary(record.arrival.client).is_none())
            .map(|(record, verdict)| ScoredRecord {
                record,
                verdict,
                good: verdict.is_good(record, scenario.latency_at(record.arrival.at)),
            })
            .collect();
        let mut figures = Self {
            reached,
            ..Self::default()
        };
        figures.count(&judged);
        figures.latencies(&judged);
        figures.upstreams(scenario, &judged);
        figures.criticalities(&judged);
        figures.false_shed = false_sheds(&judged);
        figures.times(scenario, &judged);
        figures
    }

    /// Records the work of the services of a chain; does nothing where no service calls another one.
    pub fn note_work(&mut self, scenario: &Scenario, work: &WorkLedger) {
        if scenario.has_chains() {
            self.wasted_work = work.wasted();
            self.wasted_by_upstream = work.wasted_by_service();
        }
    }

    fn times(&mut self, scenario: &Scenario, judged: &[ScoredRecord<'_>]) {
        for mark in &scenario.marks {
            let settled = || time_until_settled(judged, mark.at).map(|time| time.as_secs_f64());
            match mark.kind {
                MarkKind::Step => self.settle_s.push(settled()),
                MarkKind::Recovery => self.recovery_s.push(settled()),
                MarkKind::Fall => {
                    let later = scenario.marks.iter().map(|other| other.at);
                    let next = later.filter(|at| *at > mark.at).min();
                    let until = next.unwrap_or(Duration::MAX);
                    let calm = time_until_calm(judged, mark.at, until);
                    self.calm_s.push(calm.as_secs_f64());
                }
            }
        }
    }

    fn count(&mut self, judged: &[ScoredRecord<'_>]) {
        for ScoredRecord {
            record,
            verdict,
            good,
        } in judged
        {
            self.offered += 1;
            self.good += u64::from(*good);
            self.oracle_good += verdict.good;
            match record.answer {
                Answer::Ok => {}
                Answer::Shed(_) => self.shed += 1,
                Answer::Failed(_) | Answer::Broken => self.failed += 1,
                Answer::GaveUp => self.gave_up += 1,
            }
        }
        self.score = score(self.good, self.oracle_good);
    }

    fn latencies(&mut self, judged: &[ScoredRecord<'_>]) {
        let answered = judged.iter().filter(|j| j.record.answer == Answer::Ok);
        let mut latencies: Vec<Duration> = answered.map(|j| j.record.latency).collect();
        latencies.sort_unstable();
        let at = |q| number::quantile(&latencies, q).map(number::millis);
        self.admitted_p50_ms = at(0.5);
        self.admitted_p99_ms = at(0.99);
    }

    fn upstreams(&mut self, scenario: &Scenario, judged: &[ScoredRecord<'_>]) {
        let mut capacity = 0.0;
        for profile in &scenario.upstreams {
            let of_this = |j: &&ScoredRecord<'_>| {
                scenario
                    .client(j.record.arrival.client)
                    .is_some_and(|c| c.upstream == profile.name)
            };
            let stages = profile.stages();
            let is_down = |at: Duration| {
                stages
                    .iter()
                    .rev()
                    .find(|(from, _)| *from <= at)
                    .is_some_and(|(_, b)| !b.mode.is_up())
            };
            let (mut good, mut possible, mut down) = (0, 0.0, 0);
            for j in judged.iter().filter(of_this) {
                good += u64::from(j.good);
                possible += j.verdict.good;
                down += u64::from(is_down(j.record.arrival.at));
            }
            if possible > 0.0 {
                let score = score(good, possible);
                self.score_by_upstream.insert(profile.name.clone(), score);
                if stages.iter().all(|(_, behaviour)| behaviour.mode.is_up()) {
                    self.score_healthy = Some(self.score_healthy.map_or(score, |s| s.min(score)));
                }
            }
            self.offered_while_down += down;
            let client = scenario
                .clients
                .iter()
                .find(|client| client.upstream == profile.name);
            capacity += client.map_or(0.0, |client| scenario.capacity_for(client));
        }
        self.reached_over_capacity = number::float(self.reached.received)
            / (capacity * scenario.duration.as_secs_f64()).max(1.0);
    }

    fn criticalities(&mut self, judged: &[ScoredRecord<'_>]) {
        let mut by_class: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for j in judged {
            if let Some(class) = &j.record.arrival.criticality {
                let entry = by_class.entry(class).or_default();
                entry.0 += u64::from(j.good);
                entry.1 += 1;
            }
        }
        self.success_by_criticality = by_class
            .into_iter()
            .map(|(class, (good, all))| (class.to_owned(), number::ratio(good, all)))
            .collect();
    }

    /// The value of one figure; `None` when this run has none (no such mark, no such class).
    #[must_use]
    pub fn measure(&self, measure: Measure) -> Option<f64> {
        let longest = |times: &[Option<f64>]| {
            let known = times.iter().map(|time| time.unwrap_or(f64::INFINITY));
            known.max_by(f64::total_cmp)
        };
        match measure {
            Measure::Score => Some(self.score),
            Measure::ScoreWorstUpstream => self
                .score_by_upstream
                .values()
                .copied()
                .min_by(f64::total_cmp),
            Measure::ScoreHealthy => self.score_healthy,
            Measure::CriticalSuccess => CRITICALITIES
                .iter()
                .find_map(|class| self.success_by_criticality.get(*class))
                .copied(),
            Measure::ShedRatio => Some(number::ratio(self.shed, self.offered)),
            Measure::FalseShedRatio => Some(self.false_shed / number::float(self.offered).max(1.0)),
            Measure::AdmittedP99Ms => self.admitted_p99_ms,
            Measure::SettleS => longest(&self.settle_s),
            Measure::RecoveryS => longest(&self.recovery_s),
            Measure::CalmS => self.calm_s.iter().copied().max_by(f64::total_cmp),
            Measure::ReachedWhileDownRatio => (self.offered_while_down > 0)
                .then(|| number::ratio(self.reached.received_while_down, self.offered_while_down)),
            Measure::ReachedOverCapacity => Some(self.reached_over_capacity),
            Measure::BreakerOpened => self.breaker_opened.map(number::float),
            Measure::ProxyFairness => self.proxy_fairness,
            Measure::WastedWork => self.wasted_work,
        }
    }
}

/// A record beside the oracle's verdict.
#[derive(Debug, Clone, Copy)]
pub struct ScoredRecord<'a> {
    /// What happened.
    pub record: &'a Record,
    /// What the oracle would have done.
    pub verdict: OracleVerdict,
    /// Whether the answer was a good one.
    pub good: bool,
}

fn score(good: u64, possible: f64) -> f64 {
    if possible > 0.0 {
        number::float(good) / possible
    } else {
        1.0
    }
}

/// Sheds are compared with the oracle's within windows of this length: under overload some requests must be shed, and
/// they need not be those that the oracle picks.
const FALSE_SHED_WINDOW: Duration = Duration::from_millis(500);

fn false_sheds(judged: &[ScoredRecord<'_>]) -> f64 {
    let mut windows: BTreeMap<u128, (f64, f64)> = BTreeMap::new();
    for j in judged.iter().filter(|j| !j.verdict.is_worthless) {
        let window = windows
            .entry(j.record.arrival.at.as_nanos() / FALSE_SHED_WINDOW.as_nanos())
            .or_default();
        window.0 += f64::from(u8::from(j.record.is_shed()));
        window.1 += f64::from(u8::from(!j.verdict.admitted));
    }
    windows
        .values()
        .map(|(shed, due)| (shed - due).max(0.0))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::{self, Arrival};

    fn scenario(rest: &str) -> Scenario {
        let text = format!("name='t'\ntitle='t'\nprose='p'\nseed=5\nduration='10s'\n{rest}");
        Scenario::parse(&text, "test").unwrap()
    }

    fn run(scenario: &Scenario, answer: impl Fn(&Arrival) -> (Answer, u64)) -> Figures {
        let records: Vec<Record> = arrivals::schedule(scenario)
            .into_iter()
            .map(|arrival| {
                let (answer, ms) = answer(&arrival);
                Record {
                    arrival,
                    answer,
                    latency: Duration::from_millis(ms),
                    attempts: 1,
                    sheds: 0,
                }
            })
            .collect();
        Figures::of(scenario, &records, Reached::default())
    }

    const STEADY: &str = "[[clients]]\nload=[{at='0s', x=0.5}]";

    #[test]
    fn every_answer_in_time_scores_one() {
        let figures = run(&scenario(STEADY), |_| (Answer::Ok, 300));
        assert!((figures.score - 1.0).abs() < 1e-4);
        assert_eq!(figures.admitted_p99_ms, Some(300.0));
    }

    #[test]
    fn answers_after_the_objective_are_worth_nothing() {
        assert!(run(&scenario(STEADY), |_| (Answer::Ok, 301)).score < 1e-9);
    }

    #[test]
    fn sheds_below_capacity_are_all_false() {
        let figures = run(&scenario(STEADY), |_| (Answer::Shed("x".to_owned()), 1));
        assert!((figures.false_shed - number::float(figures.offered)).abs() < 1e-9);
    }

    #[test]
    fn sheds_during_an_outage_are_none_of_them_false() {
        let s = scenario(
            "[[clients]]\nload=[{at='0s', x=0.5}]\n[[upstreams]]\nname='main'\ntimeline=[{at='2s', mode='fail'}]",
        );
        let figures = run(&s, |arrival| {
            if arrival.at < Duration::from_secs(2) {
                (Answer::Ok, 40)
            } else {
                (Answer::Shed("x".to_owned()), 1)
            }
        });
        assert!(figures.false_shed < 1e-9);
        assert!((figures.score - 1.0).abs() < 1e-4);
        assert!(figures.offered_while_down > 1_000);
    }

    #[test]
    fn recovery_time_is_from_the_mark_to_lasting_goodput() {
        let s =
            scenario("[[clients]]\nload=[{at='0s', x=0.5}]\n[[marks]]\nat='3s'\nkind='recovery'");
        let figures = run(&s, |arrival| {
            let back = arrival.at >= Duration::from_millis(4_500);
            if back {
                (Answer::Ok, 40)
            } else {
                (Answer::Failed(500), 1)
            }
        });
        assert_eq!(figures.measure(Measure::RecoveryS), Some(1.5));
    }

    #[test]
    fn calm_time_is_from_the_fall_to_the_last_shed_before_the_next_mark() {
        let s = scenario(
            "[[clients]]\nload=[{at='0s', x=0.5}]\n[[marks]]\nat='3s'\nkind='fall'\n[[marks]]\nat='8s'\nkind='step'",
        );
        let figures = run(&s, |arrival| {
            let is_shed = |from, to| (from..to).contains(&arrival.at.as_millis());
            if is_shed(0, 4_500) || is_shed(8_000, 9_000) {
                (Answer::Shed("x".to_owned()), 1)
            } else {
                (Answer::Ok, 40)
            }
        });
        let calm = figures.measure(Measure::CalmS).unwrap();
        assert!((1.45..=1.5).contains(&calm), "{calm}");
    }

    #[test]
    fn nothing_shed_after_a_fall_is_calm_at_once() {
        let s = scenario("[[clients]]\nload=[{at='0s', x=0.5}]\n[[marks]]\nat='3s'\nkind='fall'");
        let figures = run(&s, |_| (Answer::Ok, 40));
        assert_eq!(figures.measure(Measure::CalmS), Some(0.0));
    }

    #[test]
    fn score_of_the_healthy_leaves_out_an_upstream_that_was_down() {
        let s = scenario(
            "[[upstreams]]\nname='dead'\ntimeline=[{at='2s', mode='fail'}]\n[[upstreams]]\nname='well'\n\
             [[clients]]\nupstream='dead'\nload=[{at='0s', x=0.5}]\n[[clients]]\nupstream='well'\nload=[{at='0s', x=0.5}]",
        );
        let figures = run(&s, |arrival| match arrival.client {
            0 => (Answer::Failed(500), 1),
            _ => (Answer::Ok, 40),
        });
        let healthy = figures.measure(Measure::ScoreHealthy).unwrap();
        assert!((healthy - 1.0).abs() < 1e-4, "{healthy}");
        assert_eq!(figures.measure(Measure::ScoreWorstUpstream), Some(0.0));
    }

    #[test]
    fn goodput_that_never_comes_back_is_an_infinite_recovery() {
        let s =
            scenario("[[clients]]\nload=[{at='0s', x=0.5}]\n[[marks]]\nat='3s'\nkind='recovery'");
        let figures = run(&s, |_| (Answer::Failed(500), 1));
        assert_eq!(figures.measure(Measure::RecoveryS), Some(f64::INFINITY));
    }
}
