//! Recommendations as policies, and what policies and Istio's objects say about upstreams.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use proptest::prelude::*;
use tidegate_advise::recommend::{AdviceTerms, UpstreamAdvice, recommend};
use tidegate_control::advice::{
    AdvicePlacement, MeshSettings, PolicyTexts, policies_for, policy_texts, read_made,
};
use tidegate_control::policy::{PolicyName, PolicyTargets, gather};
use tidegate_core::config::{Mode, UpstreamName};
use tidegate_graph::{BuildTerms, BuiltGraph, Recording, build};

const SHOP: &str = include_str!("../../advise/tests/recordings/shop.json");
const SETTINGS: &str = include_str!("../../advise/tests/recordings/istio.yaml");

fn built(text: &str) -> BuiltGraph {
    build(&Recording::parse(text).unwrap(), BuildTerms::default()).unwrap()
}

fn texts(text: &str, placement: &AdvicePlacement) -> PolicyTexts {
    let built = built(text);
    policy_texts(&recommend(&built, &AdviceTerms::default()), placement)
}

#[test]
fn policies_that_are_together_longer_than_a_file_may_be_are_read() {
    let made = texts(SHOP, &AdvicePlacement::Callers).text;
    let reason = format!("# {}\n", "x".repeat(100)).repeat(60_000);
    let long: Vec<String> = made
        .split("---\n")
        .map(|one| reason.clone() + one)
        .collect();
    let long = long.join("---\n");
    assert!(long.len() > 16 << 20, "{}", long.len());
    assert_ne!(gather([("one file", long.as_bytes())]).problems, []);

    let read = read_made(&long);

    assert_eq!(read.problems, []);
    assert_eq!(read.policies.len(), 3);
}

#[test]
fn a_policy_names_the_callers_for_which_it_decides() {
    let made = texts(SHOP, &AdvicePlacement::Callers).text;
    let batch = made
        .split("---\n")
        .find(|one| one.contains("namespace: batch"));
    let at_waypoint = texts(SHOP, &AdvicePlacement::Waypoint("wp".to_owned())).text;

    let of_shop = "requests of shop/cart-v1 are";
    let of_batch = "requests of batch/";
    assert!(batch.unwrap().contains(of_batch), "{made}");
    assert!(!batch.unwrap().contains(of_shop), "{made}");
    assert!(at_waypoint.contains(of_shop) && at_waypoint.contains(of_batch));
}

#[test]
fn each_namespace_with_callers_gets_a_valid_policy_in_mode_observe() {
    let made = texts(SHOP, &AdvicePlacement::Callers);

    let read = gather([("made", made.text.as_bytes())]);

    assert_eq!(read.problems, []);
    let names: Vec<String> = read.policies.iter().map(|p| p.name().to_string()).collect();
    assert_eq!(
        names,
        [
            "batch/recommended",
            "istio-system/recommended",
            "shop/recommended"
        ]
    );
    assert_eq!(
        made.notes,
        ["shop/gift: no objective: 36 requests are too few"]
    );
    let of = |namespace: &str| {
        let name = PolicyName::new(Some(namespace.to_owned()), "recommended".to_owned());
        read.policies.get(&name).unwrap()
    };
    let (_, policy) = of("shop").config().policy_for(&UpstreamName {
        service: Some("stock.shop.svc.cluster.local"),
        cluster: "outbound|80||stock.shop.svc.cluster.local",
        route: None,
    });
    assert_eq!(policy.mode(), Mode::Observe);
    assert_eq!(policy.slo().latency_target(), Duration::from_millis(150));
    let class = |namespace| {
        let default = of(namespace).document()["criticality"]["default"].clone();
        default.as_str().unwrap().to_owned()
    };
    assert_eq!(class("batch"), "sheddable_plus");
    assert_eq!(class("shop"), "critical");
}

#[test]
fn a_waypoint_gets_one_policy_in_the_namespace_of_the_upstreams() {
    let made = texts(SHOP, &AdvicePlacement::Waypoint("waypoint".to_owned()));

    let read = gather([("made", made.text.as_bytes())]);

    assert_eq!(read.problems, []);
    assert_eq!(read.policies.len(), 1);
    let policy = read.policies.iter().next().unwrap();
    assert_eq!(policy.name().to_string(), "shop/recommended");
    assert!(matches!(policy.targets(), PolicyTargets::Refs(_)));
    assert_eq!(policy.config().rules().len(), 4);
}

#[test]
fn without_namespaces_one_policy_is_for_all_standalone_proxies() {
    let text = SHOP
        .replace("istio-workloads", "envoy-clusters")
        .replace("\"source_workload\"", "\"job\"")
        .replace("\"destination_workload\"", "\"envoy_cluster_name\"");

    let made = texts(&text, &AdvicePlacement::Callers);

    let read = gather([("made", made.text.as_bytes())]);
    assert_eq!(read.problems, [], "{}", made.text);
    assert_eq!(read.policies.len(), 1);
    let policy = read.policies.iter().next().unwrap();
    assert_eq!(policy.name().to_string(), "recommended");
    assert_eq!(policy.targets().to_string(), "proxies with id *");
    let (_, found) = policy.config().policy_for(&UpstreamName {
        service: Some("prices-v1"),
        cluster: "prices-v1",
        route: None,
    });
    assert_eq!(found.slo().latency_target(), Duration::from_millis(45));
}

#[test]
fn settings_are_read_with_their_places() {
    let settings = MeshSettings::read([("istio.yaml", SETTINGS.as_bytes())], "default");

    assert_eq!(settings.problems, []);
    assert_eq!(settings.notes, Vec::<String>::new());
    let hosts: Vec<&str> = settings
        .routes
        .iter()
        .map(|route| route.host.as_str())
        .collect();
    assert_eq!(hosts, ["web.shop", "cart.shop", "stock.shop"]);
    assert_eq!(settings.routes[1].origin.place, "istio.yaml:12:1");
    assert_eq!(settings.pools.len(), 1);
    assert_eq!(
        (settings.pools[0].host.as_str(), settings.pools[0].in_flight),
        ("stock.shop", 8)
    );
    assert_eq!(settings.policies.len(), 1);
}

#[test]
fn other_objects_are_noted_and_errors_are_problems() {
    let text = "kind: Deployment\n---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec: {http: [{timeout: soon}]}\n---\n[";

    let settings = MeshSettings::read([("a.yaml", text.as_bytes())], "default");

    assert!(
        settings.notes[0].starts_with("a.yaml:1:1: neither a BreakerPolicy"),
        "{:?}",
        settings.notes
    );
    let problems: Vec<String> = settings.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems[0],
        "a.yaml:6:16: a: spec.http[0].timeout: found \"soon\", expected a duration such as \"5s\""
    );
    assert!(problems[1].contains("malformed YAML"), "{problems:?}");
}

fn find<'a, 'b>(advice: &'b [UpstreamAdvice<'a>], name: &str) -> &'b UpstreamAdvice<'a> {
    advice
        .iter()
        .find(|found| found.upstream.name == name)
        .unwrap()
}

#[test]
fn a_policy_counts_for_the_upstreams_of_callers_in_its_namespace() {
    let settings = MeshSettings::read([("istio.yaml", SETTINGS.as_bytes())], "default");
    let built = built(SHOP);
    let advice = recommend(&built, &AdviceTerms::default());
    let of = |name: &str| policies_for(&settings, &find(&advice, name).upstream);

    let stock = of("shop/stock");
    assert_eq!(stock.len(), 1);
    assert_eq!(stock[0].objective.policy, "shop/shop, upstreams[0]");
    assert_eq!(stock[0].objective.target, Duration::from_millis(5));
    assert_eq!(stock[0].max_limit, 100);
    assert_eq!(of("shop/cart")[0].objective.policy, "shop/shop, top level");
    assert_eq!(
        of("shop/web"),
        [],
        "only the gateway calls it, in istio-system"
    );
}

proptest! {
    #[test]
    fn hostile_names_give_valid_policies_or_none(
        lead in prop_oneof!["\\PC{0,8}", "[a-z\n\r\t\"'#:{}\u{1b}\u{202e}\u{2028}*-]{0,12}"],
        is_namespace in any::<bool>(),
    ) {
        let hostile = serde_json::to_string(&format!("{lead}shop")).unwrap();
        let text = if is_namespace {
            SHOP.replace("\"shop\"", &hostile)
        } else {
            let name = serde_json::to_string(&format!("{lead}web")).unwrap();
            SHOP.replace("\"web\"", &name).replace("\"web-v1\"", &name)
        };
        for placement in [AdvicePlacement::Callers, AdvicePlacement::Waypoint("w".to_owned())] {
            let made = texts(&text, &placement);
            let read = gather([("made", made.text.as_bytes())]);
            prop_assert_eq!(&read.problems, &[], "{}", made.text);
            for policy in read.policies.iter() {
                prop_assert_eq!(policy.name().name(), "recommended");
                prop_assert_eq!(policy.config().default_policy().mode(), Mode::Observe);
            }
        }
    }
}
