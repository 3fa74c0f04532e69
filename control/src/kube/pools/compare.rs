//! Compares a policy with the bounds that may apply to its proxies.
//!
//! Istio prefers a rule of the caller's namespace to one of the service's. So the rules of a policy's own namespace
//! count. A rule of another namespace counts only for hosts that the policy names in a rule of its own, because it is
//! unknown which other hosts its proxies call. A policy for a single Service is compared only for that host, and a policy
//! for standalone proxies not at all.
//!
//! Edge cases: a rule with a `workloadSelector` counts for the policies of its namespace that do not exclude its labels. A
//! rule for several hosts (`*.shop.svc.cluster.local`) is compared with the top level of the policy.

use std::collections::BTreeMap;

use tidegate_advise::chain::{LimitAbovePool, StaticPool};
use tidegate_core::config::RuleIndex;

use super::DeclaredRule;
use crate::advice::rule_for_host;
use crate::policy::{CheckedPolicy, PolicyTargets, TargetKind};

/// A bound that is tighter than a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolFinding {
    /// The policy's limit that is greater than the bound.
    pub below: LimitAbovePool,
    /// Kind, namespace and name of the rule, and its subset and port.
    pub object: String,
    /// The field and its value.
    pub field: String,
    /// The bound, in requests in flight.
    pub in_flight: u64,
    /// The host of the service; several hosts if it contains `*`.
    pub host: String,
    /// The place of the limit in the policy.
    pub place: RuleIndex,
}

/// The bounds that are tighter than a policy, the worst first.
#[must_use]
pub fn constrained<'a>(
    policy: &CheckedPolicy,
    rules: impl IntoIterator<Item = &'a DeclaredRule>,
) -> Vec<PoolFinding> {
    let Some(own) = policy.name().namespace() else {
        return Vec::new();
    };
    if !policy.config().enabled() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for rule in rules {
        let is_own = rule.namespace == own;
        if !rule.is_for(own) || !may_select(policy.targets(), &rule.selector, is_own) {
            continue;
        }
        let pools = rule.pools.iter();
        found.extend(
            pools
                .filter(|pool| is_target(policy.targets(), pool, own))
                .filter_map(|pool| compared(policy, pool, is_own)),
        );
    }
    found.sort();
    found.dedup();
    found
}

/// Whether a rule with this selector may apply to proxies of the policy.
fn may_select(targets: &PolicyTargets, selector: &BTreeMap<String, String>, is_own: bool) -> bool {
    match targets {
        PolicyTargets::Proxies(_) => false,
        _ if selector.is_empty() => true,
        _ if !is_own => false,
        PolicyTargets::Selector(labels) => selector
            .iter()
            .all(|(key, value)| labels.get(key).is_none_or(|label| label == value)),
        PolicyTargets::Refs(_) => true,
    }
}

fn is_target(targets: &PolicyTargets, pool: &StaticPool, own: &str) -> bool {
    let PolicyTargets::Refs(refs) = targets else {
        return true;
    };
    refs.iter().any(|target| match target.kind {
        TargetKind::Namespace | TargetKind::Gateway => true,
        TargetKind::Service => pool.is_for(&format!("{}.{own}", target.name)),
    })
}

fn compared(policy: &CheckedPolicy, pool: &StaticPool, is_own: bool) -> Option<PoolFinding> {
    let place = if pool.host.contains('*') {
        RuleIndex::TopLevel
    } else {
        rule_for_host(policy.config(), &pool.host)
    };
    if !is_own && place == RuleIndex::TopLevel {
        return None;
    }
    let limit = policy.config().policy(place).limit();
    Some(PoolFinding {
        below: pool.limit_above(limit.min(), limit.max())?,
        object: pool.origin.object.clone(),
        field: pool.field.clone(),
        in_flight: pool.in_flight,
        host: pool.host.clone(),
        place,
    })
}
