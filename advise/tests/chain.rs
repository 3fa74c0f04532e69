//! Settings along chains of calls that do not fit each other.

use std::time::Duration;

use crate::common::{CALL, Call, of};
use tidegate_advise::chain::{
    ChainFinding, ChainSettings, FindingCode, FindingSeverity, PolicyOverlap, PolicyTerms,
    RouteTerms, SettingOrigin, StaticPool, analyze, qualified_host,
};
use tidegate_advise::recommend::ObjectiveInForce;
use tidegate_advise::{ObservedUpstream, RuleTarget};

fn origin(object: &str) -> SettingOrigin {
    SettingOrigin {
        object: object.to_owned(),
        place: format!("{object}.yaml:1:1"),
    }
}

/// Times in milliseconds; 0 is not set.
fn route(service: &str, timeout: u64, retries: u32, per_try: u64) -> RouteTerms {
    let time = |millis: u64| (millis > 0).then(|| Duration::from_millis(millis));
    RouteTerms {
        origin: origin(service),
        host: format!("{service}.shop"),
        is_for_gateways: false,
        timeout: time(timeout),
        retries,
        per_try: time(per_try),
    }
}

fn call(caller: &'static str, upstream: &'static str) -> Call {
    Call {
        caller,
        upstream,
        ..CALL
    }
}

/// gateway -> web -> cart -> stock
fn chain() -> Vec<Call> {
    vec![
        call("gateway", "web"),
        call("web", "cart"),
        call("cart", "stock"),
    ]
}

fn found(calls: &[Call], routes: &[RouteTerms]) -> Vec<ChainFinding> {
    let settings = ChainSettings {
        routes,
        pools: &[],
        overlaps: &[],
    };
    analyze(&of(calls), settings, |_| Vec::new())
}

fn codes(findings: &[ChainFinding]) -> Vec<(FindingCode, FindingSeverity, &str)> {
    findings
        .iter()
        .map(|found| (found.code, found.severity, found.object.as_str()))
        .collect()
}

fn policy(millis: u64) -> PolicyTerms {
    PolicyTerms {
        origin: origin("BreakerPolicy shop"),
        objective: ObjectiveInForce {
            policy: "shop".to_owned(),
            quantile: 0.99,
            target: Duration::from_millis(millis),
            success_rate: 0.99,
        },
        min_limit: 1,
        max_limit: 100,
    }
}

#[test]
fn settings_that_fit_give_no_finding() {
    let routes = [
        route("web", 3_000, 0, 0),
        route("cart", 2_000, 1, 900),
        route("stock", 500, 0, 0),
    ];

    assert_eq!(found(&chain(), &routes), []);
    assert_eq!(found(&chain(), &[]), []);
}

#[test]
fn retries_that_outlast_their_own_timeout_are_found() {
    // The example of "Microservice communication graph": 3 attempts of 2 s within 5 s.
    let findings = found(&chain(), &[route("stock", 5_000, 2, 2_000)]);

    assert_eq!(
        codes(&findings),
        [(
            FindingCode::RetriesOutlastTimeout,
            FindingSeverity::Warning,
            "stock"
        )]
    );
    assert_eq!(
        findings[0].message,
        "3 tries of 2s take 6s, longer than the timeout of 5s for stock.shop: the last ones are cut off"
    );
    assert_eq!(found(&chain(), &[route("stock", 6_000, 2, 2_000)]), []);
}

#[test]
fn retries_that_outlast_the_caller_are_an_error() {
    let routes = [route("cart", 1_000, 0, 0), route("stock", 0, 2, 400)];

    let findings = found(&chain(), &routes);

    assert_eq!(
        codes(&findings),
        [(
            FindingCode::RetriesOutlastCaller,
            FindingSeverity::Error,
            "stock"
        )]
    );
    assert_eq!(
        findings[0].message,
        "shop/cart calls stock.shop with 3 tries of 400ms, up to 1s200ms in all, but shop/web waits 1s (cart)"
    );
    assert_eq!(findings[0].place.as_deref(), Some("stock.yaml:1:1"));
}

#[test]
fn a_timeout_that_does_not_shrink_is_found() {
    for (above, below, expected) in [(1_000, 1_000, 1), (1_000, 2_000, 1), (1_000, 999, 0)] {
        let routes = [route("cart", above, 0, 0), route("stock", below, 0, 0)];
        let findings = found(&chain(), &routes);
        assert_eq!(findings.len(), expected, "{above} {below}");
        assert!(
            findings
                .iter()
                .all(|found| found.code == FindingCode::TimeoutDoesNotShrink)
        );
    }
}

#[test]
fn a_service_without_a_timeout_passes_that_of_its_callers_on() {
    let routes = [route("web", 1_000, 0, 0), route("stock", 2_000, 0, 0)];

    let findings = found(&chain(), &routes);

    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(
        findings[0].message,
        "shop/cart calls stock.shop with 1 try, up to 2s in all, but shop/gateway waits 1s (web)"
    );
}

#[test]
fn retries_multiply_along_a_chain() {
    let two = found(&chain(), &[route("web", 0, 2, 0), route("stock", 0, 2, 0)]);
    let three = found(
        &chain(),
        &[
            route("web", 0, 2, 0),
            route("cart", 0, 2, 0),
            route("stock", 0, 2, 0),
        ],
    );
    let one = found(&chain(), &[route("cart", 0, 5, 0)]);

    assert_eq!(
        codes(&two),
        [(
            FindingCode::RetriesAtEveryHop,
            FindingSeverity::Warning,
            "stock"
        )]
    );
    assert_eq!(three.len(), 1, "one for the whole chain: {three:?}");
    assert_eq!(three[0].severity, FindingSeverity::Error, "27 >= 10");
    assert_eq!(
        three[0].message,
        "3 hops retry: one request becomes up to 27 at the end of shop/gateway -> shop/web -> shop/cart -> shop/stock"
    );
    assert_eq!(one, []);
}

#[test]
fn a_route_for_gateways_is_not_that_of_a_sidecar() {
    let mut of_gateway = route("cart", 100, 0, 0);
    of_gateway.is_for_gateways = true;

    let findings = found(&chain(), &[of_gateway, route("stock", 500, 0, 0)]);

    assert_eq!(findings, [], "web is called, so that it is no gateway");
}

#[test]
fn circles_are_found_and_do_not_trap_the_checks() {
    let mut calls = chain();
    calls.push(call("stock", "web"));
    calls.push(call("stock", "stock"));
    let routes = [
        route("web", 0, 1, 0),
        route("cart", 0, 1, 0),
        route("stock", 0, 1, 0),
    ];

    let findings = found(&calls, &routes);

    assert_eq!(
        codes(&findings),
        [(
            FindingCode::CallCycle,
            FindingSeverity::Warning,
            "shop/cart"
        )]
    );
    assert_eq!(
        findings[0].message,
        "calls form a cycle: shop/cart, shop/stock, shop/web"
    );
}

#[test]
fn a_pool_below_the_policy_is_found() {
    let pool = |in_flight| StaticPool {
        origin: origin("DestinationRule shop/stock"),
        host: "*.shop".to_owned(),
        in_flight,
        field: "tcp.maxConnections".to_owned(),
    };
    let only_stock = |upstream: &ObservedUpstream<'_>| {
        let is_stock = upstream.target == Ok(RuleTarget::Service("stock.shop".to_owned()));
        is_stock.then(|| policy(1_000)).into_iter().collect()
    };
    for (in_flight, expected) in [
        (0, Some(FindingSeverity::Error)),
        (99, Some(FindingSeverity::Warning)),
        (100, None),
    ] {
        let pools = [pool(in_flight)];
        let settings = ChainSettings {
            routes: &[],
            pools: &pools,
            overlaps: &[],
        };
        let findings = analyze(&of(&chain()), settings, only_stock);
        assert_eq!(
            findings.first().map(|found| found.severity),
            expected,
            "{findings:?}"
        );
        assert!(findings.len() <= 1, "{findings:?}");
    }
}

#[test]
fn objectives_are_held_against_observations_and_timeouts() {
    let routes = [route("stock", 1_000, 0, 0)];
    let settings = ChainSettings {
        routes: &routes,
        pools: &[],
        overlaps: &[],
    };
    let with = |millis| {
        analyze(&of(&[call("cart", "stock")]), settings, |_| {
            vec![policy(millis)]
        })
    };

    let code = |millis| with(millis).first().map(|found| found.code);

    assert_eq!(
        code(10),
        Some(FindingCode::ObjectiveOutOfReach),
        "p50 is 15 ms"
    );
    assert_eq!(code(50), Some(FindingCode::ObjectiveMissed), "p99 is 80 ms");
    assert_eq!(code(100), None);
    assert_eq!(code(1_000), Some(FindingCode::ObjectiveBeyondTimeout));
}

#[test]
fn overlapping_policies_are_found() {
    let overlaps = [PolicyOverlap {
        winner: "shop/a".to_owned(),
        loser: "shop/b".to_owned(),
        target: "Gateway/waypoint".to_owned(),
        is_whole: true,
    }];
    let settings = ChainSettings {
        routes: &[],
        pools: &[],
        overlaps: &overlaps,
    };

    let findings = analyze(&of(&[]), settings, |_| Vec::new());

    assert_eq!(
        findings[0].message,
        "shop/a takes precedence for Gateway/waypoint: it has no effect there"
    );
}

#[test]
fn hosts_are_compared_in_one_form() {
    for (host, expected) in [
        ("cart", "cart.shop"),
        ("cart.other", "cart.other"),
        ("cart.other.svc", "cart.other"),
        ("Cart.other.svc.cluster.local", "cart.other"),
        ("*.other.svc.cluster.local", "*.other"),
        ("api.example.com", "api.example.com"),
        ("*", "*"),
    ] {
        assert_eq!(qualified_host(host, "shop"), expected, "{host}");
    }
}
