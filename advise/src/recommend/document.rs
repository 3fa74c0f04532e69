//! Recommendations for programs: as a document, and as a configuration of the filter.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tidegate_core::Criticality;
use tidegate_core::config::Readable;
use tidegate_core::config::schema::MAX_RULES;
use tidegate_graph::ObservationWindow;

use super::UpstreamAdvice;
use super::objective::{ObjectiveEvidence, RecommendedObjective};
use super::reach::{ObjectiveInForce, ReachVerdict, reach};
use super::refusal::AdviceRefusal;
use crate::observed::{ObservedUpstream, RuleTarget};

/// The version of the document. A reader must not use one that it does not know.
const VERSION: u32 = 1;

/// Recommendations for all upstreams of a graph.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdviceDocument {
    /// The version of this document: 1.
    pub version: u32,
    /// End of the window, in seconds since 1970.
    pub end: u64,
    /// Length of the window, in seconds.
    pub window_seconds: u32,
    /// One entry for each upstream.
    pub upstreams: Vec<AdviceEntry>,
    /// Policies, and where in them, whose objective is out of reach for an upstream; by name.
    pub unreachable: Vec<String>,
}

/// The recommendation for one upstream. What is not known is absent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdviceEntry {
    /// The upstream, as `namespace/name`.
    pub upstream: String,
    /// What a rule names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleTarget>,
    /// Why no rule can name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_rule: Option<String>,
    /// The objective, as a policy has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slo: Option<Value>,
    /// The range in which an objective makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Value>,
    /// The observations behind the objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<ObjectiveEvidence>,
    /// A longer target that follows from that of a caller, if the caller needs the upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainEntry>,
    /// Why there is no objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<AdviceRefusal>,
    /// How important the requests of each caller are, and why.
    pub callers: Vec<Value>,
    /// The objectives in force, and how the observations contradict each.
    pub in_force: Vec<InForceEntry>,
}

/// The objective of an upstream that follows from that of a caller that needs it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChainEntry {
    /// The caller, as `namespace/name`.
    pub caller: String,
    /// Its target, as a duration.
    pub caller_target: String,
    /// The shortest target that follows, as a duration.
    pub target: String,
    /// The same as a sentence.
    pub note: String,
}

/// An objective in force.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InForceEntry {
    /// The policy, and where in it.
    pub policy: String,
    /// The objective.
    pub slo: Value,
    /// Whether the recommendation differs; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<bool>,
    /// How the observations contradict it.
    pub verdicts: Vec<ReachVerdict>,
}

/// The JSON schema of the document.
#[must_use]
pub fn advice_schema() -> Value {
    schemars::schema_for!(AdviceDocument).to_value()
}

/// The document of recommendations. `in_force` has the objectives that policies have for an upstream.
#[must_use]
pub fn advice_document(
    advice: &[UpstreamAdvice<'_>],
    observed: ObservationWindow,
    in_force: impl Fn(&ObservedUpstream<'_>) -> Vec<ObjectiveInForce>,
) -> AdviceDocument {
    let entry = |advice: &UpstreamAdvice<'_>| {
        let target = advice.upstream.target.as_ref();
        let objective = advice.objective.as_ref().ok();
        let in_force = in_force(&advice.upstream);
        AdviceEntry {
            upstream: advice.upstream.name.clone(),
            rule: target.ok().cloned(),
            no_rule: target.err().map(ToString::to_string),
            slo: objective.map(slo_of),
            bounds: objective.map(bounds),
            evidence: objective.map(|found| found.evidence.clone()),
            chain: advice.chain.as_ref().map(|hint| ChainEntry {
                caller: hint.caller.clone(),
                caller_target: Readable(hint.caller_target).to_string(),
                target: Readable(hint.target).to_string(),
                note: hint.to_string(),
            }),
            refused: advice.objective.as_ref().err().cloned(),
            callers: advice
                .callers
                .iter()
                .map(|caller| {
                    json!({
                        "caller": caller.caller.to_string(),
                        "criticality": caller.criticality.name(),
                        "reason": caller.reason,
                    })
                })
                .collect(),
            in_force: in_force
                .iter()
                .map(|found| InForceEntry {
                    policy: found.policy.clone(),
                    slo: slo(found.quantile, found.target, found.success_rate),
                    differs: objective.map(|new| differs(new, found)),
                    verdicts: reach(&advice.upstream, observed, found),
                })
                .collect(),
        }
    };
    let upstreams: Vec<AdviceEntry> = advice.iter().map(entry).collect();
    let unreachable: BTreeSet<&String> = upstreams
        .iter()
        .flat_map(|upstream| &upstream.in_force)
        .filter(|found| found.verdicts.iter().any(ReachVerdict::is_out_of_reach))
        .map(|found| &found.policy)
        .collect();
    AdviceDocument {
        version: VERSION,
        end: observed.end,
        window_seconds: observed.window_seconds,
        unreachable: unreachable.into_iter().cloned().collect(),
        upstreams,
    }
}

/// The rule of a configuration for an upstream; `None` if there is no objective or no rule can name it.
#[must_use]
pub fn rule_of(advice: &UpstreamAdvice<'_>) -> Option<Value> {
    let (key, value) = advice.upstream.target.as_ref().ok()?.condition();
    let objective = advice.objective.as_ref().ok()?;
    Some(json!({"match": {key: value}, "slo": slo_of(objective)}))
}

/// A configuration of the filter with a rule for each upstream that can have one, in mode `observe`; `None` if none can. Upstreams
/// without a rule get the loosest of all objectives. Beyond the greatest number of rules, upstreams with fewer requests are left
/// out.
#[must_use]
pub fn plugin_configuration(
    advice: &[&UpstreamAdvice<'_>],
    criticality: Criticality,
) -> Option<Value> {
    let mut by_target: BTreeMap<&RuleTarget, (&RecommendedObjective, Value)> = BTreeMap::new();
    for advice in advice {
        let (Ok(target), Ok(objective), Some(rule)) =
            (&advice.upstream.target, &advice.objective, rule_of(advice))
        else {
            continue;
        };
        // Two vertices may have the same host; then the looser objective is the one that both keep.
        let kept = by_target.get(target);
        if kept.is_none_or(|(kept, _)| kept.target < objective.target) {
            by_target.insert(target, (objective, rule));
        }
    }
    let mut rules: Vec<_> = by_target.into_values().collect();
    rules.sort_by(|a, b| {
        let samples = |found: &RecommendedObjective| found.evidence.all_samples;
        samples(b.0).total_cmp(&samples(a.0))
    });
    let quantile = rules
        .iter()
        .map(|(found, _)| found.quantile)
        .reduce(f64::min)?;
    let target = rules.iter().map(|(found, _)| found.target).max()?;
    let success = rules
        .iter()
        .map(|(found, _)| found.success_rate)
        .reduce(f64::min)?;
    // Only now: those that are left out get the objective at the top.
    rules.truncate(MAX_RULES);
    Some(json!({
        "mode": "observe",
        "slo": slo(quantile, target, success),
        "criticality": {"default": criticality.name()},
        "upstreams": rules.into_iter().map(|(_, rule)| rule).collect::<Vec<_>>(),
    }))
}

/// How many upstreams [`plugin_configuration`] leaves out, because it has no more rules for them.
#[must_use]
pub fn upstreams_beyond_rules(advice: &[&UpstreamAdvice<'_>]) -> usize {
    let can_have_one = advice.iter().filter(|one| one.objective.is_ok());
    let targets: BTreeSet<&RuleTarget> = can_have_one
        .filter_map(|one| one.upstream.target.as_ref().ok())
        .collect();
    targets.len().saturating_sub(MAX_RULES)
}

fn slo_of(objective: &RecommendedObjective) -> Value {
    slo(objective.quantile, objective.target, objective.success_rate)
}

fn slo(quantile: f64, target: Duration, success_rate: f64) -> Value {
    json!({
        "latency": {"quantile": quantile, "target": Readable(target).to_string()},
        "successRate": success_rate,
    })
}

fn bounds(objective: &RecommendedObjective) -> Value {
    let bounds = &objective.bounds;
    json!({
        "target": {
            "lowest": Readable(bounds.lowest_target).to_string(),
            "highest": Readable(bounds.highest_target).to_string(),
        },
        "successRate": {"lowest": bounds.lowest_success, "highest": bounds.highest_success},
    })
}

fn differs(new: &RecommendedObjective, old: &ObjectiveInForce) -> bool {
    new.target != old.target
        || new.quantile.total_cmp(&old.quantile).is_ne()
        || new.success_rate.total_cmp(&old.success_rate).is_ne()
}
