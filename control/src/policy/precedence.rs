//! Which of several policies wins a proxy.
//!
//! The most specific policy wins; among equally specific ones the oldest, because a
//! new policy should not displace one in force; among equally old ones the name
//! decides, so that every replica of the service decides the same. A policy of
//! unknown age counts as the youngest.

use std::cmp::Reverse;

use super::{CheckedPolicy, PolicyName, PolicyTargets, ProxyMatch, ProxyNode, Specificity};

/// A policy's claim to a proxy that it matches; the winner sorts first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyClaim {
    specificity: Reverse<Specificity>,
    has_no_age: bool,
    created: Option<jiff::Timestamp>,
    policy: PolicyName,
}

impl PolicyClaim {
    /// The claim of `policy` to `proxy`; `None` if it does not match.
    #[must_use]
    pub fn of(policy: &CheckedPolicy, proxy: &ProxyNode) -> Option<Self> {
        let PolicyTargets::Proxies(matches) = policy.targets() else {
            return None;
        };
        let specificity = matches
            .iter()
            .filter(|entry| entry.matches(proxy))
            .map(ProxyMatch::specificity)
            .max()?;
        Some(Self {
            specificity: Reverse(specificity),
            has_no_age: policy.created().is_none(),
            created: policy.created(),
            policy: policy.name().clone(),
        })
    }

    /// The policy with this claim.
    #[must_use]
    pub const fn policy(&self) -> &PolicyName {
        &self.policy
    }

    /// How closely the policy matches the proxy.
    #[must_use]
    pub const fn specificity(&self) -> Specificity {
        self.specificity.0
    }
}
