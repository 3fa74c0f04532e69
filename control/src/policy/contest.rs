//! Policies of one Kubernetes namespace that are for the same workloads.
//!
//! Istio applies every extension that matches a workload, so that two policies
//! would put two filters into its chain. Which one ought to hold is decided by
//! the order of all policies: the more specific target, then the older, then by
//! name. The loser of the *same* target has nothing left to do there; the loser
//! of a *wider* one still holds for the workloads outside the winner's.
//!
//! Edges: whether two selectors with different labels meet in some workload
//! cannot be told from the policies, and neither whether a service goes through
//! a certain gateway; such pairs are not reported.

use std::collections::BTreeMap;
use std::fmt;

use super::{Policies, Policy, PolicyName, TargetKind, TargetRef, Targets};

/// Two policies, one target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contest {
    /// The policy that ought to hold.
    pub winner: PolicyName,
    /// The policy that it takes the target from.
    pub loser: PolicyName,
    /// The loser's target.
    pub target: String,
    /// How much of it.
    pub extent: Extent,
}

/// How much of a target is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extent {
    /// All: the winner has the same target.
    Whole,
    /// Some workloads: the winner's target lies within.
    Part,
}

/// One target of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target<'a> {
    Object(&'a TargetRef),
    Workloads(&'a BTreeMap<String, String>),
}

/// Every contest, ordered by namespace.
#[must_use]
pub fn contests(policies: &Policies) -> Vec<Contest> {
    let mut by_namespace: BTreeMap<Option<&str>, Vec<&Policy>> = BTreeMap::new();
    for policy in policies.iter() {
        let namespace = policy.name().namespace();
        by_namespace.entry(namespace).or_default().push(policy);
    }
    let mut found = Vec::new();
    for neighbours in by_namespace.values() {
        let mut targets: Vec<(Target<'_>, &Policy)> = neighbours
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

/// Who takes `target` from `policy`: the first with the same one, if that is
/// older; else the oldest of those within it.
fn winner(
    targets: &[(Target<'_>, &Policy)],
    target: Target<'_>,
    policy: &Policy,
) -> Option<Contest> {
    let contest = |winner: &Policy, extent| Contest {
        winner: winner.name().clone(),
        loser: policy.name().clone(),
        target: target.to_string(),
        extent,
    };
    let start = targets.partition_point(|(other, _)| *other < target);
    let (_, first) = targets.get(start)?;
    if first.name() != policy.name() {
        return Some(contest(first, Extent::Whole));
    }
    let within = targets
        .iter()
        .filter(|(other, owner)| owner.name() != policy.name() && other.is_within(target));
    within
        .map(|(_, owner)| *owner)
        .min_by(|a, b| a.age_and_name().cmp(&b.age_and_name()))
        .map(|owner| contest(owner, Extent::Part))
}

fn targets(policy: &Policy) -> Vec<Target<'_>> {
    match policy.targets() {
        Targets::Proxies(_) => Vec::new(),
        Targets::Selector(labels) => vec![Target::Workloads(labels)],
        Targets::Refs(refs) => refs.iter().map(Target::Object).collect(),
    }
}

impl Target<'_> {
    /// Whether all that this is for, `other` is for as well, and more.
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

impl fmt::Display for Target<'_> {
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
