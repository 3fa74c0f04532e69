//! What a check found.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// The severity of a finding; the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// Worth knowing.
    Info,
    /// Harmful under load or in an outage.
    Warning,
    /// A mistake at any load.
    Error,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingCode {
    /// All tries of a route take longer than its timeout.
    RetriesOutlastTimeout,
    /// All tries of a route together take longer than the timeout of a caller's caller.
    RetriesOutlastCaller,
    /// A timeout is not shorter than that of a caller's caller.
    TimeoutDoesNotShrink,
    /// Several hops of a chain retry.
    RetriesAtEveryHop,
    /// A static pool is tighter than the policy.
    PoolBelowPolicy,
    /// An objective is out of reach.
    ObjectiveOutOfReach,
    /// An objective is missed.
    ObjectiveMissed,
    /// An objective is longer than the timeout.
    ObjectiveBeyondTimeout,
    /// Services call each other in a cycle.
    CallCycle,
    /// Policies compete for one target.
    PoliciesOverlap,
}

impl FindingCode {
    /// The code and the name, as in the documentation.
    #[must_use]
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::RetriesOutlastTimeout => ("TG0101", "RetriesOutlastTimeout"),
            Self::RetriesOutlastCaller => ("TG0102", "RetriesOutlastCaller"),
            Self::TimeoutDoesNotShrink => ("TG0103", "TimeoutDoesNotShrink"),
            Self::RetriesAtEveryHop => ("TG0104", "RetriesAtEveryHop"),
            Self::PoolBelowPolicy => ("TG0201", "PoolBelowPolicy"),
            Self::ObjectiveOutOfReach => ("TG0202", "ObjectiveOutOfReach"),
            Self::ObjectiveMissed => ("TG0203", "ObjectiveMissed"),
            Self::ObjectiveBeyondTimeout => ("TG0204", "ObjectiveBeyondTimeout"),
            Self::PoliciesOverlap => ("TG0205", "PoliciesOverlap"),
            Self::CallCycle => ("TG0301", "CallCycle"),
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::RetriesOutlastTimeout => {
                "raise the timeout, or lower retries.attempts or perTryTimeout"
            }
            Self::RetriesOutlastCaller => {
                "lower retries.attempts or perTryTimeout, so that all tries end before the caller gives up"
            }
            Self::TimeoutDoesNotShrink => "let timeouts shrink from the entry on, hop by hop",
            Self::RetriesAtEveryHop => {
                "retry at one hop only, next to the entry or next to the service that fails"
            }
            Self::PoolBelowPolicy => {
                "remove the limits of connectionPool once the policy enforces: the tighter one limits"
            }
            Self::ObjectiveOutOfReach | Self::ObjectiveMissed => {
                "take the objective that tidegate recommend prints, or make the upstream faster"
            }
            Self::ObjectiveBeyondTimeout => "take a target below the timeout",
            Self::CallCycle => "check that each request leaves the cycle, and give it a deadline",
            Self::PoliciesOverlap => "make the targets differ, or remove one of the policies",
        }
    }
}

impl Serialize for FindingCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.names().0)
    }
}

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChainFinding {
    /// How bad it is.
    pub severity: FindingSeverity,
    /// The kind, such as TG0101.
    #[schemars(with = "String")]
    pub code: FindingCode,
    /// The object or upstream that it is about. It may contain anything.
    pub object: String,
    /// Where the object is, as file, line and column; absent if it is in no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What was found. It may contain anything.
    pub message: String,
    /// What to do.
    pub remedy: &'static str,
}

impl ChainFinding {
    pub(super) fn new(
        severity: FindingSeverity,
        code: FindingCode,
        object: String,
        place: Option<String>,
        message: String,
    ) -> Self {
        Self {
            severity,
            code,
            object,
            place,
            message,
            remedy: code.remedy(),
        }
    }
}

/// Findings for programs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FindingsDocument {
    /// The worst first.
    pub findings: Vec<FindingEntry>,
}

/// A finding with the name of its kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FindingEntry {
    /// The name of the kind.
    pub name: &'static str,
    /// The finding.
    #[serde(flatten)]
    pub finding: ChainFinding,
}

impl FindingsDocument {
    /// The document of findings.
    #[must_use]
    pub fn new(findings: &[ChainFinding]) -> Self {
        let entry = |finding: &ChainFinding| FindingEntry {
            name: finding.code.names().1,
            finding: finding.clone(),
        };
        Self {
            findings: findings.iter().map(entry).collect(),
        }
    }

    /// The JSON schema of the document.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

impl fmt::Display for FindingSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}
