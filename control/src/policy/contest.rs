//! Policies of one Kubernetes namespace that apply to the same workloads.
//!
//! Istio applies every extension that matches a workload, so two policies would
//! put two filters into its chain. The order of all policies decides which one
//! wins: the more specific target, then the older policy, then the name. The
//! loser of the *same* target has no effect there; the loser of a *wider* target
//! still applies to the workloads outside the winner's.
//!
//! Edge cases: the policies alone do not show whether two selectors with different
//! labels match the same workload, or whether a service is reached through a
//! certain gateway; such pairs are not reported.

use std::collections::BTreeMap;
use std::fmt;

use super::{CheckedPolicy, Policies, PolicyName, PolicyTargets, TargetKind, TargetRef};

/// Two policies that compete for one target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contest {
    /// The policy that takes precedence.
    pub winner: PolicyName,
    /// The policy that loses the target.
    pub loser: PolicyName,
    /// The loser's target.
    pub target: String,
    /// How much of the target is lost.
    pub extent: ContestExtent,
}

/// How much of a target is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContestExtent {
    /// The whole target: the winner has the same one.
    Whole,
    /// Some workloads: the winner's target lies within it.
    Part,
}

/// One target of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PolicyTarget<'a> {
    Object(&'a TargetRef),
    Workloads(&'a BTreeMap<String, String>),
}

/// Every contest, ordered by namespace.
#[must_use]
pub fn contests(policies: &Policies) -> Vec<Contest> {
    let mut by_namespace: BTreeMap<Option<&str>, Vec<&CheckedPolicy>> = BTreeMap::new();
    for policy in policies.iter() {
        let namespace = policy.name().namespace();
        by_namespace.entry(namespace).or_default().push(policy);
    }
    let mut found = Vec::new();
    for group in by_namespace.values() {
        let mut targets: Vec<(PolicyTarget<'_>, &CheckedPolicy)> = group
            .iter()
            .flat_map(|policy| targets(policy).into_iter().map(|target| (target, *policy)))
            .collect();
        targets.sort_by(|a, b| {
            a.0.cmp(&b.0)
                .then_with(|| a.1.age_and_name().cmp(&b.1.age_and_name()))
        });
        for (target, policy) in &targets {
            found.extend(winner(&targets, *target, policy));
        }
    }
    found
}

/// The policy that takes `target` from `policy`: the first policy with the same
/// target, if it is older; otherwise the oldest policy with a target within it.
fn winner(
    targets: &[(PolicyTarget<'_>, &CheckedPolicy)],
    target: PolicyTarget<'_>,
    policy: &CheckedPolicy,
) -> Option<Contest> {
    let contest = |winner: &CheckedPolicy, extent| Contest {
        winner: winner.name().clone(),
        loser: policy.name().clone(),
        target: target.to_string(),
        extent,
    };
    let start = targets.partition_point(|(other, _)| *other < target);
    let (_, first) = targets.get(start)?;
    if first.name() != policy.name() {
        return Some(contest(first, ContestExtent::Whole));
    }
    let within = targets
        .iter()
        .filter(|(other, owner)| owner.name() != policy.name() && other.is_within(target));
    within
        .map(|(_, owner)| *owner)
        .min_by(|a, b| a.age_and_name().cmp(&b.age_and_name()))
        .map(|owner| contest(owner, ContestExtent::Part))
}

fn targets(policy: &CheckedPolicy) -> Vec<PolicyTarget<'_>> {
    match policy.targets() {
        PolicyTargets::Proxies(_) => Vec::new(),
        PolicyTargets::Selector(labels) => vec![PolicyTarget::Workloads(labels)],
        PolicyTargets::Refs(refs) => refs.iter().map(PolicyTarget::Object).collect(),
    }
}

impl PolicyTarget<'_> {
    /// Whether `other` includes all workloads of this target, and more.
    fn is_within(self, other: Self) -> bool {
        match (self, other) {
            (Self::Workloads(_), Self::Object(object)) => object.kind == TargetKind::Namespace,
            (Self::Workloads(labels), Self::Workloads(wider)) => {
                labels.len() > wider.len()
                    && wider
                        .iter()
                        .all(|(key, value)| labels.get(key) == Some(value))
            }
            (Self::Object(_), _) => false,
        }
    }
}

impl fmt::Display for PolicyTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object) => fmt::Display::fmt(object, f),
            Self::Workloads(labels) => {
                let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
                write!(f, "workloads with {}", labels.join(","))
            }
        }
    }
}
