//! The status of a policy, derived from its reconcile state.

use super::condition::{ConditionState, OptionalReport, StatusReport};
use super::constrained::constrained;
use super::reason::Reason;
use super::served::{rejected, served};
use super::state::{ObjectState, ReconcileState};
use crate::kube::view::{ObservedPolicy, ReachFindings, WriteFailureCause};
use crate::policy::{CheckedPolicy, Contest, ContestExtent, PolicyTargets};
use crate::render::PluginConfig;
use crate::resource::OverruledTarget;

/// The status of `policy` in this state.
#[must_use]
pub(in crate::kube) fn report(policy: &ObservedPolicy, state: &ReconcileState) -> StatusReport {
    let accepted = match &policy.errors {
        None if state.barred.is_some() => barred(state),
        None => match &state.module {
            Some(problem) => ConditionState::no(Reason::ModuleNotAllowed, problem.to_string()),
            None => ConditionState::yes(Reason::Accepted, "the policy is valid"),
        },
        Some(errors) => ConditionState::no(Reason::Invalid, errors.to_string().replace('\n', "; ")),
    };
    let whole = state
        .contests
        .iter()
        .filter(|c| c.extent == ContestExtent::Whole);
    StatusReport {
        accepted,
        programmed: programmed(policy, state),
        conflicted: conflicted(state),
        unreachable: unreachable(policy, state),
        constrained: constrained(policy, state),
        version: version(policy, state),
        overruled: whole
            .map(|contest| OverruledTarget {
                target: contest.target.clone(),
                by: contest.winner.to_string(),
            })
            .collect(),
    }
}

fn is_for_proxies(policy: &CheckedPolicy) -> bool {
    matches!(policy.targets(), PolicyTargets::Proxies(_))
}

/// The policy names standalone proxies from a namespace where that is not allowed.
fn barred(state: &ReconcileState) -> ConditionState {
    let problem = state.barred.as_ref();
    let message = problem.map(|problem| {
        let (path, found, expected) = (&problem.path, &problem.found, &problem.expected);
        format!("{path}: found {found}, expected {expected}")
    });
    ConditionState::no(Reason::ProxiesNotAllowed, message.unwrap_or_default())
}

fn programmed(policy: &ObservedPolicy, state: &ReconcileState) -> ConditionState {
    let Some(valid) = &policy.valid else {
        return ConditionState::no(
            Reason::Invalid,
            "no version is in force: the policy is invalid",
        );
    };
    if policy.errors.is_some() {
        let message = "the last valid version of the policy remains in force";
        return ConditionState::no(Reason::Invalid, message);
    }
    if state.barred.is_some() {
        return barred(state);
    }
    if let Some(problem) = &state.module {
        let message = format!("{problem}; the objects that were written before remain");
        return ConditionState::no(Reason::ModuleNotAllowed, message);
    }
    let off = off(valid, state);
    if is_for_proxies(valid) {
        return served(valid, state, off.as_deref());
    }
    if state.api.is_none() {
        let message = "the API server has neither TrafficExtension nor WasmPlugin, or not the configured one: is Istio installed?";
        return ConditionState::no(Reason::NoExtensionApi, message);
    }
    if state.objects.is_empty() {
        return ConditionState::no(Reason::Overruled, "other policies take all its targets");
    }
    let blocked = state.objects.iter().find_map(|(key, object)| {
        let (reason, message) = match object {
            ObjectState::Current => return None,
            ObjectState::Due | ObjectState::Leaving => (
                Reason::Pending,
                format!("{key} is being deleted and will be created again"),
            ),
            ObjectState::WriteFailed(WriteFailureCause::Rejected(message)) => (
                Reason::Rejected,
                format!("the API server rejects {key}: {message}"),
            ),
            ObjectState::WriteFailed(WriteFailureCause::Failed) => (
                Reason::Failed,
                format!("{key} could not be written; the control service retries"),
            ),
            ObjectState::Foreign
            | ObjectState::Added(_)
            | ObjectState::Altered
            | ObjectState::WriteFailed(WriteFailureCause::FieldsTaken(_)) => (
                Reason::Conflicted,
                format!("{key} differs from its desired state: see Conflicted"),
            ),
        };
        Some(ConditionState::no(reason, message))
    });
    let names = || {
        let names: Vec<String> = state
            .objects
            .iter()
            .map(|(key, _)| key.to_string())
            .collect();
        names.join(", ")
    };
    blocked.unwrap_or_else(|| match off {
        Some(off) => ConditionState::yes(Reason::Disabled, format!("{}; {off}", names())),
        None => ConditionState::yes(Reason::Programmed, format!("{}; {UNSEEN}", names())),
    })
}

/// What the service cannot know in a mesh.
const UNSEEN: &str =
    "Istio passes it to proxies; the metric tidegate_info shows which proxies run it";

/// Why every request passes; `None`: the policy is on.
fn off(policy: &CheckedPolicy, state: &ReconcileState) -> Option<String> {
    if state.shutoff.is_off() {
        return Some(format!(
            "all policies are off, so every request passes: {}",
            state.shutoff
        ));
    }
    (!policy.config().enabled())
        .then(|| "enabled is false in the policy, so every request passes".to_owned())
}

fn conflicted(state: &ReconcileState) -> ConditionState {
    let foreign = state.objects.iter().find_map(|(key, object)| {
        let (reason, message) = match object {
            ObjectState::Foreign => (
                Reason::NameTaken,
                format!("{key} exists and is not owned by this policy; it is not modified"),
            ),
            ObjectState::WriteFailed(WriteFailureCause::FieldsTaken(message)) => {
                (Reason::FieldsTaken, format!("{key}: {message}"))
            }
            ObjectState::Added(path) => (
                Reason::FieldsAdded,
                format!("{key}: {path} was set by someone else"),
            ),
            ObjectState::Altered => (
                Reason::Altered,
                format!("{key} was changed while it was written, for example by a webhook"),
            ),
            ObjectState::Current
            | ObjectState::Due
            | ObjectState::Leaving
            | ObjectState::WriteFailed(_) => {
                return None;
            }
        };
        Some(ConditionState::yes(reason, message))
    });
    foreign
        .or_else(|| contested(state))
        .unwrap_or_else(|| ConditionState::no(Reason::NoConflict, "there is no conflict"))
}

/// The message has no figures: with them, the status would change with every graph.
fn unreachable(policy: &ObservedPolicy, state: &ReconcileState) -> OptionalReport {
    let found = match &state.reach {
        ReachFindings::Off => return OptionalReport::Absent,
        ReachFindings::Unknown => return OptionalReport::Unchanged,
        ReachFindings::Known(found) => found.get(&policy.name.to_string()),
    };
    OptionalReport::Known(match found {
        Some(upstreams) => ConditionState::yes(
            Reason::OutOfReach,
            format!(
                "most requests of every caller take longer than the target, to {}: /v1/recommendations has the figures",
                upstreams.join(", ")
            ),
        ),
        None => ConditionState::no(
            Reason::NotOutOfReach,
            "the objective is out of reach for no known upstream",
        ),
    })
}

fn contested(state: &ReconcileState) -> Option<ConditionState> {
    let described = |extent: ContestExtent, describe: fn(&Contest) -> String| {
        let of_extent = state.contests.iter().filter(|c| c.extent == extent);
        let texts: Vec<String> = of_extent.map(describe).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    };
    let whole = described(ContestExtent::Whole, |contest| {
        format!("{} takes {}", contest.winner, contest.target)
    });
    let part = described(ContestExtent::Part, |contest| {
        format!(
            "{} also applies to part of {}: requests there must pass both",
            contest.winner, contest.target
        )
    });
    if !state.modules_differ.is_empty() {
        let describe = |contest: &Contest| {
            format!(
                "{} applies to part of {} with another version of the module: proxies there would run both",
                contest.winner, contest.target
            )
        };
        let texts: Vec<String> = state.modules_differ.iter().map(describe).collect();
        return Some(ConditionState::yes(Reason::ModulesDiffer, texts.join("; ")));
    }
    match (whole, part) {
        (None, None) => None,
        (None, Some(part)) => Some(ConditionState::yes(Reason::Overlapping, part)),
        (Some(whole), _) if state.objects.is_empty() => {
            Some(ConditionState::yes(Reason::Overruled, whole))
        }
        (Some(whole), part) => {
            let message = [Some(whole), part].into_iter().flatten();
            let message: Vec<String> = message.collect();
            Some(ConditionState::yes(
                Reason::PartlyOverruled,
                message.join("; "),
            ))
        }
    }
}

/// The version in force: the policy's version once all its objects are current; before that, the last reported one.
fn version(policy: &ObservedPolicy, state: &ReconcileState) -> Option<String> {
    let valid = policy.valid.as_ref()?;
    let is_current = |(_, object): &(_, ObjectState)| *object == ObjectState::Current;
    let is_programmed = !state.objects.is_empty() && state.objects.iter().all(is_current);
    let is_served = || state.barred.is_none() && rejected(valid, state).is_none();
    if is_programmed || (is_for_proxies(valid) && is_served()) {
        let config = PluginConfig::under(valid, state.shutoff.is_off());
        return Some(config.version.to_string());
    }
    policy.status.version.clone().filter(|_| state.has_objects)
}
