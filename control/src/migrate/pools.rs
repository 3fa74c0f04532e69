//! The static bounds on requests in flight that a `DestinationRule` sets, for checks against policies.

use tidegate_core::config::{ConfigErrors, Node};

use super::carried::in_flight;
use super::destination_rule::{DestinationRule, KIND, is_one};

/// A static bound on the requests in flight of one proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolBound {
    /// Kind, namespace and name of the rule, and the subset and port.
    pub object: String,
    /// The namespace of the rule.
    pub namespace: String,
    /// The host, as in the rule, or with the rule's namespace.
    pub host: String,
    /// The bound, in requests in flight.
    pub in_flight: u64,
    /// The field that bounds them, and its value.
    pub field: String,
}

/// The bounds in a document; `None` if it is not a `DestinationRule`. `namespace` is the default.
///
/// # Errors
/// Everything that is wrong with the rule.
#[must_use]
pub fn pool_bounds(root: &Node, namespace: &str) -> Option<Result<Vec<PoolBound>, ConfigErrors>> {
    is_one(root).then(|| DestinationRule::read(root, namespace).map(|rule| of(&rule)))
}

fn of(rule: &DestinationRule) -> Vec<PoolBound> {
    let bound = |part: &super::destination_rule::RulePart| {
        let (limit, field) = in_flight(part.traffic.pool.as_ref()?);
        let subset = part.subset.as_ref().map(|name| format!(", subset {name}"));
        let port = part.port.map(|port| format!(", port {port}"));
        Some(PoolBound {
            object: format!(
                "{KIND} {}/{}{}{}",
                rule.namespace,
                rule.name,
                subset.unwrap_or_default(),
                port.unwrap_or_default()
            ),
            namespace: rule.namespace.clone(),
            host: rule.host.clone(),
            in_flight: limit?,
            field,
        })
    };
    rule.parts.iter().filter_map(bound).collect()
}
