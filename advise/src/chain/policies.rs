//! Policies that conflict with the observations, a static pool, a timeout or another policy.

use tidegate_core::config::Readable;
use tidegate_graph::ObservationWindow;

use super::finding::{ChainFinding, FindingCode, FindingSeverity};
use super::settings::{LimitAbovePool, PolicyOverlap, PolicyTerms, RouteTerms, StaticPool};
use crate::observed::{ObservedUpstream, RuleTarget};
use crate::recommend::{ReachVerdict, reach};

/// The conflicts of the policies for one upstream.
pub(super) fn of_upstream(
    upstream: &ObservedUpstream<'_>,
    observed: ObservationWindow,
    policies: &[PolicyTerms],
    (routes, pools): (&[RouteTerms], &[StaticPool]),
) -> Vec<ChainFinding> {
    let mut findings = Vec::new();
    for policy in policies {
        for verdict in reach(upstream, observed, &policy.objective) {
            findings.push(missed(upstream, policy, &verdict));
        }
        let Ok(RuleTarget::Service(host)) = &upstream.target else {
            continue;
        };
        for pool in pools.iter().filter(|pool| pool.is_for(host)) {
            findings.extend(below(host, policy, pool));
        }
        for route in routes.iter().filter(|route| route.host == *host) {
            findings.extend(beyond(host, policy, route));
        }
    }
    findings
}

/// Policies that compete for a target.
pub(super) fn overlaps(overlaps: &[PolicyOverlap]) -> Vec<ChainFinding> {
    overlaps
        .iter()
        .map(|overlap| {
            let (severity, effect) = if overlap.is_whole {
                (FindingSeverity::Warning, "it has no effect there")
            } else {
                (
                    FindingSeverity::Info,
                    "some of the workloads there get both",
                )
            };
            ChainFinding::new(
                severity,
                FindingCode::PoliciesOverlap,
                format!("BreakerPolicy {}", overlap.loser),
                None,
                format!(
                    "{} takes precedence for {}: {effect}",
                    overlap.winner, overlap.target
                ),
            )
        })
        .collect()
}

fn missed(
    upstream: &ObservedUpstream<'_>,
    policy: &PolicyTerms,
    verdict: &ReachVerdict,
) -> ChainFinding {
    let (severity, code) = match verdict {
        ReachVerdict::OutOfReach { .. } => {
            (FindingSeverity::Error, FindingCode::ObjectiveOutOfReach)
        }
        ReachVerdict::LatencyMissed { .. } | ReachVerdict::SuccessMissed { .. } => {
            (FindingSeverity::Warning, FindingCode::ObjectiveMissed)
        }
    };
    let objective = &policy.objective;
    finding(
        severity,
        code,
        policy,
        format!(
            "{} within {} and success {} for {}, but {verdict}",
            objective.quantile,
            Readable(objective.target),
            objective.success_rate,
            upstream.name
        ),
    )
}

fn below(host: &str, policy: &PolicyTerms, pool: &StaticPool) -> Option<ChainFinding> {
    let bound = pool.limit_above(policy.min_limit, policy.max_limit)?;
    let severity = match bound {
        LimitAbovePool::Min(_) => FindingSeverity::Error,
        LimitAbovePool::Max(_) => FindingSeverity::Warning,
    };
    Some(ChainFinding::new(
        severity,
        FindingCode::PoolBelowPolicy,
        pool.origin.object.clone(),
        Some(pool.origin.place.clone()),
        format!(
            "{} bounds a proxy to {} requests in flight to {host}, below {bound} of policy {}",
            pool.field, pool.in_flight, policy.objective.policy
        ),
    ))
}

fn beyond(host: &str, policy: &PolicyTerms, route: &RouteTerms) -> Option<ChainFinding> {
    let timeout = route.timeout?;
    let target = policy.objective.target;
    (target >= timeout).then(|| {
        finding(
            FindingSeverity::Warning,
            FindingCode::ObjectiveBeyondTimeout,
            policy,
            format!(
                "the target of {} for {host} is not below the timeout of {} ({}): no answer can be late",
                Readable(target),
                Readable(timeout),
                route.origin.object
            ),
        )
    })
}

fn finding(
    severity: FindingSeverity,
    code: FindingCode,
    policy: &PolicyTerms,
    message: String,
) -> ChainFinding {
    ChainFinding::new(
        severity,
        code,
        policy.origin.object.clone(),
        Some(policy.origin.place.clone()),
        message,
    )
}
