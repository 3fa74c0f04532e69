//! How Istio's static limits become policies.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use proptest::prelude::*;
use tidegate_control::cluster::read_objects;
use tidegate_control::migrate::{
    FixedNumbers, LimitedProxies, Migration, MigrationOptions, MigrationSources, migrate,
    read_counts,
};
use tidegate_control::policy::{PolicyName, PolicyTargets, gather};
use tidegate_core::config::{RuleIndex, UpstreamName};
use tidegate_graph::{BuildTerms, BuiltGraph, Recording, build};

const RULES: &str = include_str!("migrate/rules.yaml");
const SHOP: &str = include_str!("../../advise/tests/recordings/shop.json");
const OBJECTS: &str = include_str!("cluster/objects.yaml");

fn options(proxies: LimitedProxies) -> MigrationOptions {
    MigrationOptions {
        proxies,
        waypoint: "waypoint".to_owned(),
        namespace: "default".to_owned(),
        fixed: FixedNumbers {
            replicas: Some(5),
            clients: Some(10),
            waypoints: Some(1),
            latency: Some("1s".to_owned()),
        },
    }
}

fn migrated(text: &str, proxies: LimitedProxies) -> Migration {
    migrate(
        [("rules.yaml", text.as_bytes())],
        &options(proxies),
        &MigrationSources::default(),
    )
}

const SIDECARS: LimitedProxies = LimitedProxies::Sidecars;
const WAYPOINT: LimitedProxies = LimitedProxies::Waypoint;

/// `limit.max` of the rule for a cluster, in the last policy.
fn limit_max(topology: LimitedProxies, text: &str, cluster: &str) -> u32 {
    let gathered = gather([("made", migrated(text, topology).policies.as_bytes())]);
    assert_eq!(gathered.problems, []);
    let policy = gathered.policies.iter().last().unwrap();
    let service = cluster.rsplit('|').next();
    let name = UpstreamName {
        service,
        cluster,
        route: None,
    };
    let (index, policy) = policy.config().policy_for(&name);
    assert_ne!(index, RuleIndex::TopLevel, "{cluster}");
    let (max, max_open) = (policy.limit().max(), policy.limit().max_open());
    // `max` has the default 10,000; `maxOpen` has no default.
    assert_eq!(max_open.unwrap_or(10_000), max, "{cluster}");
    max
}

#[test]
fn every_field_is_explained() {
    for (topology, golden) in [
        (SIDECARS, include_str!("migrate/sidecar.yaml")),
        (WAYPOINT, include_str!("migrate/waypoint.yaml")),
    ] {
        let migration = migrated(RULES, topology);

        assert_eq!(migration.problems, []);
        assert_eq!(migration.policies, golden);
        assert_eq!(
            migration.notes,
            [
                "rules.yaml:59:1: DestinationRule only-tls has neither connectionPool nor outlierDetection, skipped",
                "rules.yaml:74:1: not a DestinationRule of networking.istio.io, skipped",
            ]
        );
    }
}

#[test]
fn the_bounds_hold_for_the_clusters_that_istio_names() {
    const HOST: &str = "reviews.shop.svc.cluster.local";

    for (topology, cluster, max) in [
        (SIDECARS, format!("outbound|9080||{HOST}"), 20),
        (SIDECARS, format!("outbound|9080|v1|{HOST}"), 20),
        (SIDECARS, format!("outbound|80|v2|{HOST}"), 8),
        (SIDECARS, format!("outbound|9080|v2|{HOST}"), 10_000),
        (WAYPOINT, format!("inbound-vip|9080|http|{HOST}"), 200),
        (WAYPOINT, format!("inbound-vip|80|http/v2|{HOST}"), 80),
        (
            WAYPOINT,
            "inbound-vip|8443|http|ratings.shop.svc.cluster.local".to_owned(),
            6,
        ),
        (
            SIDECARS,
            "outbound|8443||ratings.shop.svc.cluster.local".to_owned(),
            1,
        ),
        (
            SIDECARS,
            "outbound|9080||ratings.shop.svc.cluster.local".to_owned(),
            10_000,
        ),
    ] {
        assert_eq!(limit_max(topology, RULES, &cluster), max, "{cluster}");
    }
}

#[test]
fn ten_sidecars_send_as_much_through_a_waypoint_as_without() {
    let rule = "{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: a, namespace: shop}, \
        spec: {host: a, trafficPolicy: {connectionPool: {tcp: {maxConnections: 100}}}}}";
    let sidecar = limit_max(SIDECARS, rule, "outbound|80||a.shop.svc.cluster.local");
    let waypoint = limit_max(
        WAYPOINT,
        rule,
        "inbound-vip|80|http|a.shop.svc.cluster.local",
    );

    assert_eq!((sidecar, waypoint), (20, 200));
    // Proxies x endpoints x maximum per endpoint.
    assert_eq!(10 * 5 * sidecar, 5 * waypoint);
}

#[test]
fn sidecars_get_a_policy_for_their_namespace_and_a_waypoint_one_for_its_gateway() {
    for (topology, name, targets) in [
        (SIDECARS, "destination-rules", "Namespace/shop"),
        (WAYPOINT, "destination-rules", "Gateway/waypoint"),
    ] {
        let gathered = gather([("made", migrated(RULES, topology).policies.as_bytes())]);
        let name = PolicyName::new(Some("shop".to_owned()), name.to_owned());
        let policy = gathered.policies.get(&name).unwrap();
        assert!(matches!(policy.targets(), PolicyTargets::Refs(_)));
        assert_eq!(policy.targets().to_string(), targets);
    }
}

#[test]
fn an_invalid_rule_is_reported_with_its_position_and_gives_no_policy() {
    let text = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: A}\nspec:\n  host: a b\n  trafficPolicy:\n    connectionPool: {tcp: {maxConnections: -1}}\n    outlierDetection: {baseEjectionTime: soon}\n";

    let migration = migrated(text, SIDECARS);

    let problems: Vec<String> = migration.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "rules.yaml:3:12: metadata.name: found \"A\", expected a name in lower-case letters, digits, - and .",
            "rules.yaml:5:3: spec.host: found \"a b\", expected a host such as reviews or *.example.com",
            "rules.yaml:7:28: spec.trafficPolicy.connectionPool.tcp.maxConnections: found -1, expected a whole number of at least 0",
            "rules.yaml:8:24: spec.trafficPolicy.outlierDetection.baseEjectionTime: found \"soon\", expected a duration such as \"30s\"",
        ]
    );
    assert_eq!(migration.policies, "");
}

/// The graph of the shop, with facts from Kubernetes.
fn shop() -> BuiltGraph {
    let mut recording = Recording::parse(SHOP).unwrap();
    let objects = read_objects([("objects.yaml", OBJECTS.as_bytes())]);
    recording.kubernetes = Some(objects.objects.finish(Vec::new()));
    build(&recording, BuildTerms::default()).unwrap()
}

/// A rule for a host of the shop.
fn rule(name: &str, host: &str) -> String {
    format!(
        "---\n{{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {{name: {name}, namespace: shop}}, \
         spec: {{host: {host}, trafficPolicy: {{connectionPool: {{tcp: {{maxConnections: 100}}}}}}}}}}\n"
    )
}

#[test]
fn counts_and_objectives_are_those_of_each_service_in_the_graph() {
    let built = shop();
    let mut options = options(SIDECARS);
    options.fixed = FixedNumbers::default();
    let sources = MigrationSources {
        graph: Some(&built),
        cluster: built.kubernetes.as_ref(),
        ..MigrationSources::default()
    };
    let rules = rule("cart", "cart") + &rule("prices", "prices.shop.svc.cluster.local");

    let done = migrate([("rules.yaml", rules.as_bytes())], &options, &sources);

    assert_eq!(
        (done.unknown.as_slice(), done.lacks_objective),
        (&[][..], false)
    );
    let gathered = gather([("made", done.policies.as_bytes())]);
    assert_eq!(gathered.problems, [], "{}", done.policies);
    let policy = gathered.policies.iter().next().unwrap();
    // Two and three endpoints, and the targets that `tidegate recommend` prints.
    for (service, max, target) in [("cart", 50, 210), ("prices", 34, 45)] {
        let host = format!("{service}.shop.svc.cluster.local");
        let (_, found) = policy.config().policy_for(&UpstreamName {
            service: Some(&host),
            cluster: "",
            route: None,
        });
        let host = format!("{service}.shop");
        let short = policy.config().policy_for(&UpstreamName {
            service: Some(&host),
            cluster: "",
            route: None,
        });
        let found = if short.0 == RuleIndex::TopLevel {
            found
        } else {
            short.1
        };
        assert_eq!(found.limit().max(), max, "{service}: {}", done.policies);
        assert_eq!(
            found.slo().latency_target(),
            Duration::from_millis(target),
            "{service}"
        );
    }
}

#[test]
fn hostile_names_of_callers_stay_in_their_comments() {
    let hostile = serde_json::to_string("\u{1b}[31m\nspec: {}\n\u{2028}\u{202e}web").unwrap();
    let text = SHOP.replace("\"web-v1\"", &hostile);
    let built = build(&Recording::parse(&text).unwrap(), BuildTerms::default()).unwrap();
    let mut options = options(WAYPOINT);
    options.fixed.latency = None;
    options.fixed.clients = None;
    let sources = MigrationSources {
        graph: Some(&built),
        ..MigrationSources::default()
    };

    let done = migrate(
        [("rules.yaml", rule("cart", "cart").as_bytes())],
        &options,
        &sources,
    );

    assert!(done.policies.contains(r"\u{1b}[31m"), "{}", done.policies);
    assert!(!done.policies.contains(['\u{1b}', '\u{202e}', '\u{2028}']));
    let gathered = gather([("made", done.policies.as_bytes())]);
    assert_eq!(gathered.problems, [], "{}", done.policies);
    assert_eq!(gathered.policies.len(), 1);
}

#[test]
fn what_is_needed_and_not_known_is_named_and_nothing_is_assumed() {
    for (proxies, missing) in [
        (SIDECARS, vec!["endpoints of ads.shop"]),
        (
            WAYPOINT,
            vec![
                "endpoints of ads.shop",
                "clients of ads.shop",
                "pods of the waypoint shop/waypoint",
            ],
        ),
    ] {
        let mut options = options(proxies);
        options.fixed = FixedNumbers::default();
        let sources = MigrationSources::default();
        let text = rule("ads", "ads");

        let done = migrate([("rules.yaml", text.as_bytes())], &options, &sources);

        assert!(done.lacks_objective);
        assert!(!done.policies.contains("max:"), "{}", done.policies);
        assert!(!done.policies.contains("1s"), "{}", done.policies);
        let comments = done
            .policies
            .replace("\n    # ", " ")
            .replace("\n  # ", " ");
        let warnings = done.unknown.join("\n");
        for name in missing {
            assert!(comments.contains(name), "{name}: {}", done.policies);
            assert!(warnings.contains(name), "{name}: {warnings}");
        }
        assert!(warnings.contains("shop/ads: no objective"), "{warnings}");
        let problems = gather([("made", done.policies.as_bytes())]).problems;
        let paths: Vec<&str> = problems
            .iter()
            .map(|problem| problem.path.as_str())
            .collect();
        assert_eq!(
            paths,
            ["spec.slo.latency.quantile", "spec.slo.latency.target"]
        );
    }
}

#[test]
fn a_file_of_counts_is_taken_first_and_says_what_is_wrong_with_it() {
    let text = "services:\n- {host: cart.shop.svc.cluster.local, replicas: 4, clients: 2, latency: 99ms}\n";
    let built = shop();
    let mut options = options(SIDECARS);
    options.fixed = FixedNumbers::default();
    let sources = MigrationSources {
        counts: read_counts("counts.yaml", text.as_bytes()).unwrap(),
        graph: Some(&built),
        cluster: built.kubernetes.as_ref(),
    };

    let done = migrate(
        [("rules.yaml", rule("cart", "cart").as_bytes())],
        &options,
        &sources,
    );

    assert!(done.policies.contains("max: 25\n"), "{}", done.policies);
    assert!(
        done.policies.contains("target: \"99ms\"\n"),
        "{}",
        done.policies
    );
    let wrong = "services:\n- {host: cart, replicas: 0}\n- {latency: soon}\n";
    assert_eq!(
        read_counts("counts.yaml", wrong.as_bytes()).unwrap_err(),
        "counts.yaml:2:4: services[0].host: found \"cart\", expected a host with its namespace such as reviews.shop\n\
         counts.yaml:2:16: services[0].replicas: found 0, expected a whole number from 1 to 1000000\n\
         counts.yaml:3:3: services[1].host: found nothing, expected a host with its namespace such as reviews.shop\n\
         counts.yaml:3:4: services[1].latency: found \"soon\", expected a duration such as \"250ms\""
    );
}

fn any_traffic() -> impl Strategy<Value = String> {
    let number = prop_oneof![0u64..5, 0u64..5_000_000_000];
    let pool = prop::option::of((
        prop::option::of(number.clone()),
        prop::option::of(number.clone()),
        prop::option::of(number),
        any::<bool>(),
    ));
    let ejection = prop::option::of(prop::sample::select(vec![
        "1us", "30s", "3h", "0.5s", "49ms",
    ]));
    (pool, ejection).prop_map(|(pool, ejection)| {
        let mut parts = Vec::new();
        if let Some((connections, requests, streams, upgrade)) = pool {
            let mut http: Vec<String> = Vec::new();
            http.extend(requests.map(|n| format!("http2MaxRequests: {n}")));
            http.extend(streams.map(|n| format!("maxConcurrentStreams: {n}")));
            http.extend(upgrade.then(|| "h2UpgradePolicy: UPGRADE".to_owned()));
            let tcp = connections
                .map(|n| format!("maxConnections: {n}"))
                .unwrap_or_default();
            parts.push(format!(
                "connectionPool: {{tcp: {{{tcp}}}, http: {{{}}}}}",
                http.join(", ")
            ));
        }
        parts
            .extend(ejection.map(|time| format!("outlierDetection: {{baseEjectionTime: {time}}}")));
        parts.join(", ")
    })
}

fn any_rule() -> impl Strategy<Value = String> {
    let host = prop::sample::select(vec![
        "a",
        "b",
        "a.shop.svc.cluster.local",
        "'*.Example.com'",
        "'*'",
    ]);
    let selector = prop::sample::select(vec!["", "workloadSelector: {matchLabels: {app: x}}, "]);
    let subsets = prop::collection::vec((any_traffic(), any_traffic()), 0..3);
    (0u8..4, host, selector, any_traffic(), any_traffic(), subsets).prop_map(
        |(name, host, selector, traffic, port, subsets)| {
            let separated = |traffic: &str| if traffic.is_empty() { String::new() } else { format!("{traffic}, ") };
            let subsets: Vec<String> = (0..)
                .zip(&subsets)
                .map(|(index, (own, port)): (u8, _)| {
                    format!(
                        "{{name: s{index}, trafficPolicy: {{{}portLevelSettings: [{{{}port: {{number: 80}}}}]}}}}",
                        separated(own),
                        separated(port)
                    )
                })
                .collect();
            format!(
                "---\n{{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {{name: n{name}}}, spec: {{host: {host}, {selector}\
                 trafficPolicy: {{{}portLevelSettings: [{{{}port: {{number: 81}}}}]}}, subsets: [{}]}}}}\n",
                separated(&traffic),
                separated(&port),
                subsets.join(", ")
            )
        },
    )
}

proptest! {
    #[test]
    fn migrated_policies_are_always_valid(
        rules in prop::collection::vec(any_rule(), 1..5),
        clients in prop::option::of(1u32..1000),
        replicas in prop::option::of(1u32..1000),
        waypoints in prop::option::of(1u32..10),
    ) {
        let proxies = if waypoints.is_some() { WAYPOINT } else { SIDECARS };
        let mut options = options(proxies);
        options.fixed = FixedNumbers {
            replicas,
            clients,
            waypoints,
            latency: Some("1s".to_owned()),
        };
        let sources = MigrationSources::default();

        let migration = migrate([("rules.yaml", rules.concat().as_bytes())], &options, &sources);

        prop_assert_eq!(&migration.problems, &[]);
        let made = gather([("made", migration.policies.as_bytes())]);
        prop_assert_eq!(&made.problems, &[], "{}", migration.policies);
    }
}
