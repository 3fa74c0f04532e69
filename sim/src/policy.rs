//! The policy of a scenario: what a user whose service it is would configure.
//!
//! The simulator's Tidegate and the one in a real Envoy have the same.

use serde_json::json;

use crate::scenario::{ClientProfile, LatencyUntil, Scenario};

/// Health checkers of a scenario in which callers have agents.
const EXEMPT_AGENT: &str = "kube-probe/";
/// Header that carries the cohort of a request.
pub const COHORT_HEADER: &str = "x-cohort";
/// Header in which callers and services say how long they wait, in milliseconds.
pub const DEADLINE_HEADER: &str = "x-deadline-ms";

/// The policy that a user would configure for a scenario: the objectives, and what callers may claim ([`trust`]).
#[must_use]
pub fn policy(scenario: &Scenario) -> serde_json::Value {
    let target = format!("{}ms", scenario.slo.latency.as_millis());
    let mut latency = json!({"quantile": scenario.slo.quantile, "target": target});
    let until = match scenario.slo.until {
        // The default, which users leave out.
        LatencyUntil::Headers => None,
        LatencyUntil::FirstByte => Some("firstByte"),
        LatencyUntil::End => Some("end"),
    };
    if let (Some(until), Some(latency)) = (until, latency.as_object_mut()) {
        latency.insert("until".to_owned(), json!(until));
    }
    let mut policy = json!({"slo": {"latency": latency}});
    let own = scenario.upstreams.iter().filter_map(|profile| {
        let target = format!("{}ms", profile.objective?.as_millis());
        Some(json!({"match": {"cluster": profile.name}, "slo": {"latency": {"target": target}}}))
    });
    let own: Vec<_> = own.collect();
    if let Some(fields) = policy.as_object_mut() {
        if !own.is_empty() {
            fields.insert("upstreams".to_owned(), json!(own));
        }
        fields.extend(trust(scenario));
    }
    policy
}

/// What the policy lets callers claim, in scenarios whose callers do: health checkers by their agent, cohorts, and
/// deadlines.
#[must_use]
pub fn trust(scenario: &Scenario) -> serde_json::Map<String, serde_json::Value> {
    let mut fields = serde_json::Map::new();
    let any = |is: fn(&ClientProfile) -> bool| scenario.clients.iter().any(is);
    if any(|client| client.agent.is_some()) {
        fields.insert("ignore".to_owned(), json!({"userAgents": [EXEMPT_AGENT]}));
    }
    if any(|client| client.cohort.is_some()) {
        let criticality = json!({"cohortHeader": COHORT_HEADER});
        fields.insert("criticality".to_owned(), criticality);
    }
    if any(|client| client.tells_deadline) {
        fields.insert("deadline".to_owned(), json!({"headers": [DEADLINE_HEADER]}));
    }
    fields
}
