//! What policies set for an upstream of the graph.
//!
//! Policies apply to proxies, but the graph knows workloads. So a policy counts for an upstream if it may apply to a
//! caller: it is in a caller's namespace; if it targets a gateway, it may also be in the upstream's; if it targets a
//! service, that service is the upstream. Policies for standalone proxies, and policies without a namespace, always count.
//!
//! Edge cases: the graph knows neither ports nor routes. So a rule with a condition for a cluster or a route counts only
//! for upstreams that the metrics name by their cluster.

use std::collections::BTreeMap;

use tidegate_advise::chain::{PolicyTerms, SettingOrigin};
use tidegate_advise::recommend::{
    AdviceDocument, AdviceTerms, ObjectiveInForce, ReachVerdict, UpstreamAdvice, advice_document,
    recommend,
};
use tidegate_advise::{ObservedUpstream, RuleTarget};
use tidegate_core::config::{Config, RuleIndex, UpstreamName};
use tidegate_graph::output::plain;
use tidegate_graph::{BuiltGraph, ObservationWindow};

use super::settings::MeshSettings;
use crate::policy::{CheckedPolicy, KIND, Policies, PolicyTargets, TargetKind};

/// The usual domain after `service.namespace` in the host of a service. Rules may name the whole host.
const USUAL_DOMAIN: &str = "svc.cluster.local";

/// The terms of all policies that count for an upstream, by name of the policy.
#[must_use]
pub fn policies_for(settings: &MeshSettings, upstream: &ObservedUpstream<'_>) -> Vec<PolicyTerms> {
    let Ok(target) = &upstream.target else {
        return Vec::new();
    };
    let policies = settings.policies.iter();
    policies
        .filter(|policy| policy.config().enabled() && may_apply(policy, upstream, target))
        .map(|policy| {
            let index = rule(policy.config(), target);
            let found = policy.config().policy(index);
            let slo = found.slo();
            let place = settings.places.get(policy.name());
            PolicyTerms {
                origin: SettingOrigin {
                    object: format!("{KIND} {}", policy.name()),
                    place: place.cloned().unwrap_or_default(),
                },
                objective: ObjectiveInForce {
                    policy: format!("{}, {index}", policy.name()),
                    quantile: slo.latency_quantile().as_f64(),
                    target: slo.latency_target(),
                    success_rate: slo.success_rate().as_f64(),
                },
                min_limit: found.limit().min(),
                max_limit: found.limit().max(),
            }
        })
        .collect()
}

/// The recommendations, compared with the policies in `settings`.
#[must_use]
pub fn compared(
    advice: &[UpstreamAdvice<'_>],
    observed: ObservationWindow,
    settings: &MeshSettings,
) -> AdviceDocument {
    advice_document(advice, observed, |upstream| {
        let found = policies_for(settings, upstream).into_iter();
        found.map(|policy| policy.objective).collect()
    })
}

/// The recommendations with default terms, compared with these policies.
#[must_use]
pub fn advised(built: &BuiltGraph, policies: Policies) -> AdviceDocument {
    let settings = MeshSettings {
        policies,
        ..MeshSettings::default()
    };
    let advice = recommend(built, &AdviceTerms::default());
    compared(&advice, built.observed, &settings)
}

/// The upstreams for which a policy's objective is out of reach, by name of the policy; safe to print.
#[must_use]
pub fn out_of_reach(document: &AdviceDocument) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in &document.upstreams {
        for objective in &entry.in_force {
            // The name contains no comma; the place in the policy follows it.
            let policy = objective.policy.split(',').next().unwrap_or_default();
            if objective.verdicts.iter().any(ReachVerdict::is_out_of_reach) {
                found
                    .entry(policy.to_owned())
                    .or_default()
                    .push(plain(&entry.upstream));
            }
        }
    }
    found
}

/// The rule for an upstream. The name of a service is its whole host; a host outside Kubernetes stays unchanged.
fn rule(config: &Config, target: &RuleTarget) -> RuleIndex {
    let index = |service: Option<&str>, cluster: &str| {
        let name = UpstreamName {
            service,
            cluster,
            route: None,
        };
        config.policy_for(&name).0
    };
    match target {
        RuleTarget::Cluster(cluster) => index(Some(cluster), cluster),
        RuleTarget::Service(host) => rule_for_host(config, host),
    }
}

/// The rule for a service, named as `service.namespace` or as a host outside of Kubernetes.
pub(crate) fn rule_for_host(config: &Config, host: &str) -> RuleIndex {
    let index = |service: &str| {
        let name = UpstreamName {
            service: Some(service),
            cluster: "",
            route: None,
        };
        config.policy_for(&name).0
    };
    let found = [index(host), index(&format!("{host}.{USUAL_DOMAIN}"))];
    let rules = found
        .into_iter()
        .filter(|index| *index != RuleIndex::TopLevel);
    rules.min().unwrap_or_default()
}

fn may_apply(policy: &CheckedPolicy, upstream: &ObservedUpstream<'_>, target: &RuleTarget) -> bool {
    let Some(own) = policy.name().namespace() else {
        return true;
    };
    let (service, namespace) = match target {
        RuleTarget::Service(host) => host.split_once('.').unwrap_or((host, "")),
        RuleTarget::Cluster(_) => ("", ""),
    };
    let is_callers = upstream
        .calls
        .iter()
        .any(|call| call.caller.namespace == own || call.caller.namespace.is_empty());
    match policy.targets() {
        PolicyTargets::Proxies(_) => true,
        PolicyTargets::Selector(_) => is_callers,
        PolicyTargets::Refs(refs) => refs.iter().any(|target| match target.kind {
            TargetKind::Namespace => is_callers,
            TargetKind::Gateway => is_callers || namespace == own,
            TargetKind::Service => namespace == own && target.name == service,
        }),
    }
}
