//! The conditions in the status of a policy.
//!
//! There are three conditions, one more if the service reads the service graph, and one more if the API server has Istio's
//! `DestinationRule`s. Each has a reason from a closed list, a message, the generation it refers to, and the time of its
//! last change of status. An unchanged condition is not written again; a change of status or reason becomes an Event.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::reason::Reason;
use crate::resource::{BreakerPolicyStatus, ConditionType, OverruledTarget};

/// Longest message in bytes; Kubernetes accepts more, but people do not read more.
const MAX_MESSAGE_BYTES: usize = 2_000;

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionState {
    /// `True` or `False`.
    pub is_true: bool,
    /// The reason for programs.
    pub reason: Reason,
    /// The reason for people.
    pub message: String,
}

impl ConditionState {
    /// `True`.
    #[must_use]
    pub fn yes(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            is_true: true,
            reason,
            message: shortened(message.into()),
        }
    }

    /// `False`.
    #[must_use]
    pub fn no(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            is_true: false,
            ..Self::yes(reason, message)
        }
    }
}

/// Everything that the status of a policy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// Whether the policy is valid.
    pub accepted: ConditionState,
    /// Whether it is in force.
    pub programmed: ConditionState,
    /// Whether there is a conflict.
    pub conflicted: ConditionState,
    /// Whether the objective is out of reach.
    pub unreachable: OptionalReport,
    /// Whether a static pool is tighter than it.
    pub constrained: OptionalReport,
    /// Version of the configuration in force.
    pub version: Option<String>,
    /// The targets that other policies take from it.
    pub overruled: Vec<OverruledTarget>,
}

/// The state of a condition that not every service reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionalReport {
    /// There is no such condition: the service has no source for it.
    Absent,
    /// The condition stays as it is: the source has not answered yet.
    Unchanged,
    /// The condition has this state.
    Known(ConditionState),
}

impl OptionalReport {
    const fn state(&self) -> Option<&ConditionState> {
        match self {
            Self::Known(state) => Some(state),
            Self::Absent | Self::Unchanged => None,
        }
    }
}

/// A condition whose status or reason changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionChange {
    /// The condition.
    pub condition: ConditionType,
    /// What it says now.
    pub state: ConditionState,
}

impl ConditionChange {
    /// Whether the change is a warning.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        self.state.is_true == self.condition.is_complaint()
    }
}

impl StatusReport {
    /// The new state of a condition; `None`: it has none.
    const fn condition(&self, condition: ConditionType) -> Option<&ConditionState> {
        match condition {
            ConditionType::Accepted => Some(&self.accepted),
            ConditionType::Programmed => Some(&self.programmed),
            ConditionType::Conflicted => Some(&self.conflicted),
            ConditionType::Unreachable => self.unreachable.state(),
            ConditionType::Constrained => self.constrained.state(),
        }
    }

    /// Whether a condition without a new state stays as it was, instead of being removed.
    fn is_kept(&self, condition: ConditionType) -> bool {
        match condition {
            ConditionType::Unreachable => self.unreachable == OptionalReport::Unchanged,
            ConditionType::Constrained => self.constrained == OptionalReport::Unchanged,
            ConditionType::Accepted | ConditionType::Programmed | ConditionType::Conflicted => {
                false
            }
        }
    }

    /// The new status and the changed conditions; `None` if `before` says the same already.
    #[must_use]
    pub fn status(
        &self,
        generation: i64,
        before: &BreakerPolicyStatus,
        now: Timestamp,
    ) -> Option<(BreakerPolicyStatus, Vec<ConditionChange>)> {
        let mut changes = Vec::new();
        let conditions = ConditionType::ALL.into_iter().filter_map(|kind| {
            let old = before.conditions.iter().find(|c| c.type_ == kind.name());
            let Some(state) = self.condition(kind) else {
                return old.filter(|_| self.is_kept(kind)).cloned();
            };
            let status = if state.is_true { "True" } else { "False" };
            let same = old.filter(|old| old.status == status);
            if same.is_none_or(|old| old.reason != state.reason.name()) {
                changes.push(ConditionChange {
                    condition: kind,
                    state: state.clone(),
                });
            }
            Some(Condition {
                type_: kind.name().to_owned(),
                status: status.to_owned(),
                reason: state.reason.name().to_owned(),
                message: state.message.clone(),
                observed_generation: Some(generation),
                last_transition_time: same
                    .map_or(Time(now), |old| old.last_transition_time.clone()),
            })
        });
        let conditions: Vec<Condition> = conditions.collect();
        let is_new = |change: &ConditionChange| {
            let kind = change.condition.name();
            // The absence of a complaint is worth an Event only if the status had the condition before.
            !change.condition.is_complaint()
                || change.state.is_true
                || before.conditions.iter().any(|c| c.type_ == kind)
        };
        changes.retain(is_new);
        let status = BreakerPolicyStatus {
            observed_generation: Some(generation),
            version: self.version.clone(),
            conditions,
            overruled: self.overruled.clone(),
        };
        let is_unchanged = status.observed_generation == before.observed_generation
            && status.version == before.version
            && status.overruled == before.overruled
            && status.conditions.len() == before.conditions.len()
            && status
                .conditions
                .iter()
                .all(|condition| before.conditions.contains(condition));
        (!is_unchanged).then_some((status, changes))
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
