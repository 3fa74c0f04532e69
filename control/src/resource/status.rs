//! The status of a policy.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakerPolicyStatus {
    /// The generation of the policy that this status refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,
    /// Version of the configuration that is in force: a hash of its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub version: Option<String>,
    /// Accepted, Programmed and Conflicted; Unreachable if the control service reads the service graph; Constrained if the API server has Istio's DestinationRules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Targets of this policy that another policy takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overruled: Vec<OverruledTarget>,
}

/// A target that another policy takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverruledTarget {
    /// The target, such as `Gateway/waypoint`.
    pub target: String,
    /// The policy that takes it.
    pub by: String,
}

/// The type of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The policy is valid.
    Accepted,
    /// The policy is in force at its targets.
    Programmed,
    /// Another policy or someone else's object is in conflict with it.
    Conflicted,
    /// Its objective is out of reach at the observed load.
    Unreachable,
    /// A static pool of Istio is tighter than it.
    Constrained,
}

impl ConditionType {
    /// Every value.
    pub const ALL: [Self; 5] = [
        Self::Accepted,
        Self::Programmed,
        Self::Conflicted,
        Self::Unreachable,
        Self::Constrained,
    ];

    /// The value of `type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Programmed => "Programmed",
            Self::Conflicted => "Conflicted",
            Self::Unreachable => "Unreachable",
            Self::Constrained => "Constrained",
        }
    }

    /// Whether `True` is bad news.
    #[must_use]
    pub const fn is_complaint(self) -> bool {
        matches!(
            self,
            Self::Conflicted | Self::Unreachable | Self::Constrained
        )
    }
}
