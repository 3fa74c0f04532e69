//! Recommendations from recordings: what is advised, what is refused, and that the filter accepts it.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]
#![expect(clippy::float_cmp, reason = "the exact number is expected")]

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::{CALL, Call, built, of, recording};
use proptest::prelude::*;
use tidegate_advise::RuleTarget;
use tidegate_advise::recommend::{
    AdviceRefusal, AdviceTerms, Entries, ObjectiveInForce, ReachVerdict, UpstreamAdvice,
    advice_document, plugin_configuration, reach, recommend, upstreams_beyond_rules,
};
use tidegate_core::Criticality;
use tidegate_core::config::{Config, Mode, UpstreamName};

const SIDECAR: &str = include_str!("../../graph/tests/recordings/istio-sidecar.json");
const AMBIENT: &str = include_str!("../../graph/tests/recordings/istio-ambient.json");

fn find<'a, 'b>(advice: &'b [UpstreamAdvice<'a>], name: &str) -> &'b UpstreamAdvice<'a> {
    advice
        .iter()
        .find(|found| found.upstream.name == name)
        .unwrap()
}

fn refusal(advice: &[UpstreamAdvice<'_>], name: &str) -> AdviceRefusal {
    find(advice, name).objective.clone().unwrap_err()
}

#[test]
fn an_objective_is_the_quantile_with_a_margin_and_says_why() {
    let built = built(SIDECAR);
    let advice = recommend(&built, &AdviceTerms::default());

    let reviews = find(&advice, "bookinfo/reviews");
    let found = reviews.objective.as_ref().unwrap();

    assert_eq!(
        reviews.upstream.target,
        Ok(RuleTarget::Service("reviews.bookinfo".to_owned()))
    );
    assert_eq!(found.quantile, 0.99);
    assert_eq!(found.target, Duration::from_millis(90), "60 ms x 1.5");
    assert_eq!(found.bounds.lowest_target, Duration::from_millis(60));
    assert_eq!(found.bounds.highest_target, Duration::from_millis(180));
    let evidence = &found.evidence;
    assert_eq!(evidence.samples, 36_000.0);
    assert_eq!(evidence.slowest_caller, "bookinfo/productpage-v1");
    assert_eq!(evidence.latency_interval.low_seconds, Some(0.045));
    assert_eq!(evidence.latency_interval.high_seconds, None);
    assert!(
        (0.01..0.0112).contains(&evidence.missed_at_most),
        "1 % and the doubt: {}",
        evidence.missed_at_most
    );
    // No failure in 36,000: at most 1.07 in 10,000 with 95 %, times 1.5, rounded up.
    assert_eq!(found.success_rate, 0.9998);
}

#[test]
fn data_that_do_not_suffice_are_refused_with_the_reason() {
    let sidecar = built(SIDECAR);
    let advice = recommend(&sidecar, &AdviceTerms::default());

    assert_eq!(
        refusal(&advice, "bookinfo/details-v0"),
        AdviceRefusal::Ended
    );
    assert_eq!(
        refusal(&advice, "PassthroughCluster"),
        AdviceRefusal::NotNamed
    );
    assert_eq!(
        refusal(&advice, "bookinfo/ratings"),
        AdviceRefusal::MostlyFailing { success: 0.0 }
    );
    let ambient = built(AMBIENT);
    let advice = recommend(&ambient, &AdviceTerms::default());
    assert_eq!(
        refusal(&advice, "bookinfo/reviews-v1"),
        AdviceRefusal::QuantilesContradict {
            quantile: 0.99,
            seconds: 0.025,
            lower_seconds: 0.045
        },
        "a native and a classic histogram"
    );
    let few = of(&[Call {
        requests: 99,
        failures: 0,
        ..CALL
    }]);
    assert_eq!(
        refusal(&recommend(&few, &AdviceTerms::default()), "shop/cart"),
        AdviceRefusal::TooFewSamples { found: 99.0 }
    );
}

#[test]
fn what_the_recording_lacks_is_a_reason() {
    let without = |measure: &str| {
        let text = recording(&[CALL], "");
        built(&text.replace(
            &format!(r#""measure":{measure}"#),
            r#""measure":"in_flight""#,
        ))
    };
    let all = AdviceTerms::default();

    let no_failures = without(r#""failures""#);
    assert_eq!(
        refusal(&recommend(&no_failures, &all), "shop/cart"),
        AdviceRefusal::SuccessUnknown
    );
    let no_requests = without(r#""requests""#);
    assert_eq!(
        refusal(&recommend(&no_requests, &all), "shop/cart"),
        AdviceRefusal::SamplesUnknown
    );
    let gaps =
        built(&recording(&[CALL], "").replace(r#"[1700000000,"12"]"#, r#"[1700000000,"5"]"#));
    assert_eq!(
        refusal(&recommend(&gaps, &all), "shop/cart"),
        AdviceRefusal::MostlyGaps {
            found: 5,
            points: 12
        }
    );
    let no_latency = built(
        &recording(&[CALL], "")
            .replace("classic", "native")
            .replace(r#"{"p50":"native"}"#, r#""in_flight""#)
            .replace(r#"{"p95":"native"}"#, r#""in_flight""#)
            .replace(r#"{"p99":"native"}"#, r#""in_flight""#),
    );
    assert_eq!(
        refusal(&recommend(&no_latency, &all), "shop/cart"),
        AdviceRefusal::NoLatency
    );
}

#[test]
fn the_quantile_is_the_highest_that_the_samples_support() {
    for (requests, quantile) in [(150, 0.5), (200, 0.95), (999, 0.95), (1_000, 0.99)] {
        let built = of(&[Call {
            requests,
            failures: 0,
            ..CALL
        }]);
        let advice = recommend(&built, &AdviceTerms::default());
        let found = advice[0].objective.as_ref().unwrap();
        assert_eq!(found.quantile, quantile, "{requests}");
    }
}

#[test]
fn the_slowest_caller_sets_the_target_and_failures_are_added() {
    let slow = Call {
        caller: "batch",
        requests: 4_000,
        failures: 364,
        p99: 200.0,
        ..CALL
    };
    let few_and_slower = Call {
        caller: "rare",
        requests: 150,
        failures: 0,
        p99: 900.0,
        ..CALL
    };
    let built = of(&[CALL, slow, few_and_slower]);
    let advice = recommend(&built, &AdviceTerms::default());

    let found = advice[0].objective.as_ref().unwrap();

    assert_eq!(found.target, Duration::from_millis(300), "200 ms x 1.5");
    assert_eq!(found.evidence.slowest_caller, "shop/batch");
    assert_eq!(found.evidence.calls, 3);
    assert_eq!(found.evidence.all_samples, 40_150.0);
    assert!((found.evidence.success - (1.0 - 400.0 / 40_150.0)).abs() < 1e-12);
}

#[test]
fn callers_off_the_path_of_an_entry_are_sheddable() {
    let edge = |caller, upstream| Call {
        caller,
        upstream,
        ..CALL
    };
    let built = of(&[
        edge("ingress-gateway", "web"),
        edge("web", "cart"),
        edge("nightly", "cart"),
    ]);
    let criticality = |entries| {
        let terms = AdviceTerms {
            entries,
            ..AdviceTerms::default()
        };
        let advice = recommend(&built, &terms);
        let callers = find(&advice, "shop/cart").callers.iter();
        callers
            .map(|found| (found.caller.name.clone(), found.criticality))
            .collect::<Vec<_>>()
    };

    let by_name = criticality(Entries::Guessed);
    let named = criticality(Entries::Named(BTreeSet::from(["shop/nightly".to_owned()])));

    let (nightly, web) = ("nightly".to_owned(), "web".to_owned());
    assert_eq!(
        by_name,
        [
            (nightly.clone(), Criticality::SheddablePlus),
            (web.clone(), Criticality::Critical)
        ]
    );
    assert_eq!(
        named,
        [
            (nightly, Criticality::Critical),
            (web, Criticality::SheddablePlus)
        ]
    );
}

#[test]
fn the_filter_accepts_the_configuration() {
    for text in [SIDECAR, AMBIENT] {
        let built = built(text);
        let advice = recommend(&built, &AdviceTerms::default());
        let all: Vec<_> = advice.iter().collect();
        let Some(value) = plugin_configuration(&all, Criticality::Critical) else {
            assert_eq!(
                text, AMBIENT,
                "no upstream of it has a service that is known"
            );
            continue;
        };

        let config = Config::from_json(value.to_string().as_bytes()).unwrap();

        let (_, policy) = config.policy_for(&UpstreamName {
            service: Some("reviews.bookinfo.svc.cluster.local"),
            cluster: "outbound|80||reviews.bookinfo.svc.cluster.local",
            route: None,
        });
        assert_eq!(policy.mode(), Mode::Observe);
        assert_eq!(policy.slo().latency_target(), Duration::from_millis(90));
        assert_eq!(policy.slo().success_rate().as_f64(), 0.9998);
    }
}

#[test]
fn clusters_of_envoy_are_named_by_cluster_unless_they_name_a_service() {
    let rules = |cluster: &str| {
        let text = recording(&[CALL], "")
            .replace("istio-workloads", "envoy-clusters")
            .replace("\"source_workload\"", "\"job\"")
            .replace(
                "\"destination_workload\":\"cart\"",
                &format!("\"envoy_cluster_name\":\"{cluster}\""),
            );
        let built = built(&text);
        let advice = recommend(&built, &AdviceTerms::default());
        let all: Vec<_> = advice.iter().collect();
        let value = plugin_configuration(&all, Criticality::Critical);
        value.map(|value| value["upstreams"][0]["match"].to_string())
    };

    for (cluster, expected) in [
        ("backend", Some(r#"{"cluster":"backend"}"#)),
        ("Backend A", Some(r#"{"cluster":"Backend A"}"#)),
        (
            "outbound|80||cart.shop.svc.cluster.local",
            Some(r#"{"service":"cart.shop"}"#),
        ),
        (
            "outbound|443||api.example.com",
            Some(r#"{"service":"api.example.com"}"#),
        ),
        ("back*", None),
        ("outbound|443||*.example.com", None),
    ] {
        assert_eq!(rules(cluster).as_deref(), expected, "{cluster}");
    }
}

#[test]
fn an_objective_below_every_median_is_out_of_reach() {
    let other = Call {
        caller: "batch",
        p50: 12.0,
        ..CALL
    };
    let built = of(&[CALL, other]);
    let advice = recommend(&built, &AdviceTerms::default());
    let verdicts = |millis, quantile, success_rate| {
        let objective = ObjectiveInForce {
            policy: "p".to_owned(),
            quantile,
            target: Duration::from_millis(millis),
            success_rate,
        };
        reach(&advice[0].upstream, built.observed, &objective)
    };

    assert_eq!(
        verdicts(11, 0.5, 0.9),
        [ReachVerdict::OutOfReach {
            fastest_median: 0.012
        }]
    );
    assert!(
        matches!(&verdicts(13, 0.9, 0.9)[..], [ReachVerdict::LatencyMissed { caller, .. }] if caller == "shop/web"),
        "{:?}",
        verdicts(13, 0.9, 0.9)
    );
    assert_eq!(verdicts(100, 0.99, 0.998), []);
    assert!(matches!(
        verdicts(100, 0.99, 0.9999)[..],
        [ReachVerdict::SuccessMissed { .. }]
    ));
}

#[test]
fn a_hostile_name_gets_no_rule_and_stays_in_its_string() {
    let lead = "a\"]\n- x: *y #\u{1b}[31m\u{202e}{{";
    let built = built(&recording(&[CALL], lead));
    let advice = recommend(&built, &AdviceTerms::default());
    let all: Vec<_> = advice.iter().collect();

    assert_eq!(plugin_configuration(&all, Criticality::Critical), None);
    let document = advice_document(&advice, built.observed, |_| Vec::new());
    let text = serde_json::to_string(&document).unwrap();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        read["upstreams"][0]["upstream"],
        format!("shop/{lead}cart").as_str()
    );
    assert!(read["upstreams"][0]["noRule"].is_string());
}

proptest! {
    #[test]
    fn a_recommendation_stays_within_its_bounds_and_is_accepted(
        requests in 0..2_000_000_u32,
        failed in 0.0..=1.0_f64,
        p50 in 0.0..1e5_f64,
        more in 0.0..1e5_f64,
        tail in 0.0..1e6_f64,
        margin in 0.0..10.0_f64,
    ) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the number of requests")]
        let failures = (f64::from(requests) * failed) as u32;
        let call = Call { requests, failures, p50, p95: p50 + more, p99: p50 + more + tail, ..CALL };
        let built = of(&[call]);
        let terms = AdviceTerms { margin, ..AdviceTerms::default() };
        let advice = recommend(&built, &terms);
        let all: Vec<_> = advice.iter().collect();
        for found in advice.iter().filter_map(|found| found.objective.as_ref().ok()) {
            let bounds = &found.bounds;
            prop_assert!(bounds.lowest_target <= found.target && found.target <= bounds.highest_target, "{found:?}");
            prop_assert!(bounds.lowest_success <= found.success_rate && found.success_rate <= bounds.highest_success, "{found:?}");
            prop_assert!(found.target.as_secs_f64() >= found.evidence.observed_seconds - 1e-9, "{found:?}");
            let value = plugin_configuration(&all, Criticality::Critical).unwrap();
            prop_assert!(Config::from_json(value.to_string().as_bytes()).is_ok(), "{value}");
        }
    }

    #[test]
    fn any_name_survives_as_a_rule_or_gets_none(name in "\\PC{0,12}|[a-z0-9.*_-]{1,12}") {
        let built = built(&recording(&[CALL], &name));
        let advice = recommend(&built, &AdviceTerms::default());
        let all: Vec<_> = advice.iter().collect();
        if let Some(value) = plugin_configuration(&all, Criticality::Critical) {
            let config = Config::from_json(value.to_string().as_bytes()).unwrap();
            let host = if name.contains('.') { format!("{name}cart") } else { format!("{name}cart.shop") };
            let cluster = format!("outbound|80||{host}");
            let upstream = UpstreamName { service: Some(&host), cluster: &cluster, route: None };
            let (_, policy) = config.policy_for(&upstream);
            prop_assert_eq!(policy.slo().latency_target(), Duration::from_millis(120));
            prop_assert_eq!(config.rules().len(), 1);
        }
    }
}

/// Requests an hour between services, and the 99th percentile in milliseconds.
fn call(caller: &'static str, upstream: &'static str, requests: u32, p99: f64) -> Call {
    Call {
        caller,
        upstream,
        requests,
        p50: p99 / 4.0,
        p95: p99 / 2.0,
        p99,
        ..CALL
    }
}

#[test]
fn a_service_that_is_needed_should_have_a_longer_objective_than_its_caller() {
    // The gateway calls web, web calls cart always and gift for a tenth, cart calls stock always, and stock calls itself through sync.
    let built = of(&[
        call("gateway", "web", 36_000, 100.0),
        call("web", "cart", 36_000, 60.0),
        call("web", "gift", 3_600, 20.0),
        call("cart", "stock", 36_000, 40.0),
        call("stock", "sync", 36_000, 10.0),
        call("sync", "stock", 36_000, 10.0),
    ]);

    let advice = recommend(&built, &AdviceTerms::default());

    let hint = |name: &str| {
        let found = advice.iter().find(|found| found.upstream.name == name);
        let hint = found.unwrap().chain.as_ref()?;
        let millis = (hint.caller_target.as_millis(), hint.target.as_millis());
        Some((hint.caller.clone(), millis.0, millis.1))
    };
    let of = |caller: &str, own, target| Some((caller.to_owned(), own, target));
    // Targets are 1.5 times the latency, and each hop adds a tenth.
    assert_eq!(hint("shop/web"), None);
    assert_eq!(hint("shop/cart"), of("shop/web", 150, 170));
    assert_eq!(hint("shop/stock"), of("shop/cart", 170, 190));
    assert_eq!(hint("shop/sync"), None, "it is in a circle with stock");
    assert_eq!(hint("shop/gift"), None, "a tenth of the requests call it");
}

#[test]
fn upstreams_beyond_the_greatest_number_of_rules_are_counted_and_get_the_loosest_objective() {
    let names: Vec<&'static str> = (0..1_003)
        .map(|number| &*Box::leak(format!("s{number}").into_boxed_str()))
        .collect();
    // The three with the fewest requests are the slowest.
    let calls: Vec<Call> = names
        .iter()
        .enumerate()
        .map(|(number, name)| match number {
            0..3 => call("web", name, 3_600, 200.0),
            _ => call("web", name, 36_000, 80.0),
        })
        .collect();
    let built = of(&calls);
    let advice = recommend(&built, &AdviceTerms::default());
    let all: Vec<_> = advice.iter().collect();

    let found = plugin_configuration(&all, Criticality::Critical).unwrap();

    assert_eq!(found["upstreams"].as_array().unwrap().len(), 1_000);
    assert_eq!(found["slo"]["latency"]["target"], "300ms");
    assert_eq!(upstreams_beyond_rules(&all), 3);
    assert_eq!(upstreams_beyond_rules(&all[..1_000]), 0);
    Config::from_json(found.to_string().as_bytes()).unwrap();
}

#[test]
fn the_committed_schemas_are_those_of_the_code() {
    use tidegate_advise::chain::FindingsDocument;
    use tidegate_advise::recommend::advice_schema;

    for (committed, schema) in [
        (include_str!("../schemas/recommend.json"), advice_schema()),
        (
            include_str!("../schemas/analyze.json"),
            FindingsDocument::schema(),
        ),
    ] {
        assert_eq!(
            committed,
            format!("{schema:#}\n"),
            "make docs writes it anew"
        );
    }
}
