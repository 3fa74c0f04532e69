//! The advice for an upstream, in words for people.

use serde::Serialize;
use serde_json::Value;
use tidegate_advise::recommend::{AdviceEntry, InForceEntry};

/// The advice for an upstream, and the objectives in force. Names may contain any text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdviceText {
    /// The upstream.
    pub upstream: String,
    /// The recommended objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommended: Option<String>,
    /// Why there is no recommendation, or no rule for the upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// The objectives that policies set.
    pub in_force: Vec<ObjectiveText>,
}

/// An objective in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectiveText {
    /// The policy, and the place in it.
    pub policy: String,
    /// The objective.
    pub objective: String,
    /// Whether another one is recommended.
    pub differs: bool,
    /// How the observations contradict it.
    pub verdicts: Vec<String>,
}

impl AdviceText {
    pub(super) fn of(entry: &AdviceEntry) -> Self {
        let refused = entry.refused.as_ref().map(ToString::to_string);
        Self {
            upstream: entry.upstream.clone(),
            recommended: entry.slo.as_ref().map(objective),
            against: refused.or_else(|| entry.no_rule.clone()),
            in_force: entry.in_force.iter().map(in_force).collect(),
        }
    }
}

fn in_force(entry: &InForceEntry) -> ObjectiveText {
    ObjectiveText {
        policy: entry.policy.clone(),
        objective: objective(&entry.slo),
        differs: entry.differs == Some(true),
        verdicts: entry.verdicts.iter().map(ToString::to_string).collect(),
    }
}

/// An objective as a sentence, from its form in a policy.
fn objective(slo: &Value) -> String {
    let text = |pointer: &str| match slo.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "-".to_owned(),
    };
    let (quantile, target) = (text("/latency/quantile"), text("/latency/target"));
    format!(
        "quantile {quantile} within {target}, success {}",
        text("/successRate")
    )
}
