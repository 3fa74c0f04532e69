//! Which of several policies wins a proxy.
//!
//! The most specific; among equals the oldest, because what is in force should
//! not be taken over by what comes later; among those, by name, so that every
//! replica of the service decides alike. A policy whose age is unknown counts
//! as the youngest.

use std::cmp::Reverse;

use super::{Policy, PolicyName, ProxyMatch, Specificity, Targets};
use crate::render::Proxy;

/// A policy's claim to a proxy that it matches. Sorted, the winner comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    specificity: Reverse<Specificity>,
    has_no_age: bool,
    created: Option<jiff::Timestamp>,
    policy: PolicyName,
}

impl Claim {
    /// The claim of `policy` to `proxy`; `None` if it does not match.
    #[must_use]
    pub fn of(policy: &Policy, proxy: &Proxy) -> Option<Self> {
        let Targets::Proxies(matches) = policy.targets() else {
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

    /// Whose claim it is.
    #[must_use]
    pub const fn policy(&self) -> &PolicyName {
        &self.policy
    }

    /// How closely the policy fits the proxy.
    #[must_use]
    pub const fn specificity(&self) -> Specificity {
        self.specificity.0
    }
}
