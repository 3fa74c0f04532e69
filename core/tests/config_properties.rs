//! Whatever the bytes: no panic. Whatever the valid values: a configuration.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tidegate_core::config::{
    Config, FULL_EXAMPLE, MINIMAL_EXAMPLE, Pattern, Readable, RuleIndex, Until, UpstreamName,
    parse_duration,
};

/// Any JSON, with our keys often enough to get past the first check.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        4 => prop::sample::select(vec![
            "slo", "latency", "quantile", "target", "until", "successRate", "mode", "stance", "limit",
            "min", "max", "initial", "breaker", "tripRatio", "minOpen", "maxOpen", "shed",
            "reply", "status", "body", "maxShare", "criticality", "header", "default", "rules",
            "path", "method", "clientIdentity", "ignore", "paths", "userAgents", "upstreams",
            "match", "service", "cluster", "route", "enabled", "enforcement", "maxUpstreams",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[0-9]{1,20}(ms|s|m|h|us)".prop_map(Value::from),
        "[a-z*./]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            3 => prop::collection::vec((key.clone(), inner), 0..8)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

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
    (
        slo,
        prop::option::of(prop::sample::select(vec!["observe", "enforce"])),
        prop::option::of(prop::sample::select(vec!["failFast", "throughput"])),
        prop::option::of(0.0..=1.0),
        prop::option::of(limit),
        prop::option::of(breaker),
        prop::option::of(shed),
    )
        .prop_map(|(slo, mode, stance, enforcement, limit, breaker, shed)| {
            [
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
        })
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

/// What a pattern means, from its definition; exponential, for short texts only.
fn matches_by_definition(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((b'*', pattern_rest)), rest) => {
            matches_by_definition(pattern_rest, name)
                || rest.is_some_and(|(_, name_rest)| matches_by_definition(pattern, name_rest))
        }
        (Some(_), None) => false,
        (Some((wanted, pattern)), Some((found, name))) => {
            wanted == found && matches_by_definition(pattern, name)
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = Config::from_json(&bytes);
    }

    #[test]
    fn no_json_makes_it_panic_and_errors_stay_short(document in any_json()) {
        if let Err(errors) = Config::from_json(document.to_string().as_bytes()) {
            prop_assert!(errors.total() > 0);
            prop_assert_eq!(errors.to_string().lines().count(), errors.iter().count());
            for error in errors.iter() {
                prop_assert!(error.found().len() <= 100, "{}", error);
                let line = error.to_string();
                prop_assert!(line.bytes().all(|b| (b' '..=b'~').contains(&b)), "{}", line);
            }
        }
    }

    #[test]
    fn a_damaged_example_never_panics(
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = FULL_EXAMPLE.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = Config::from_json(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        prop_assert!(Config::from_json(&bytes).is_err());
    }

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

    #[test]
    fn durations_read_back(micros in 0_u64..10_000_000_000_000) {
        let duration = Duration::from_micros(micros);

        prop_assert_eq!(parse_duration(&Readable(duration).to_string()), Some(duration));
    }

    #[test]
    fn no_text_makes_the_duration_reader_panic(text in "[0-9.hmsu]{0,24}|\\PC{0,24}") {
        let _ = parse_duration(&text);
    }

    #[test]
    fn patterns_match_as_defined(pattern in "[ab*]{1,8}", name in "[ab]{0,10}") {
        let fast = Pattern::parse(&pattern).map(|pattern| pattern.matches(&name));

        prop_assert_eq!(fast, Some(matches_by_definition(pattern.as_bytes(), name.as_bytes())));
    }
}

#[test]
fn the_minimal_example_cut_anywhere_is_refused() {
    for end in 0..MINIMAL_EXAMPLE.len() {
        assert!(Config::from_json(&MINIMAL_EXAMPLE.as_bytes()[..end]).is_err());
    }
}
