//! Whatever the valid values: a configuration. (Whatever the bytes: `fuzz/configuration.rs`.)

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tidegate_core::config::{
    Config, KeyBy, MINIMAL_EXAMPLE, Readable, RuleIndex, Until, UpstreamName,
};

/// Members that a policy may have, each there or not.
fn any_policy() -> impl Strategy<Value = Map<String, Value>> {
    let until = prop::sample::select(Until::ALL.to_vec());
    let slo = (500_u32..=999, 1_u64..=600_000, 500_u32..=999, until).prop_map(
        |(quantile, ms, rate, until)| {
            json!({
                "latency": {
                    "quantile": f64::from(quantile) / 1e3,
                    "target": Readable(Duration::from_millis(ms)).to_string(),
                    "until": until.name(),
                },
                "successRate": f64::from(rate) / 1e3,
            })
        },
    );
    // All four are written, so that a rule contradicts nothing that it would inherit.
    let limit = ([1_u32..=100_000, 1..=100_000, 1..=100_000], 0_u32..=100_000).prop_map(
        |(mut limits, more)| {
            limits.sort_unstable();
            let max_open = limits[0].saturating_add(more).min(100_000);
            json!({"min": limits[0], "initial": limits[1], "max": limits[2], "maxOpen": max_open})
        },
    );
    let breaker = (
        any::<bool>(),
        5_u32..=100,
        50_u64..=600_000,
        0_u64..=3_000_000,
    )
        .prop_map(|(enabled, ratio, min_ms, more_ms)| {
            json!({
                "enabled": enabled,
                "tripRatio": f64::from(ratio) / 1e2,
                "minOpen": format!("{min_ms}ms"),
                "maxOpen": format!("{}ms", min_ms + more_ms),
            })
        });
    let shed = (any::<bool>(), 400_u32..=599, "\\PC{0,64}", 0.0..=1.0).prop_map(
        |(elsewhere, status, body, share)| {
            let reply = if elsewhere { "retryElsewhere" } else { "stop" };
            json!({"reply": reply, "status": status, "body": body, "maxShare": share})
        },
    );
    let numbers = |range| prop::collection::vec(range, 0..8);
    let overload = (
        numbers(400_u32..=599),
        numbers(400_u32..=599),
        numbers(1_u32..=16),
    )
        .prop_map(|(statuses, with_retry_after, grpc)| {
            json!({"statuses": statuses, "statusesWithRetryAfter": with_retry_after, "grpcStatuses": grpc})
        });
    let key_by = prop::sample::select(KeyBy::ALL.to_vec());
    let others = (prop::option::of(overload), prop::option::of(key_by));
    (
        slo,
        prop::option::of(prop::sample::select(vec!["observe", "enforce"])),
        prop::option::of(prop::sample::select(vec!["failFast", "throughput"])),
        prop::option::of(0.0..=1.0),
        prop::option::of(limit),
        prop::option::of(breaker),
        prop::option::of(shed),
        others,
    )
        .prop_map(
            |(slo, mode, stance, enforcement, limit, breaker, shed, (overload, key_by))| {
                [
                    ("overload", overload),
                    ("keyBy", key_by.map(|it| it.name().into())),
                    ("slo", Some(slo)),
                    ("mode", mode.map(Value::from)),
                    ("stance", stance.map(Value::from)),
                    ("enforcement", enforcement.map(Value::from)),
                    ("limit", limit),
                    ("breaker", breaker),
                    ("shed", shed),
                ]
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value?)))
                .collect()
            },
        )
}

fn any_valid_document() -> impl Strategy<Value = Value> {
    let conditions = (
        prop::option::of("[a-z0-9.*-]{1,12}"),
        "[ -~]{1,12}",
        prop::option::of("[ -~]{1,12}"),
    );
    (
        any_policy(),
        prop::collection::vec((conditions, any_policy()), 0..6),
    )
        .prop_map(|(mut document, rules)| {
            let rules = rules
                .into_iter()
                .enumerate()
                .map(|(n, (conditions, mut rule))| {
                    let (service, cluster, route) = conditions;
                    // The number keeps two rules from having the same match.
                    let mut upstream = json!({"cluster": format!("{n}{cluster}")});
                    if let (Some(object), Some(service)) = (upstream.as_object_mut(), service) {
                        object.insert("service".to_owned(), service.into());
                    }
                    if let (Some(object), Some(route)) = (upstream.as_object_mut(), route) {
                        object.insert("route".to_owned(), route.into());
                    }
                    rule.insert("match".to_owned(), upstream);
                    Value::Object(rule)
                });
            document.insert("upstreams".to_owned(), rules.collect());
            Value::Object(document)
        })
}

proptest! {
    #[test]
    fn every_valid_document_is_taken_and_every_upstream_has_a_policy(
        document in any_valid_document(),
        service in prop::option::of("[a-z.]{0,12}"),
        cluster in "[ -~]{0,12}",
        route in prop::option::of("[ -~]{0,12}"),
    ) {
        let config = Config::from_json(document.to_string().as_bytes());
        prop_assert!(config.is_ok(), "{}\n{}", config.unwrap_err(), document);
        let config = config.unwrap();
        let name = UpstreamName {
            service: service.as_deref(),
            cluster: &cluster,
            route: route.as_deref(),
        };

        let (index, policy) = config.policy_for(&name);

        prop_assert_eq!(config.policy(index), policy);
        let earlier = match index {
            RuleIndex::TopLevel => config.rules(),
            RuleIndex::Rule(index) => &config.rules()[..index],
        };
        prop_assert!(earlier.iter().all(|rule| !rule.upstream().matches(&name)));
        for policy in config.rules().iter().map(|rule| rule.policy()).chain([policy]) {
            let limit = policy.limit();
            prop_assert!(1 <= limit.min() && limit.min() <= limit.initial());
            prop_assert!(limit.initial() <= limit.max());
            prop_assert!(policy.breaker().min_open() <= policy.breaker().max_open());
        }
    }
}

#[test]
fn the_minimal_example_cut_anywhere_is_rejected() {
    for end in 0..MINIMAL_EXAMPLE.len() {
        assert!(Config::from_json(&MINIMAL_EXAMPLE.as_bytes()[..end]).is_err());
    }
}
