//! What a good configuration means: defaults, inheritance, first match.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints know tests by their attribute and miss the functions that tests share"
)]

use std::time::Duration;

use serde_json::Value;
use tidegate_core::Criticality;
use tidegate_core::config::schema::{FIELDS, Values};
use tidegate_core::config::{
    Config, CriticalityInputs, FULL_EXAMPLE, KeyBy, MINIMAL_EXAMPLE, Mode, OverloadConfig,
    Readable, Reply, RuleIndex, Stance, Until, UpstreamName,
};

/// A configuration of `members` behind the minimal objective.
fn config(members: &str) -> Config {
    let text = format!(r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},{members}}}"#);
    Config::from_json(text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}"))
}

const fn cluster(name: &str) -> UpstreamName<'_> {
    UpstreamName {
        service: None,
        cluster: name,
        route: None,
    }
}

#[test]
fn everything_but_the_objective_has_a_default() {
    let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
    let policy = config.default_policy();

    assert!(config.enabled());
    assert_eq!(config.max_upstreams(), 1000);
    assert_eq!(config.max_destinations(), 100);
    assert!(config.rules().is_empty());
    assert!(!config.needs_route());
    assert!((policy.slo().latency_quantile().as_f64() - 0.99).abs() < f64::EPSILON);
    assert_eq!(policy.slo().latency_target(), Duration::from_millis(300));
    assert_eq!(policy.slo().until(), Until::Headers);
    assert!((policy.slo().success_rate().as_f64() - 0.999).abs() < f64::EPSILON);
    assert_eq!(policy.mode(), Mode::Enforce);
    assert!((policy.enforcement().as_f64() - 1.0).abs() < f64::EPSILON);
    assert_eq!(policy.stance(), Stance::FailFast);
    assert_eq!(policy.key_by(), KeyBy::Auto);
    assert_eq!(policy.overload(), &OverloadConfig::default());
    assert_eq!(policy.limit().min(), 1);
    assert_eq!(policy.limit().max(), 10_000);
    assert_eq!(policy.limit().initial(), 20);
    assert_eq!(policy.limit().max_open(), None);
    assert!(policy.breaker().enabled());
    assert!((policy.breaker().trip_ratio().as_f64() - 0.5).abs() < f64::EPSILON);
    assert_eq!(policy.breaker().min_open(), Duration::from_millis(250));
    assert_eq!(policy.breaker().max_open(), Duration::from_secs(60));
    assert_eq!(policy.shed().reply(), Reply::Stop);
    assert_eq!(policy.shed().status(), 503);
    assert_eq!(policy.shed().body(), "");
    assert_eq!(policy.shed().reason_header(), None);
    assert!((policy.shed().max_share().as_f64() - 1.0).abs() < f64::EPSILON);
    assert_eq!(config.criticality().header(), None);
    assert_eq!(config.criticality().cohort_header(), None);
    assert_eq!(config.criticality().default_class(), Criticality::Critical);
    assert_eq!(config.criticality().cohort_key(), None);
    assert!(!config.ignore().needs_user_agent());
    assert!(!config.ignore().needs_path());
}

/// The default in a row of the reference, as it would be written.
fn written_default(values: &Values) -> Option<String> {
    match values {
        Values::Flag(flag) => Some(flag.default.to_string()),
        Values::Choice { default, .. } => default.map(|name| format!("\"{name}\"")),
        Values::Fraction(fraction) => fraction.default.map(|ratio| ratio.to_string()),
        Values::Count(count) => Some(count.default.to_string()),
        Values::Bound(_) => None,
        Values::Span(span) => span.default.map(|d| format!("\"{}\"", Readable(d))),
        Values::Text { default, .. } => default.map(|text| format!("\"{text}\"")),
        Values::Numbers(numbers) => Some(format!("{:?}", numbers.default)),
        Values::Texts { default, .. } => Some(format!("{default:?}")),
    }
}

#[test]
fn every_default_of_the_reference_is_what_an_absent_field_means() {
    let minimal = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
    let mut checked = 0;
    for field in FIELDS {
        let Some(default) = written_default(&field.values) else {
            continue;
        };
        let mut document: Value = serde_json::from_str(MINIMAL_EXAMPLE).unwrap();
        let mut place = &mut document;
        for key in field.path.trim_end_matches("[]").split('.') {
            place = &mut place[key];
        }
        *place = serde_json::from_str(&default).unwrap();

        let explicit = Config::from_json(document.to_string().as_bytes())
            .unwrap_or_else(|errors| panic!("{}: {errors}", field.path));

        assert_eq!(explicit, minimal, "{}", field.path);
        checked += 1;
    }
    assert!(checked >= 20, "only {checked} fields have a default");
}

#[test]
fn every_range_of_the_reference_holds_its_default_and_ends_where_it_says() {
    for field in FIELDS {
        match field.values {
            Values::Bound(range) => assert!(range.min < range.max, "{field:?}"),
            Values::Count(range) => {
                assert!(
                    (range.min..=range.max).contains(&range.default),
                    "{field:?}"
                );
            }
            Values::Fraction(range) => {
                assert!(range.min < range.max, "{field:?}");
                let default = range.default.unwrap_or(range.min);
                assert!((range.min..=range.max).contains(&default), "{field:?}");
            }
            Values::Span(range) => {
                let default = range.default.unwrap_or(range.min);
                assert!((range.min..=range.max).contains(&default), "{field:?}");
            }
            Values::Numbers(range) => {
                let is_within = |number| (range.min..=range.max).contains(number);
                assert!(range.default.iter().all(is_within), "{field:?}");
            }
            Values::Flag(_)
            | Values::Choice { .. }
            | Values::Text { .. }
            | Values::Texts { .. } => {}
        }
    }
}

/// The keys that the reader knows, found by asking it for one it cannot know.
fn known_keys(document: &str, path: &str) -> Vec<String> {
    let errors = Config::from_json(document.as_bytes()).unwrap_err();
    let lines = errors.to_string();
    let lead = format!("{path}: found an unknown key, expected one of ");
    let keys = lines.lines().find_map(|line| line.strip_prefix(&lead));
    keys.unwrap_or_else(|| panic!("{path} in {lines}"))
        .split(", ")
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_reference_names_every_key_that_the_reader_knows() {
    // A key that the reader knows but the table does not would go undocumented.
    let sections = [
        (r#"{"zzzzzz":1}"#, ""),
        (r#"{"slo":{"zzzzzz":1}}"#, "slo."),
        (r#"{"slo":{"latency":{"zzzzzz":1}}}"#, "slo.latency."),
        (r#"{"limit":{"zzzzzz":1}}"#, "limit."),
        (r#"{"breaker":{"zzzzzz":1}}"#, "breaker."),
        (r#"{"overload":{"zzzzzz":1}}"#, "overload."),
        (r#"{"shed":{"zzzzzz":1}}"#, "shed."),
        (r#"{"criticality":{"zzzzzz":1}}"#, "criticality."),
        (
            r#"{"criticality":{"rules":[{"zzzzzz":1}]}}"#,
            "criticality.rules[].",
        ),
        (r#"{"ignore":{"zzzzzz":1}}"#, "ignore."),
        (
            r#"{"upstreams":[{"match":{"zzzzzz":1}}]}"#,
            "upstreams[].match.",
        ),
    ];
    for (document, section) in sections {
        let path = format!("{section}zzzzzz").replace("[]", "[0]");
        for key in known_keys(document, &path) {
            let path = format!("{section}{key}");
            let is_documented = FIELDS.iter().any(|field| {
                field
                    .path
                    .strip_prefix(&path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            });
            assert!(is_documented, "{path}");
        }
    }
}

#[test]
fn fields_marked_per_upstream_are_those_that_a_rule_takes() {
    let document = r#"{"upstreams":[{"zzzzzz":1}]}"#;
    let mut taken = known_keys(document, "upstreams[0].zzzzzz");
    taken.retain(|key| key != "match");
    let mut documented: Vec<String> = FIELDS
        .iter()
        .filter(|field| field.is_per_upstream)
        .filter_map(|field| field.path.split('.').next())
        .map(str::to_owned)
        .collect();
    documented.dedup();

    assert_eq!(taken, documented);
}

#[test]
fn a_rule_inherits_every_field_that_it_does_not_set() {
    let config = config(
        r#""mode":"observe","limit":{"min":3,"max":30,"initial":30},"shed":{"status":429,"body":"busy","reasonHeader":"x-why"},
           "upstreams":[{"match":{"cluster":"a"},"limit":{"max":20},"slo":{"latency":{"target":"80ms"}}}]"#,
    );

    let (index, policy) = config.policy_for(&cluster("a"));

    assert_eq!(index, RuleIndex::Rule(0));
    assert_eq!(policy.slo().latency_target(), Duration::from_millis(80));
    assert_eq!(
        policy.slo().latency_quantile(),
        config.default_policy().slo().latency_quantile()
    );
    assert_eq!(policy.mode(), Mode::Observe);
    assert_eq!(policy.limit().min(), 3);
    assert_eq!(policy.limit().max(), 20);
    assert_eq!(policy.limit().initial(), 20, "moved into the rule's bounds");
    assert_eq!(policy.shed(), config.default_policy().shed());
}

#[test]
fn a_rule_inherits_each_set_of_overload_signals_that_it_does_not_set() {
    let config = config(
        r#""overload":{"statuses":[429,529],"grpcStatuses":[8.0,14]},
           "upstreams":[{"match":{"cluster":"a"},"overload":{"statuses":[]}},
                        {"match":{"cluster":"b"},"overload":{"statusesWithRetryAfter":[429,500],"statuses":[599]}}]"#,
    );
    let signals = |name| config.policy_for(&cluster(name)).1.overload();

    let top = signals("any");
    assert!(top.has_status(429) && top.has_status(529) && !top.has_status(503));
    assert!(top.has_status_with_retry_after(503) && top.has_status_with_retry_after(529));
    assert!(top.has_grpc_status(8) && top.has_grpc_status(14) && !top.has_grpc_status(4));
    let a = signals("a");
    assert!(!a.has_status(429) && !a.has_status_with_retry_after(429));
    assert!(a.has_status_with_retry_after(503) && a.has_grpc_status(14));
    let b = signals("b");
    assert!(!b.has_status(429) && b.has_status_with_retry_after(429));
    assert!(b.has_status(599) && !b.has_status_with_retry_after(503));
}

#[test]
fn the_key_of_a_state_comes_from_the_rule_then_the_top_level_then_the_name() {
    let rules = r#""upstreams":[{"match":{"cluster":"forward"},"keyBy":"authority"},
                                {"match":{"cluster":"Passthrough*"},"keyBy":"auto"},
                                {"match":{"cluster":"BlackHoleCluster"},"keyBy":"cluster"},
                                {"match":{"cluster":"web"},"mode":"observe"}]"#;
    let by = |config: &Config, name| {
        let (_, policy) = config.policy_for(&cluster(name));
        policy.key_by().resolve(name)
    };

    let plain = config(rules);
    assert_eq!(by(&plain, "forward"), KeyBy::Authority);
    assert_eq!(by(&plain, "PassthroughCluster"), KeyBy::Nothing);
    assert_eq!(by(&plain, "BlackHoleCluster"), KeyBy::Cluster);
    assert_eq!(by(&plain, "InboundPassthroughCluster"), KeyBy::Nothing);
    assert_eq!(by(&plain, "web"), KeyBy::Cluster);
    for key_by in [KeyBy::Cluster, KeyBy::Authority, KeyBy::Nothing] {
        let config = config(&format!(r#""keyBy":"{key_by}",{rules}"#));
        assert_eq!(by(&config, "forward"), KeyBy::Authority);
        assert_eq!(by(&config, "PassthroughCluster"), KeyBy::Nothing);
        assert_eq!(by(&config, "InboundPassthroughCluster"), key_by);
        assert_eq!(by(&config, "web"), key_by);
    }
}

#[test]
fn every_moment_may_be_measured_and_a_rule_inherits_it() {
    for until in Until::ALL {
        let text = format!(
            r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms","until":"{until}"}}}},
                "upstreams":[{{"match":{{"cluster":"a"}},"slo":{{"latency":{{"target":"80ms"}}}}}},
                             {{"match":{{"cluster":"b"}},"slo":{{"latency":{{"until":"end"}}}}}}]}}"#
        );
        let config = Config::from_json(text.as_bytes()).unwrap();
        let until_of = |name| config.policy_for(&cluster(name)).1.slo().until();

        assert_eq!(config.default_policy().slo().until(), until);
        assert_eq!(until_of("a"), until);
        assert_eq!(until_of("b"), Until::End);
    }
}

#[test]
fn the_bound_on_open_requests_starts_at_the_least_limit_and_a_rule_inherits_it() {
    for (limit, expected) in [
        (r#"{"maxOpen":1}"#, 1),
        (r#"{"maxOpen":100000}"#, 100_000),
        (r#"{"min":7,"maxOpen":7.0}"#, 7),
        // Fewer than the limit may reach: the limit alone does not bound what is open.
        (r#"{"initial":50,"max":60,"maxOpen":40}"#, 40),
    ] {
        let config = config(&format!(
            r#""limit":{limit},"upstreams":[{{"match":{{"cluster":"a"}},"limit":{{"max":30,"initial":30}}}},
                                            {{"match":{{"cluster":"b"}},"limit":{{"maxOpen":99}}}}]"#
        ));
        let bound_of = |name| config.policy_for(&cluster(name)).1.limit().max_open();

        assert_eq!(config.default_policy().limit().max_open(), Some(expected));
        assert_eq!(bound_of("a"), Some(expected), "{limit}");
        assert_eq!(bound_of("b"), Some(99), "{limit}");
    }
}

#[test]
fn an_initial_limit_that_is_not_written_follows_the_bounds() {
    assert_eq!(
        config(r#""limit":{"max":10}"#)
            .default_policy()
            .limit()
            .initial(),
        10
    );
    assert_eq!(
        config(r#""limit":{"min":50}"#)
            .default_policy()
            .limit()
            .initial(),
        50
    );
}

#[test]
fn the_first_matching_rule_wins() {
    let config = config(
        r#""upstreams":[
            {"match":{"service":"payments.*","route":"vip-*"}},
            {"match":{"service":"payments.*"}},
            {"match":{"cluster":"outbound|80||*"}}]"#,
    );
    let name = |service, route| UpstreamName {
        service,
        cluster: "outbound|80||x",
        route,
    };
    let payments = Some("payments.shop.svc.cluster.local");

    for (upstream, index) in [
        (name(payments, Some("vip-1")), RuleIndex::Rule(0)),
        (name(payments, Some("other")), RuleIndex::Rule(1)),
        (name(payments, None), RuleIndex::Rule(1)),
        (
            name(Some("web.shop.svc.cluster.local"), None),
            RuleIndex::Rule(2),
        ),
        (name(None, Some("vip-1")), RuleIndex::Rule(2)),
        (cluster("web"), RuleIndex::TopLevel),
        (cluster(""), RuleIndex::TopLevel),
    ] {
        let (found, policy) = config.policy_for(&upstream);
        assert_eq!(found, index, "{upstream:?}");
        assert_eq!(config.policy(found), policy);
    }
    assert!(config.needs_route());
}

#[test]
fn a_place_that_is_gone_gives_the_top_level() {
    let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();

    assert_eq!(config.policy(RuleIndex::Rule(7)), config.default_policy());
}

#[test]
fn integers_may_come_as_doubles() {
    // A protobuf Struct knows no other numbers.
    let doubles = config(r#""limit":{"min":2.0,"max":3e2},"shed":{"status":503.0}"#);

    assert_eq!(
        doubles,
        config(r#""limit":{"min":2,"max":300},"shed":{"status":503}"#)
    );
}

#[test]
fn criticality_comes_from_the_header_then_the_rules_then_the_default() {
    let config = config(
        r#""criticality":{"header":"x-criticality","default":"sheddable_plus","rules":[
            {"path":"/pay/*","method":"POST","criticality":"critical_plus"},
            {"clientIdentity":"spiffe://*/sa/batch","criticality":"sheddable"}]}"#,
    );
    let criticality = config.criticality();
    let pay = CriticalityInputs {
        path: Some("/pay/now?really=yes"),
        method: Some("POST"),
        client_identity: Some("spiffe://cluster.local/ns/shop/sa/batch"),
    };
    let get = CriticalityInputs {
        method: Some("GET"),
        ..pay
    };
    let needs = criticality.needs();

    assert!(needs.path && needs.method && needs.client_identity);
    assert_eq!(
        criticality.classify(Some("critical"), &pay),
        Criticality::Critical
    );
    assert_eq!(
        criticality.classify(Some("vital"), &pay),
        Criticality::CriticalPlus
    );
    assert_eq!(criticality.classify(None, &pay), Criticality::CriticalPlus);
    assert_eq!(criticality.classify(None, &get), Criticality::Sheddable);
    assert_eq!(
        criticality.classify(None, &CriticalityInputs::default()),
        Criticality::SheddablePlus
    );
}

#[test]
fn a_header_counts_only_where_it_is_configured() {
    let config = config(r#""criticality":{"default":"sheddable"}"#);
    let none = CriticalityInputs::default();

    assert_eq!(
        config.criticality().classify(Some("critical_plus"), &none),
        Criticality::Sheddable
    );
    assert_eq!(
        config.criticality().needs(),
        tidegate_core::config::CriticalityNeeds::default()
    );
}

#[test]
fn health_checks_are_recognized_by_agent_or_path() {
    let defaults = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
    let own = config(
        r#""ignore":{"paths":["/healthz","/grpc.health.v1.Health/*"],"userAgents":["Envoy/HC"]}"#,
    );

    // Any caller can send it.
    assert!(!defaults.ignore().matches(None, Some("kube-probe/1.30")));
    assert!(!defaults.ignore().needs_user_agent());
    assert!(own.ignore().matches(None, Some("Envoy/HC")));
    assert!(!own.ignore().matches(Some("/health"), Some("curl/8")));
    assert!(own.ignore().matches(Some("/healthz?full"), None));
    assert!(
        own.ignore()
            .matches(Some("/grpc.health.v1.Health/Check"), None)
    );
    assert!(
        !own.ignore()
            .matches(Some("/healthzz"), Some("kube-probe/1.30"))
    );
}

#[test]
fn the_examples_of_the_reference_are_configurations() {
    for example in [MINIMAL_EXAMPLE, FULL_EXAMPLE] {
        if let Err(errors) = Config::from_json(example.as_bytes()) {
            panic!("{errors}\n{example}");
        }
    }
}
