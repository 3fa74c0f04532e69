//! Static pools of Istio and policies: which pools are compared, and what the status says.

use std::sync::Arc;

use kube::core::DynamicObject;
use serde_json::{Value, json};
use tidegate_control::kube::pools::{DeclaredRule, constrained};
use tidegate_control::kube::view::{PoolComparison, PoolFindings};
use tidegate_control::policy::CheckedPolicy;

use crate::cluster::{BOTH, GATEWAY, PROXIES, PlannedCluster, WEB, policy};

const SERVICE: &str = r#"{"targetRefs":[{"kind":"Service","name":"cart"}]}"#;

fn object(namespace: &str, spec: &Value) -> DynamicObject {
    serde_json::from_value(
        json!({"metadata": {"name": "pools", "namespace": namespace}, "spec": spec}),
    )
    .unwrap()
}

/// A rule with a pool of `connections` connections.
fn rule(namespace: &str, host: &str, connections: u32, more: &Value) -> DeclaredRule {
    let pool = json!({"connectionPool": {"tcp": {"maxConnections": connections}}});
    let mut spec = json!({"host": host, "trafficPolicy": pool});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    DeclaredRule::of(&object(namespace, &spec)).unwrap()
}

/// The policy `shop/web` with these targets. It sets `limit.min` to 10 and `limit.max` to 200, and to 1,000 for `pay.bank`.
fn checked(targets: &str) -> Arc<CheckedPolicy> {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(with_limits("web", targets));
    let seen = cluster.view.policies.values().next().unwrap();
    Arc::clone(seen.valid.as_ref().unwrap())
}

fn with_limits(name: &str, targets: &str) -> Value {
    let mut policy = policy(name, targets);
    policy["spec"]["limit"] = json!({"min": 10, "max": 200});
    policy["spec"]["upstreams"] = json!([
        {"match": {"service": "pay.bank.svc.cluster.local"}, "limit": {"max": 1_000}},
    ]);
    policy
}

/// The findings as texts.
fn found(targets: &str, rule: &DeclaredRule) -> Vec<String> {
    let found = constrained(&checked(targets), [rule]);
    found
        .iter()
        .map(|one| format!("{} {} {}", one.host, one.place, one.below))
        .collect()
}

#[test]
fn a_pool_below_the_least_or_the_greatest_limit_is_found() {
    for (connections, expected) in [
        (9, &["cart.shop top level limit.min 10 of a proxy"][..]),
        (10, &["cart.shop top level limit.max 200 per endpoint"]),
        (199, &["cart.shop top level limit.max 200 per endpoint"]),
        (200, &[]),
    ] {
        let rule = rule("shop", "cart", connections, &Value::Null);
        assert_eq!(found(WEB, &rule), expected, "{connections}");
    }
}

#[test]
fn rules_of_other_namespaces_count_for_hosts_that_the_policy_names() {
    let pay = "pay.bank.svc.cluster.local";
    let of_bank = |more| rule("bank", pay, 500, &more);
    assert_eq!(
        found(WEB, &of_bank(Value::Null)),
        ["pay.bank upstreams[0] limit.max 1000 per endpoint"]
    );
    assert!(found(WEB, &rule("bank", "cash", 5, &Value::Null)).is_empty());
    assert!(found(WEB, &of_bank(json!({"exportTo": ["."]}))).is_empty());
    assert_eq!(found(WEB, &of_bank(json!({"exportTo": ["shop"]}))).len(), 1);
    let of_some = json!({"workloadSelector": {"matchLabels": {"app": "web"}}});
    assert!(found(WEB, &of_bank(of_some)).is_empty());
}

#[test]
fn targets_and_selectors_narrow_what_counts() {
    let cart = rule("shop", "cart", 5, &Value::Null);
    let other = rule("shop", "other", 5, &Value::Null);
    let all = rule("shop", "*.shop.svc.cluster.local", 5, &Value::Null);
    for (targets, rule, expected) in [
        (GATEWAY, &other, 1),
        (PROXIES, &cart, 0),
        (SERVICE, &cart, 1),
        (SERVICE, &other, 0),
        (WEB, &all, 1),
    ] {
        assert_eq!(found(targets, rule).len(), expected, "{targets}");
    }
    let for_app = |app: &str| {
        let labels = json!({"workloadSelector": {"matchLabels": {"app": app}}});
        rule("shop", "cart", 5, &labels)
    };
    assert_eq!(found(WEB, &for_app("web")).len(), 1);
    assert!(found(WEB, &for_app("batch")).is_empty());
}

#[test]
fn rules_without_a_pool_and_invalid_ones_are_no_rules() {
    for spec in [
        json!({"host": "cart"}),
        json!({"host": "cart", "trafficPolicy": {"connectionPool": {"tcp": {"maxConnections": -1}}}}),
        json!({"host": "a b", "trafficPolicy": {"connectionPool": {"tcp": {"maxConnections": 1}}}}),
    ] {
        assert_eq!(DeclaredRule::of(&object("shop", &spec)), None, "{spec}");
    }
}

#[test]
fn a_disabled_policy_is_not_constrained() {
    let mut cluster = PlannedCluster::new(BOTH);
    let mut disabled = with_limits("web", WEB);
    disabled["spec"]["enabled"] = json!(false);
    cluster.put(disabled);
    let seen = cluster.view.policies.values().next().unwrap();
    let rule = rule("shop", "cart", 5, &Value::Null);
    assert!(constrained(seen.valid.as_ref().unwrap(), [&rule]).is_empty());
}

#[test]
fn the_condition_says_what_is_known_and_stays_while_nothing_is() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(with_limits("web", WEB));
    cluster.settle();
    assert_eq!(cluster.status("web").conditions.len(), 3);
    let known = |cluster: &PlannedCluster, connections: &[u32]| {
        let seen = cluster.view.policies.values().next().unwrap();
        let policy = Arc::clone(seen.valid.as_ref().unwrap());
        let hosts = ["a", "b", "c", "d", "e"].iter().zip(connections);
        let rules: Vec<DeclaredRule> = hosts
            .map(|(host, connections)| rule("shop", host, *connections, &Value::Null))
            .collect();
        let found = constrained(&policy, &rules);
        let comparison = PoolComparison {
            policy: Arc::clone(&policy),
            found,
        };
        PoolFindings::Known(Arc::new([(policy.name().clone(), comparison)].into()))
    };
    for (connections, writes, expected) in [
        (&[][..], 1, "False NotConstrained"),
        (&[300], 0, "False NotConstrained"),
        (&[50], 1, "True PoolBelowMaximum"),
        (&[50, 5, 60, 70, 80], 1, "True PoolBelowMinimum"),
    ] {
        cluster.view.pools = known(&cluster, connections);
        assert_eq!(cluster.settle(), (0, writes), "{connections:?}");
        assert_eq!(cluster.condition("web", "Constrained"), expected);
    }
    assert_eq!(
        cluster.message("web", "Constrained"),
        "DestinationRule shop/pools: tcp.maxConnections: 5 (one request each in HTTP/1.1) bounds a proxy to 5 requests in flight to b.shop, below limit.min 10 of a proxy; \
         DestinationRule shop/pools: tcp.maxConnections: 50 (one request each in HTTP/1.1) bounds a proxy to 50 requests in flight to a.shop, below limit.max 200 per endpoint; \
         DestinationRule shop/pools: tcp.maxConnections: 60 (one request each in HTTP/1.1) bounds a proxy to 60 requests in flight to c.shop, below limit.max 200 per endpoint; and 2 more"
    );

    // The service does not know the pools yet after a restart.
    cluster.view.pools = PoolFindings::Unknown;
    assert_eq!(cluster.settle(), (0, 0));
    assert_eq!(
        cluster.condition("web", "Constrained"),
        "True PoolBelowMinimum"
    );
    // The policy has changed since the comparison.
    cluster.view.pools = known(&cluster, &[50]);
    let mut changed = with_limits("web", WEB);
    changed["spec"]["limit"]["max"] = json!(40);
    cluster.put(changed);
    cluster.settle();
    assert_eq!(
        cluster.condition("web", "Constrained"),
        "True PoolBelowMinimum"
    );
    cluster.view.pools = known(&cluster, &[50]);
    cluster.settle();
    assert_eq!(
        cluster.condition("web", "Constrained"),
        "False NotConstrained"
    );
    // Istio's definitions were removed.
    cluster.view.pools = PoolFindings::Off;
    cluster.settle();
    assert_eq!(cluster.status("web").conditions.len(), 3);
}
