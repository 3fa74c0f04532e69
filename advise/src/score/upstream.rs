//! The score of each upstream: benefit and cost of protection for its callers.
//!
//! | part | group | scored |
//! |---|---|---|
//! | latency | benefit | share of late answers, against what the objective's quantile allows |
//! | success | benefit | share of failed answers, against what the objective's success rate allows |
//! | needless | cost | share of requests shed, or that would have been, while nothing was overloaded |
//! | cpu | cost | CPU time of the proxy for a request |
//! | memory | cost | memory of a proxy |
//!
//! Edges: requests that were shed while something was overloaded count neither way; they are the price of the others'
//! success. A composite needs the first three parts. It omits CPU and memory if they are not known.

use serde::Serialize;

use super::formula::{Cost, composite};
use super::queries::ScoreMeasure;
use super::readings::ScoreReadings;
use super::terms::{ObjectiveTerms, ScoreTerms, WeightedCost};

/// The objective of an upstream.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreObjective {
    /// Share of the answers that must come in time, 0 to 1.
    pub quantile: f64,
    /// Share of the answers that must succeed, 0 to 1.
    pub success_rate: f64,
    /// The policy or default that sets it.
    pub origin: String,
}

/// Whether a part is a benefit or a cost. A score of 1 is best for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ScoreGroup {
    /// The benefit of protection.
    Benefit,
    /// The cost of protection.
    Cost,
}

/// One part of a score.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScorePart {
    /// Its name.
    pub name: &'static str,
    /// Its group.
    pub group: ScoreGroup,
    /// Its weight.
    pub weight: f64,
    /// The measured value: a share (0 to 1), microseconds, or MiB; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// 0 to 1; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// An explanation.
    pub reason: String,
}

/// The score of one upstream; 0 to 1, and `None` if it is not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScoredUpstream {
    /// The name of Envoy's cluster. It may contain anything.
    pub upstream: String,
    /// Requests in the window.
    pub requests: f64,
    /// The mean of all parts that are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The mean of the benefits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub benefit: Option<f64>,
    /// The mean of the costs that are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The parts.
    pub parts: Vec<ScorePart>,
}

/// A value with its reason, or the reason why there is none.
type Measured = Result<(f64, String), String>;

/// Scores all upstreams with requests, the worst first and those without a score last. `objective` returns an upstream's
/// objective from its policy.
#[must_use]
pub fn scored_upstreams(
    readings: &ScoreReadings,
    terms: &ScoreTerms,
    objective: impl Fn(&str) -> Option<ScoreObjective>,
) -> Vec<ScoredUpstream> {
    let fallback = || ScoreObjective {
        quantile: terms.objective.quantile,
        success_rate: terms.objective.success_rate,
        origin: "the default, because no policy names the upstream".to_owned(),
    };
    let scored = |upstream: &str| {
        let promised = objective(upstream).unwrap_or_else(fallback);
        let measures = UpstreamMeasures {
            readings,
            terms,
            upstream,
        };
        measures.scored(&promised)
    };
    let mut all: Vec<ScoredUpstream> = readings.upstreams().map(scored).collect();
    all.sort_by(|a, b| {
        let [a, b] = [a, b].map(|one| one.score.unwrap_or(f64::INFINITY));
        a.total_cmp(&b)
    });
    all
}

struct UpstreamMeasures<'a> {
    readings: &'a ScoreReadings,
    terms: &'a ScoreTerms,
    upstream: &'a str,
}

impl UpstreamMeasures<'_> {
    fn scored(&self, promised: &ScoreObjective) -> ScoredUpstream {
        let benefit = self.terms.benefit;
        let cost = self.terms.cost;
        let late = (ScoreMeasure::Late, promised.quantile, "late");
        let failed = (ScoreMeasure::Failed, promised.success_rate, "failed");
        let parts = vec![
            self.objective_part("latency", benefit.latency, late, &promised.origin),
            self.objective_part("success", benefit.success, failed, &promised.origin),
            cost_part("needless", cost.needless, self.needless()),
            cost_part("cpu", cost.cpu_us, self.cpu()),
            cost_part("memory", cost.memory_mib, self.memory()),
        ];
        let of = |group: ScoreGroup| {
            let parts = parts.iter().filter(move |part| part.group == group);
            mean(parts)
        };
        let (benefit, cost) = (of(ScoreGroup::Benefit), of(ScoreGroup::Cost));
        ScoredUpstream {
            upstream: self.upstream.to_owned(),
            requests: self.readings.requests(self.upstream),
            score: benefit.and(cost).and_then(|_| mean(parts.iter())),
            benefit,
            cost,
            parts,
        }
    }

    /// A part that is a share of the answers.
    fn objective_part(
        &self,
        name: &'static str,
        terms: ObjectiveTerms,
        (measure, promised, missed): (ScoreMeasure, f64, &str),
        origin: &str,
    ) -> ScorePart {
        let allowed = 1.0 - promised;
        let share = || {
            let answers = self.readings.count(self.upstream, ScoreMeasure::Answers)?;
            let misses = self.readings.count(self.upstream, measure)?;
            let least = f64::from(self.terms.evidence.min_answers);
            if answers < least {
                return Err(format!(
                    "not known: {answers:.0} answers, expected at least {least:.0}"
                ));
            }
            let share = (misses / answers).min(1.0);
            let reason = format!(
                "{} of the answers {missed}, {} allowed by {origin}",
                percent(share),
                percent(allowed)
            );
            Ok((share, reason))
        };
        part(
            (name, ScoreGroup::Benefit),
            terms.weight,
            terms.cost(allowed),
            share(),
        )
    }

    fn needless(&self) -> Measured {
        use ScoreMeasure::{Limits, NeedlessShed, NeedlessWouldShed, Shed, WouldShed};
        let count = |measure| self.readings.count(self.upstream, measure);
        let (shed, would) = (count(Shed)?, count(WouldShed)?);
        // The periods begin a little before the window.
        let needless = count(NeedlessShed)?.min(shed);
        let would_needless = count(NeedlessWouldShed)?.min(would);
        let requests = self.readings.requests(self.upstream);
        if shed + would > 0.0 && count(Limits)? < 1.0 {
            return Err("not known: Prometheus has no limit of this upstream".to_owned());
        }
        let share = |count: f64| (count / requests).clamp(0.0, 1.0);
        let value = share(needless + would_needless);
        let mut reason = format!(
            "{} of the requests shed while nothing was overloaded, of {} in all",
            percent(share(needless)),
            percent(share(shed))
        );
        if would > 0.0 {
            reason += &format!(
                "; {} would have been, of {} in all",
                percent(share(would_needless)),
                percent(share(would))
            );
        }
        Ok((value, reason))
    }

    fn cpu(&self) -> Measured {
        let found = self.readings.gauge(self.upstream, ScoreMeasure::CpuUs)?;
        let unknown = "not known: Prometheus has no CPU time of the proxies' containers (cAdvisor, by namespace and pod)";
        let value = found.ok_or_else(|| unknown.to_owned())?;
        Ok((value, format!("{value:.0} us of CPU for a request")))
    }

    fn memory(&self) -> Measured {
        let found = self
            .readings
            .gauge(self.upstream, ScoreMeasure::MemoryMib)?;
        let unknown =
            "not known: Prometheus has no envoy_server_memory_physical_size of the proxies";
        let value = found.ok_or_else(|| unknown.to_owned())?;
        Ok((value, format!("{value:.0} MiB for a proxy")))
    }
}

fn cost_part(name: &'static str, terms: WeightedCost, measured: Measured) -> ScorePart {
    part(
        (name, ScoreGroup::Cost),
        terms.weight,
        terms.cost(),
        measured,
    )
}

fn part(
    (name, group): (&'static str, ScoreGroup),
    weight: f64,
    scale: Cost,
    measured: Measured,
) -> ScorePart {
    let (value, reason) = match measured {
        Ok((value, reason)) => (Some(value), reason),
        Err(reason) => (None, reason),
    };
    ScorePart {
        name,
        group,
        weight,
        value,
        score: value.map(|value| scale.score(value)),
        reason,
    }
}

/// Parts that may be left out of a mean if they are not known.
const OPTIONAL: [&str; 2] = ["cpu", "memory"];

fn mean<'a>(parts: impl Iterator<Item = &'a ScorePart>) -> Option<f64> {
    let counted = parts.filter(|part| part.score.is_some() || !OPTIONAL.contains(&part.name));
    composite(counted.map(|part| (part.score, part.weight)))
}

fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} %")
}
