//! Which policies of a namespace compete, and which one wins.

use tidegate_control::policy::{ContestExtent, contests, gather};

/// A policy in namespace `shop`. `age` is the year of its creation; 0 if that is unknown.
fn policy(name: &str, targets: &str, age: u16) -> String {
    let created = match age {
        0 => String::new(),
        year => format!(", creationTimestamp: '{year}-01-01T00:00:00Z'"),
    };
    format!(
        "---\n{{apiVersion: tidegate.dev/v1alpha1, kind: BreakerPolicy, metadata: {{name: {name}, namespace: shop{created}}}, \
         spec: {{{targets}, slo: {{latency: {{quantile: 0.99, target: 1s}}}}}}}}\n"
    )
}

/// One text for each contest: `loser < winner: target (extent)`.
fn found(policies: &[String]) -> Vec<String> {
    let text = policies.concat();
    let gathered = gather([("p.yaml", text.as_bytes())]);
    assert_eq!(gathered.problems, []);
    contests(&gathered.policies)
        .iter()
        .map(|contest| {
            let extent = match contest.extent {
                ContestExtent::Whole => "whole",
                ContestExtent::Part => "part",
            };
            format!(
                "{} < {}: {} ({extent})",
                contest.loser.name(),
                contest.winner.name(),
                contest.target
            )
        })
        .collect()
}

const GATEWAY: &str =
    "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: waypoint}]";
const NAMESPACE: &str = "targetRefs: [{kind: Namespace, name: shop}]";
const WEB: &str = "selector: {matchLabels: {app: web}}";
const WEB_V2: &str = "selector: {matchLabels: {app: web, version: v2}}";

#[test]
fn the_oldest_policy_keeps_a_shared_target() {
    let policies = [
        policy("a", GATEWAY, 0),
        policy("b", GATEWAY, 2026),
        policy("c", GATEWAY, 2024),
    ];

    assert_eq!(
        found(&policies),
        [
            "b < c: Gateway/waypoint (whole)",
            "a < c: Gateway/waypoint (whole)"
        ]
    );
}

#[test]
fn the_name_decides_among_policies_of_the_same_age() {
    let policies = [policy("b", WEB, 2024), policy("a", WEB, 2024)];

    assert_eq!(found(&policies), ["b < a: workloads with app=web (whole)"]);
}

#[test]
fn a_wider_target_loses_a_part_even_if_it_is_older() {
    let policies = [
        policy("ns", NAMESPACE, 2020),
        policy("web", WEB, 2024),
        policy("v2", WEB_V2, 2026),
    ];

    assert_eq!(
        found(&policies),
        [
            "ns < web: Namespace/shop (part)",
            "web < v2: workloads with app=web (part)"
        ]
    );
}

#[test]
fn targets_that_may_be_disjoint_are_no_contest() {
    let other = "targetRefs: [{kind: Service, name: reviews}]";
    let tier = "selector: {matchLabels: {tier: edge}}";
    let proxies = "proxies: [{id: '*'}]";
    let policies = [
        policy("a", GATEWAY, 0),
        policy("b", other, 0),
        policy("c", WEB, 0),
        policy("d", tier, 0),
        policy("e", proxies, 0),
        policy("f", proxies, 0),
    ];

    assert_eq!(found(&policies), Vec::<String>::new());
}

#[test]
fn one_of_several_targets_may_be_lost() {
    let both = "targetRefs: [{kind: Service, name: reviews}, {kind: Service, name: ratings}]";
    let one = "targetRefs: [{kind: Service, name: ratings, group: core}]";

    assert_eq!(
        found(&[policy("a", both, 2026), policy("b", one, 2024)]),
        ["a < b: Service/ratings (whole)"]
    );
}
