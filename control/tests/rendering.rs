//! What proxies get: which policy wins. A change renders and pushes only what it affects.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use tidegate_control::policy::{CheckedPolicy, Policies, PolicyName, ProxyNode, gather};
use tidegate_control::render::{ConfigVersion, RenderChanges, Renderer, UNMATCHED, render};
use tidegate_core::config::{Config, Mode};

fn policies(text: &str) -> Policies {
    let gathered = gather([("p.yaml", text.as_bytes())]);
    assert_eq!(gathered.problems, []);
    gathered.policies
}

/// A policy in one line. `age` is the year of its creation; 0 if that is unknown.
fn policy(name: &str, proxies: &str, age: u16, target_ms: u64) -> String {
    let created = match age {
        0 => String::new(),
        year => format!(", creationTimestamp: '{year}-01-01T00:00:00Z'"),
    };
    format!(
        "---\n{{apiVersion: tidegate.dev/v1alpha1, kind: BreakerPolicy, metadata: {{name: {name}{created}}}, \
         spec: {{proxies: [{proxies}], slo: {{latency: {{quantile: 0.99, target: {target_ms}ms}}}}}}}}\n"
    )
}

fn one(text: &str) -> CheckedPolicy {
    let policies = policies(text);
    assert_eq!(policies.len(), 1);
    CheckedPolicy::clone(policies.iter().next().unwrap())
}

fn proxy(id: &str, cluster: &str, metadata: &str) -> ProxyNode {
    ProxyNode {
        id: id.to_owned(),
        cluster: cluster.to_owned(),
        metadata: serde_json::from_str(metadata).unwrap(),
    }
}

fn name(name: &str) -> PolicyName {
    PolicyName::new(None, name.to_owned())
}

fn order(policies: &Policies, proxy: &ProxyNode) -> Vec<String> {
    let rendered = render(policies, proxy);
    let names = rendered.policy.iter().chain(&rendered.overruled);
    names.map(ToString::to_string).collect()
}

#[test]
fn a_proxy_that_no_policy_matches_observes() {
    let rendered = render(&Policies::default(), &proxy("a", "b", "{}"));

    let config = Config::from_json(rendered.config.as_bytes()).unwrap();
    assert_eq!(config.default_policy().mode(), Mode::Observe);
    assert_eq!(&*rendered.config, UNMATCHED);
    assert_eq!(rendered.policy, None);
}

#[test]
fn the_configuration_is_the_policy_without_its_targets() {
    let policies = policies(&policy("a", "{id: web}", 0, 80));

    let rendered = render(&policies, &proxy("web", "", "{}"));

    assert_eq!(
        &*rendered.config,
        r#"{"slo":{"latency":{"quantile":0.99,"target":"80ms"}}}"#
    );
    assert_eq!(rendered.version, ConfigVersion::of(&rendered.config));
    assert_eq!(rendered.version.as_str().len(), 32);
}

#[test]
fn the_most_specific_policy_wins_in_any_order() {
    // From the most specific to the least specific.
    let ranks = [
        "{id: web-1}",
        "{id: 'web-*', metadata: {zone: a}, cluster: web}",
        "{id: 'web-*', metadata: {zone: a}}",
        "{id: 'web-*'}",
        "{id: 'w*'}",
        "{metadata: {zone: a, LABELS: {app: 'w*'}}}",
        "{metadata: {zone: a}, cluster: web}",
        "{metadata: {zone: a}, cluster: 'we*'}",
        "{metadata: {zone: a}}",
        "{cluster: web}",
        "{cluster: 'w*'}",
    ];
    let proxy = proxy("web-1", "web", r#"{"zone":"a","LABELS":{"app":"web"}}"#);
    // Names and ages contradict the expected order, because neither may decide.
    let text: String = (0u16..)
        .zip(ranks)
        .map(|(rank, proxies)| policy(&format!("p{:02}", 50 - rank), proxies, 2050 - rank, 80))
        .collect();

    let found = order(&policies(&text), &proxy);

    let expected: Vec<String> = (0..ranks.len())
        .map(|rank| format!("p{:02}", 50 - rank))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn among_equals_the_oldest_wins_then_the_name() {
    let text = [
        policy("a", "{cluster: web}", 0, 80),
        policy("b", "{cluster: web}", 2026, 80),
        policy("c", "{cluster: web}", 2024, 80),
        policy("d", "{cluster: web}", 2024, 80),
        policy("e", "{cluster: web}", 0, 80),
    ]
    .concat();

    let found = order(&policies(&text), &proxy("x", "web", "{}"));

    assert_eq!(found, ["c", "d", "b", "a", "e"]);
}

#[test]
fn the_best_entry_of_a_policy_counts() {
    let text = [
        policy("a", "{cluster: web}, {id: web-1}", 2026, 80),
        policy("b", "{id: 'web-*'}", 2024, 80),
    ]
    .concat();

    assert_eq!(
        order(&policies(&text), &proxy("web-1", "web", "{}")),
        ["a", "b"]
    );
    assert_eq!(
        order(&policies(&text), &proxy("web-2", "web", "{}")),
        ["b", "a"]
    );
}

#[test]
fn metadata_matches_in_part_and_by_pattern() {
    let metadata = r#"{"zone":"eu-1a","weight":2,"edge":true,"LABELS":{"app.kubernetes.io/name":"web","x":"y"}}"#;
    for (wanted, holds) in [
        ("{zone: 'eu-*'}", true),
        ("{zone: us}", false),
        ("{weight: 2}", true),
        ("{weight: 2.0}", true),
        ("{weight: '2'}", false),
        ("{edge: true}", true),
        ("{edge: false}", false),
        ("{LABELS: {app.kubernetes.io/name: web}}", true),
        ("{LABELS: {app: web}}", false),
        ("{LABELS: web}", false),
        ("{zone: {a: b}}", false),
        ("{zone: 'eu-*', weight: 3}", false),
    ] {
        let policies = policies(&policy("a", &format!("{{metadata: {wanted}}}"), 0, 80));

        let rendered = render(&policies, &proxy("x", "", metadata));

        assert_eq!(rendered.policy.is_some(), holds, "{wanted}");
    }
}

#[test]
fn a_policy_for_kubernetes_objects_applies_to_no_standalone_proxy() {
    let text = "{apiVersion: tidegate.dev/v1alpha1, kind: BreakerPolicy, metadata: {name: a}, \
        spec: {selector: {matchLabels: {app: web}}, slo: {latency: {quantile: 0.99, target: 1s}}}}";

    let rendered = render(
        &policies(text),
        &proxy("web", "web", r#"{"LABELS":{"app":"web"}}"#),
    );

    assert_eq!(rendered.policy, None);
}

/// A thousand policies. Each applies to one of a thousand proxies.
fn fleet() -> Renderer<u32> {
    let mut renderer = Renderer::default();
    for id in 0..1000 {
        renderer.connect(id, proxy(&format!("p-{id}"), "fleet", "{}"));
    }
    let text: String = (0..1000)
        .map(|id| policy(&format!("n{id}"), &format!("{{id: p-{id}}}"), 0, 80))
        .collect();
    let changes = renderer.replace(&policies(&text));
    assert_eq!(changes.pushed.len(), 1000);
    renderer
}

#[test]
fn a_change_to_one_policy_renders_one_and_affects_only_its_proxies() {
    let mut renderer = fleet();
    assert_eq!(renderer.rendered_total(), 1000);

    let changes = renderer.put(one(&policy("n7", "{id: p-7}", 0, 90)));

    assert_eq!(renderer.rendered_total(), 1001);
    assert_eq!(changes.pushed, BTreeSet::from([7]));
    assert_eq!(changes.relabeled, BTreeSet::new());
}

#[test]
fn unchanged_policies_are_not_rendered_again() {
    let mut renderer = fleet();
    let same = renderer.policies().clone();

    let changes = renderer.replace(&same);

    assert_eq!(renderer.rendered_total(), 1000);
    assert_eq!(changes, RenderChanges::default());
}

#[test]
fn a_change_of_precedence_alone_pushes_nothing() {
    let mut renderer = Renderer::default();
    renderer.connect(1, proxy("a", "web", "{}"));
    renderer.put(one(&policy("old", "{cluster: web}", 2024, 80)));

    let changes = renderer.put(one(&policy("new", "{id: a}", 2026, 80)));

    assert_eq!(changes.pushed, BTreeSet::new());
    assert_eq!(changes.relabeled, BTreeSet::from([1]));
    let rendered = renderer.rendered(&1).unwrap();
    assert_eq!(rendered.policy, Some(name("new")));
    assert_eq!(rendered.overruled, [name("old")]);
}

/// A change of the policies or the proxies.
#[derive(Clone, Debug)]
enum Step {
    Connect(u8, ProxyNode),
    Disconnect(u8),
    Put(Box<CheckedPolicy>),
    Remove(PolicyName),
    Replace(Policies),
}

fn any_match() -> impl Strategy<Value = String> {
    let id = prop::option::of(prop::sample::select(vec!["a", "b", "a*", "*", "b*"]));
    let cluster = prop::option::of(prop::sample::select(vec!["x", "y", "*"]));
    let zone = prop::option::of(prop::sample::select(vec!["1", "2", "*"]));
    (id, cluster, zone).prop_map(|(id, cluster, zone)| {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(id.map(|id| format!("id: '{id}'")));
        parts.extend(cluster.map(|cluster| format!("cluster: '{cluster}'")));
        parts.extend(zone.map(|zone| format!("metadata: {{zone: '{zone}'}}")));
        if parts.is_empty() {
            parts.push("id: '*'".to_owned());
        }
        format!("{{{}}}", parts.join(", "))
    })
}

fn any_policy() -> impl Strategy<Value = CheckedPolicy> {
    let matches = prop::collection::vec(any_match(), 1..3);
    (0u8..6, matches, 0u16..3, 1u64..4).prop_map(|(name, matches, age, target_ms)| {
        let year = if age == 0 { 0 } else { 2020 + age };
        one(&policy(
            &format!("p{name}"),
            &matches.join(", "),
            year,
            target_ms,
        ))
    })
}

fn any_proxy() -> impl Strategy<Value = ProxyNode> {
    let id = prop::sample::select(vec!["a", "b", "ab", "c"]);
    let cluster = prop::sample::select(vec!["x", "y", ""]);
    let metadata = prop::sample::select(vec!["{}", r#"{"zone":"1"}"#, r#"{"zone":"2"}"#]);
    (id, cluster, metadata).prop_map(|(id, cluster, metadata)| proxy(id, cluster, metadata))
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0u8..8, any_proxy()).prop_map(|(key, proxy)| Step::Connect(key, proxy)),
        1 => (0u8..8).prop_map(Step::Disconnect),
        4 => any_policy().prop_map(|policy| Step::Put(Box::new(policy))),
        2 => (0u8..6).prop_map(|n| Step::Remove(name(&format!("p{n}")))),
        1 => prop::collection::vec(any_policy(), 0..4).prop_map(|all| Step::Replace(all.into_iter().collect())),
    ]
}

proptest! {
    /// After any history, the renderer has the same result as `render` has from scratch. It reports every proxy whose
    /// configuration changed, and no others.
    #[test]
    fn incremental_rendering_equals_full_rendering(
        steps in prop::collection::vec(any_step(), 1..40)
    ) {
        let mut renderer: Renderer<u8> = Renderer::default();
        let mut proxies = std::collections::BTreeMap::new();
        for step in steps {
            let before: Vec<_> = (0..8).map(|key| renderer.rendered(&key).cloned()).collect();
            let is_policy = !matches!(step, Step::Connect(..) | Step::Disconnect(_));
            let changes = match step {
                Step::Connect(key, proxy) => {
                    proxies.insert(key, proxy.clone());
                    renderer.connect(key, proxy);
                    RenderChanges::default()
                }
                Step::Disconnect(key) => {
                    proxies.remove(&key);
                    renderer.disconnect(&key);
                    RenderChanges::default()
                }
                Step::Put(policy) => renderer.put(*policy),
                Step::Remove(name) => renderer.remove(&name),
                Step::Replace(policies) => renderer.replace(&policies),
            };
            for key in 0..8u8 {
                let now = renderer.rendered(&key).cloned();
                let fresh = proxies.get(&key).map(|proxy| render(renderer.policies(), proxy));
                prop_assert_eq!(&now, &fresh);
                if is_policy {
                    let was = &before[usize::from(key)];
                    let version = |r: &Option<tidegate_control::render::Rendered>| r.as_ref().map(|r| r.version.clone());
                    let is_pushed = version(was) != version(&now);
                    prop_assert_eq!(changes.pushed.contains(&key), is_pushed);
                    prop_assert_eq!(changes.relabeled.contains(&key), !is_pushed && *was != now);
                }
            }
            for policy in renderer.policies().iter() {
                let claimed: BTreeSet<u8> = renderer.claimed_by(policy.name()).copied().collect();
                let expected: BTreeSet<u8> = proxies.iter()
                    .filter(|(_, proxy)| tidegate_control::policy::PolicyClaim::of(policy, proxy).is_some())
                    .map(|(key, _)| *key)
                    .collect();
                prop_assert_eq!(claimed, expected);
            }
        }
    }

    /// The same policies give the same bytes in every order, and the filter accepts them.
    #[test]
    fn rendering_is_deterministic_and_passes_the_filter_s_own_check(
        all in prop::collection::vec(any_policy(), 0..6),
        proxy in any_proxy(),
    ) {
        let mut by_name = std::collections::BTreeMap::new();
        for policy in all {
            by_name.insert(policy.name().clone(), policy);
        }
        let forwards: Policies = by_name.values().cloned().collect();
        let backwards: Policies = by_name.values().rev().cloned().collect();

        let rendered = render(&forwards, &proxy);

        prop_assert_eq!(&rendered, &render(&backwards, &proxy));
        prop_assert!(Config::from_json(rendered.config.as_bytes()).is_ok());
        if let Some(name) = &rendered.policy {
            let config = Config::from_json(rendered.config.as_bytes()).unwrap();
            prop_assert_eq!(&config, forwards.get(name).unwrap().config());
        }
    }
}
