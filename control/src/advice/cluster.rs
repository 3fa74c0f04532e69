//! The objective that policies set for an upstream that metrics name by Envoy's cluster.
//!
//! The metrics of the filter do not say which policy a proxy has. Policies with a rule for the upstream take precedence;
//! among several, the strictest quantile and the strictest success rate count. Namespaces and targets of policies are not
//! considered.

use tidegate_advise::score::ScoreObjective;
use tidegate_core::ServiceName;
use tidegate_core::config::{RuleIndex, UpstreamName};

use crate::policy::{CheckedPolicy, Policies};

/// The objective that the policies set for the cluster; `None` if no enabled policy exists.
#[must_use]
pub fn promised_for(policies: &Policies, cluster: &str) -> Option<ScoreObjective> {
    let name = UpstreamName {
        service: ServiceName::parse(cluster).host,
        cluster,
        route: None,
    };
    let found = |policy: &CheckedPolicy| {
        let (index, found) = policy.config().policy_for(&name);
        let objective = ScoreObjective {
            quantile: found.slo().latency_quantile().as_f64(),
            success_rate: found.slo().success_rate().as_f64(),
            origin: format!("policy {}, {index}", policy.name()),
        };
        (index, objective)
    };
    let enabled = policies.iter().filter(|policy| policy.config().enabled());
    let all: Vec<(RuleIndex, ScoreObjective)> = enabled.map(|policy| found(policy)).collect();
    let has_rule = all.iter().any(|(index, _)| *index != RuleIndex::TopLevel);
    let counts = all
        .into_iter()
        .filter(|(index, _)| !has_rule || *index != RuleIndex::TopLevel)
        .map(|(_, objective)| objective);
    counts.reduce(|a, b| ScoreObjective {
        quantile: a.quantile.max(b.quantile),
        success_rate: a.success_rate.max(b.success_rate),
        origin: format!("{}; {}", a.origin, b.origin),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::gather;

    fn policies(specs: &[&str]) -> Policies {
        let head = "apiVersion: tidegate.dev/v1alpha1\nkind: BreakerPolicy\n";
        let named = |(number, spec): (usize, &&str)| {
            format!(
                "{head}metadata: {{name: p{number}}}\nspec:\n  proxies: [{{id: '*'}}]\n  {spec}\n"
            )
        };
        let text: Vec<String> = specs.iter().enumerate().map(named).collect();
        let gathered = gather([("p", text.join("---\n").as_bytes())]);
        assert_eq!(gathered.problems, []);
        gathered.policies
    }

    #[test]
    fn a_rule_goes_before_the_top_level_and_the_strictest_counts() {
        let own = "slo: {latency: {quantile: 0.9, target: 1s}}\n  upstreams: [{match: {service: cart.shop.svc.cluster.local}, slo: {latency: {quantile: 0.95}}}]";
        let strict = "slo: {latency: {quantile: 0.999, target: 1s}, successRate: 0.9}";
        let both = policies(&[own, strict]);
        let cart = promised_for(&both, "outbound|80||cart.shop.svc.cluster.local").unwrap();
        assert!((cart.quantile - 0.95).abs() < 1e-6, "{cart:?}");
        assert!(
            cart.origin.starts_with("policy p0, upstreams[0]"),
            "{cart:?}"
        );
        let other = promised_for(&both, "web").unwrap();
        assert!((other.quantile - 0.999).abs() < 1e-6, "{other:?}");
        assert!(
            other.origin.contains("p0") && other.origin.contains("; policy p1"),
            "{other:?}"
        );
        assert_eq!(promised_for(&policies(&[]), "web"), None);
    }
}
