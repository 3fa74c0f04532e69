//! What is told of a policy in its status.
//!
//! Three conditions, each with a reason from a closed list, a message, and the
//! generation that it is about. A condition keeps the time of its last change
//! of status; one that says the same as before is not written again, and one
//! whose status or reason differs is a transition, which becomes an Event.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::resource::{BreakerPolicyStatus, ConditionType, OverruledTarget};

/// Longest message; Kubernetes takes more, but people do not.
const MAX_MESSAGE_BYTES: usize = 2_000;

/// Why a condition is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The policy is sound.
    Accepted,
    /// It is not.
    Invalid,
    /// It names standalone proxies, and stands in a namespace that may not.
    ProxiesNotAllowed,
    /// Istio's objects say what it says.
    Programmed,
    /// It is for standalone proxies, to which this service gives it.
    Served,
    /// Other policies have all its targets.
    Overruled,
    /// The API server has neither of Istio's APIs, or not the one that the settings name.
    NoExtensionApi,
    /// Somebody else's object or fields are in the way.
    Conflicted,
    /// The API server does not take the object.
    Rejected,
    /// The API server could not be asked, or failed; it is tried again.
    Failed,
    /// An object is on its way out and comes again.
    Pending,
    /// Nothing is in its way.
    NoConflict,
    /// Another policy takes some of its targets.
    PartlyOverruled,
    /// Another policy reaches some of its workloads; both act there.
    Overlapping,
    /// There is an object with the name that is somebody else's.
    NameTaken,
    /// Somebody else set fields of our object.
    FieldsTaken,
    /// Somebody else added to the plugin's configuration or selector in our object.
    FieldsAdded,
    /// What was applied was changed on its way, such as by a webhook.
    Altered,
}

impl Reason {
    /// Every value.
    pub const ALL: [Self; 18] = [
        Self::Accepted,
        Self::Invalid,
        Self::ProxiesNotAllowed,
        Self::Programmed,
        Self::Served,
        Self::Overruled,
        Self::NoExtensionApi,
        Self::Conflicted,
        Self::Rejected,
        Self::Failed,
        Self::Pending,
        Self::NoConflict,
        Self::PartlyOverruled,
        Self::Overlapping,
        Self::NameTaken,
        Self::FieldsTaken,
        Self::FieldsAdded,
        Self::Altered,
    ];

    /// As in `reason`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Invalid => "Invalid",
            Self::ProxiesNotAllowed => "ProxiesNotAllowed",
            Self::Programmed => "Programmed",
            Self::Served => "Served",
            Self::Overruled => "Overruled",
            Self::NoExtensionApi => "NoExtensionApi",
            Self::Conflicted => "Conflicted",
            Self::Rejected => "Rejected",
            Self::Failed => "Failed",
            Self::Pending => "Pending",
            Self::NoConflict => "NoConflict",
            Self::PartlyOverruled => "PartlyOverruled",
            Self::Overlapping => "Overlapping",
            Self::NameTaken => "NameTaken",
            Self::FieldsTaken => "FieldsTaken",
            Self::FieldsAdded => "FieldsAdded",
            Self::Altered => "Altered",
        }
    }
}

/// What a condition is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `True` or `False`.
    pub is_true: bool,
    /// Why.
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
}

impl Verdict {
    /// It holds.
    #[must_use]
    pub fn yes(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            is_true: true,
            reason,
            message: shortened(message.into()),
        }
    }

    /// It does not.
    #[must_use]
    pub fn no(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            is_true: false,
            ..Self::yes(reason, message)
        }
    }
}

/// All that is to be told of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Whether it is sound.
    pub accepted: Verdict,
    /// Whether it is in force.
    pub programmed: Verdict,
    /// Whether something is in its way.
    pub conflicted: Verdict,
    /// Version of the configuration in force.
    pub version: Option<String>,
    /// What others take from it.
    pub overruled: Vec<OverruledTarget>,
}

/// A condition that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Which.
    pub condition: ConditionType,
    /// What it says now.
    pub verdict: Verdict,
}

impl Transition {
    /// Whether it is bad news.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        self.verdict.is_true == (self.condition == ConditionType::Conflicted)
    }
}

impl Account {
    const fn verdict(&self, condition: ConditionType) -> &Verdict {
        match condition {
            ConditionType::Accepted => &self.accepted,
            ConditionType::Programmed => &self.programmed,
            ConditionType::Conflicted => &self.conflicted,
        }
    }

    /// The status that tells it, and what changes by that; `None`: `before` tells it already.
    #[must_use]
    pub fn status(
        &self,
        generation: i64,
        before: &BreakerPolicyStatus,
        now: Timestamp,
    ) -> Option<(BreakerPolicyStatus, Vec<Transition>)> {
        let mut transitions = Vec::new();
        let conditions = ConditionType::ALL.map(|kind| {
            let verdict = self.verdict(kind);
            let old = before.conditions.iter().find(|c| c.type_ == kind.name());
            let status = if verdict.is_true { "True" } else { "False" };
            let same = old.filter(|old| old.status == status);
            if same.is_none_or(|old| old.reason != verdict.reason.name()) {
                transitions.push(Transition {
                    condition: kind,
                    verdict: verdict.clone(),
                });
            }
            Condition {
                type_: kind.name().to_owned(),
                status: status.to_owned(),
                reason: verdict.reason.name().to_owned(),
                message: verdict.message.clone(),
                observed_generation: Some(generation),
                last_transition_time: same
                    .map_or(Time(now), |old| old.last_transition_time.clone()),
            }
        });
        let is_new = |transition: &Transition| {
            let kind = transition.condition.name();
            // That nothing is in the way is news only after something was.
            kind != ConditionType::Conflicted.name()
                || transition.verdict.is_true
                || before.conditions.iter().any(|c| c.type_ == kind)
        };
        transitions.retain(is_new);
        let status = BreakerPolicyStatus {
            observed_generation: Some(generation),
            version: self.version.clone(),
            conditions: conditions.to_vec(),
            overruled: self.overruled.clone(),
        };
        let is_told = status.observed_generation == before.observed_generation
            && status.version == before.version
            && status.overruled == before.overruled
            && status
                .conditions
                .iter()
                .all(|condition| before.conditions.contains(condition));
        (!is_told).then_some((status, transitions))
    }
}

fn shortened(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        let mut end = MAX_MESSAGE_BYTES;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(" ...");
    }
    message
}
