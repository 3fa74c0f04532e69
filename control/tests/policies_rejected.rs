//! Which policies are rejected, with which message, and at which position.

use tidegate_control::policy::{Policies, gather};

fn problems(text: &str) -> Vec<String> {
    let gathered = gather([("p.yaml", text.as_bytes())]);
    gathered.problems.iter().map(ToString::to_string).collect()
}

/// A policy with this `spec`.
fn with_spec(spec: &str) -> String {
    let spec = spec.replace('\n', "\n  ");
    format!(
        "apiVersion: tidegate.dev/v1alpha1\nkind: BreakerPolicy\nmetadata: {{name: shop}}\nspec:\n  {spec}\n"
    )
}

const SLO: &str = "slo: {latency: {quantile: 0.99, target: 250ms}}";

#[test]
fn a_valid_policy_is_accepted() {
    for targets in [
        "proxies: [{id: 'web-*'}]",
        "proxies: [{cluster: web, metadata: {zone: a, LABELS: {app: web}}}]",
        "selector: {matchLabels: {app: web, app.kubernetes.io/name: x_1}}",
        "selector: {matchLabels: {app: ''}}",
        "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: waypoint}]",
        "targetRefs: [{kind: Service, name: reviews}, {group: core, kind: Service, name: ratings}]",
        "targetRefs: [{kind: Namespace, name: shop}]",
    ] {
        let text = with_spec(&format!("{targets}\n{SLO}"));
        let gathered = gather([("p.yaml", text.as_bytes())]);

        assert_eq!(gathered.problems, [], "{targets}");
        assert_eq!(gathered.policies.len(), 1, "{targets}");
    }
}

#[test]
fn invalid_targets_are_rejected_with_path_value_and_expectation() {
    for (targets, expected) in [
        (
            "",
            "p.yaml:4:1: shop: spec: found no target, expected exactly one of targetRefs, selector, proxies",
        ),
        (
            "proxies: [{id: a}]\nselector: {matchLabels: {a: b}}",
            "p.yaml:4:1: shop: spec: found targets of more than one kind, expected exactly one of targetRefs, selector, proxies",
        ),
        (
            "proxies: []",
            "p.yaml:4:1: shop: spec: found an empty list of targets, expected at least one entry",
        ),
        (
            "proxies: [{}]",
            "p.yaml:5:13: shop: spec.proxies[0]: found no condition, expected at least one of id, cluster, metadata",
        ),
        (
            "proxies: [{id: 7}]",
            "p.yaml:5:14: shop: spec.proxies[0].id: found 7, expected a name with * for any text, at most 512 bytes",
        ),
        (
            "proxies:\n- {id: a}\n- {id: b, node_id: a}",
            "p.yaml:7:13: shop: spec.proxies[1].node_id: found an unknown key, expected one of id, cluster, metadata",
        ),
        (
            "proxies: [{metadata: {}}]",
            "p.yaml:5:14: shop: spec.proxies[0].metadata: found an object, expected an object with at least one entry",
        ),
        (
            "proxies: web",
            "p.yaml:5:3: shop: spec.proxies: found \"web\", expected a list of at most 100 entries",
        ),
        (
            "selector: {}",
            "p.yaml:5:3: shop: spec.selector.matchLabels: found nothing, expected an object of 1 to 64 labels, each a text",
        ),
        (
            "selector: {matchLabels: {app: 5}}",
            "p.yaml:5:14: shop: spec.selector.matchLabels: found an object, expected an object of 1 to 64 labels, each a text",
        ),
        (
            "targetRefs: [{kind: Deployment, name: web}]",
            "p.yaml:5:17: shop: spec.targetRefs[0].kind: found \"Deployment\", expected \"Namespace\", \"Gateway\" or \"Service\"",
        ),
        (
            "targetRefs: [{kind: Gateway, name: web}]",
            "p.yaml:5:16: shop: spec.targetRefs[0].group: found nothing, expected \"gateway.networking.k8s.io\"",
        ),
        (
            "targetRefs: [{group: apps, kind: Service, name: web}]",
            "p.yaml:5:17: shop: spec.targetRefs[0].group: found \"apps\", expected \"\" or \"core\"",
        ),
        (
            "targetRefs: [{kind: Service, name: Web}]",
            "p.yaml:5:32: shop: spec.targetRefs[0].name: found \"Web\", expected a name in lower-case letters, digits, - and ., at most 253 long",
        ),
        (
            "targetRefs: [{kind: Service, name: a}, {kind: Service, group: core, name: a}]",
            "p.yaml:5:42: shop: spec.targetRefs[1]: found the target of targetRefs[0] again, expected each target once",
        ),
        (
            "targetRef: [{kind: Service, name: web}]\nproxies: [{id: a}]",
            "p.yaml:5:3: shop: spec.targetRef: found an unknown key, expected one of targetRefs, selector, proxies, module, enabled, slo, mode, enforcement, stance, keyBy, limit, breaker, overload, shed, upstreams, criticality, deadline, ignore, maxUpstreams, maxDestinations (did you mean \"targetRefs\"?)",
        ),
    ] {
        let text = with_spec(&format!("{targets}\n{SLO}"));

        assert_eq!(problems(&text), [expected], "{targets}");
    }
}

#[test]
fn errors_of_the_configuration_match_those_of_the_filter() {
    for (config, path) in [
        (
            "slo: {latency: {quantile: 99, target: 250ms}}",
            "slo.latency.quantile",
        ),
        (
            "slo: {latency: {quantile: 0.99, target: 250}}",
            "slo.latency.target",
        ),
        (
            "slo: {latency: {quantile: 0.99, target: 3 minutes}}",
            "slo.latency.target",
        ),
        (
            "slo: {latency: {quantile: 0.99, target: 1s}}\nlimit: {max: 10, min: 20}",
            "limit.max",
        ),
        (
            "slo: {latency: {quantile: 0.99, target: 1s, until: body}}",
            "slo.latency.until",
        ),
        (
            "slo: {latency: {quantile: 0.99, target: 1s}}\nlimit: {maxOpen: 0}",
            "limit.maxOpen",
        ),
        (
            "slo: {latency: {quantile: 0.99, target: 1s}}\nlimit: {maxOpen: 10, min: 20}",
            "limit.maxOpen",
        ),
        (
            "slo: {latency: {quantile: 0.99, target: 1s}}\nstance: brave",
            "stance",
        ),
        (
            "slo: {latency: {quantile: 0.99, target: 1s}}\nupstreams: [{match: {}}]",
            "upstreams[0].match",
        ),
        (
            "slo: {latency: {quantile: 0.99, target: 1s}}\nmode: observe\nmode: enforce",
            "mode",
        ),
    ] {
        let text = with_spec(&format!("proxies: [{{id: a}}]\n{config}"));
        let document = tidegate_control::document::documents(config.as_bytes()).0;
        let alone = tidegate_core::config::Section::read_document(
            document[0].root(),
            tidegate_core::config::Config::read,
        )
        .unwrap_err();

        let found = gather([("p.yaml", text.as_bytes())]).problems;

        assert_eq!(found.len(), 1, "{config}");
        let error = alone.iter().next().unwrap();
        assert_eq!(error.path(), path);
        assert_eq!(found[0].path, format!("spec.{path}"));
        assert_eq!(found[0].found, error.found());
        assert_eq!(found[0].expected, error.expected());
        assert!(found[0].place.line > 4, "{}", found[0]);
    }
}

#[test]
fn every_error_of_every_document_is_listed() {
    let text = "\
apiVersion: tidegate.dev/v1
kind: BreakerPolicy
metadata: {name: a}
spec:
  proxies: [{id: x}]
  slo: {latency: {quantile: 2, target: 1s}}
---
kind: Service
metadata: {name: Bad Name}
---
[]
---
apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata: {name: c, namespace: shop}
spec:
  targetRefs: [{kind: Namespace, name: other}]
  limit: {max: 0}
";
    assert_eq!(
        problems(text),
        [
            "p.yaml:1:1: a: apiVersion: found \"tidegate.dev/v1\", expected \"tidegate.dev/v1alpha1\"",
            "p.yaml:6:19: a: spec.slo.latency.quantile: found 2, expected a number from 0.5 to 0.999",
            "p.yaml:8:1: apiVersion: found nothing, expected \"tidegate.dev/v1alpha1\"",
            "p.yaml:8:1: kind: found \"Service\", expected \"BreakerPolicy\"",
            "p.yaml:9:12: metadata.name: found \"Bad Name\", expected a name in lower-case letters, digits, - and ., at most 253 long",
            "p.yaml:8:1: spec: found no target, expected exactly one of targetRefs, selector, proxies",
            "p.yaml:8:1: spec.slo.latency.quantile: found nothing, expected a number from 0.5 to 0.999 (the objective has no default)",
            "p.yaml:8:1: spec.slo.latency.target: found nothing, expected a duration from 1ms to 10m such as \"250ms\" (the objective has no default)",
            "p.yaml:11:1: document: found a list, expected an object",
            "p.yaml:17:34: shop/c: spec.targetRefs[0].name: found \"other\", expected \"shop\", the policy's own namespace",
            "p.yaml:16:1: shop/c: spec.slo.latency.quantile: found nothing, expected a number from 0.5 to 0.999 (the objective has no default)",
            "p.yaml:16:1: shop/c: spec.slo.latency.target: found nothing, expected a duration from 1ms to 10m such as \"250ms\" (the objective has no default)",
            "p.yaml:18:11: shop/c: spec.limit.max: found 0, expected a whole number from 1 to 100000",
        ]
    );
}

#[test]
fn a_name_may_occur_once_in_all_files() {
    let text = with_spec(&format!("proxies: [{{id: a}}]\n{SLO}"));
    let wrong = text.replace("250ms", "soon");

    let gathered = gather([("a.yaml", text.as_bytes()), ("b.yaml", wrong.as_bytes())]);

    let problems: Vec<String> = gathered.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "b.yaml:3:12: shop: metadata.name: found the name of the policy at a.yaml:1:1 again, expected each name once",
            "b.yaml:6:35: shop: spec.slo.latency.target: found \"soon\", expected a duration from 1ms to 10m such as \"250ms\"",
        ]
    );
    assert_eq!(gathered.policies.len(), 1);
}

#[test]
fn broken_yaml_is_reported_with_its_position_and_hides_no_earlier_error() {
    for (text, place) in [
        ("a: b\n  c: d\n", "p.yaml:2:4: document 1"),
        ("a: [1, 2\n", "p.yaml:2:1: document 1"),
        ("a: \"open\n", "p.yaml:1:4: document 1"),
        ("a: !!str 5\n", "p.yaml:1:4: document 1"),
        ("? [a]\n: b\n", "p.yaml:1:3: document 1"),
        ("a: *b\n", "p.yaml:1:4: document 1"),
        ("- &a [*a]\n", "p.yaml:1:7: document 1"),
        ("a:\n\t- b\n", "p.yaml:2:2: document 1"),
    ] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text:?} {found:?}");
        assert!(found[0].starts_with(place), "{text:?} {found:?}");
        assert!(found[0].contains("malformed YAML"), "{found:?}");
    }

    let found = problems("kind: x\n---\na: [\n");
    assert!(found.len() > 1);
    assert!(
        found
            .last()
            .unwrap()
            .contains("document 2: found malformed YAML"),
        "{found:?}"
    );
}

#[test]
fn invalid_utf_8_is_rejected_with_its_position() {
    let gathered = gather([("p.yaml", b"a: b\nc: \xff".as_slice())]);

    assert_eq!(
        gathered.problems[0].to_string(),
        "p.yaml:2:4: document 1: found malformed YAML (invalid UTF-8), expected a BreakerPolicy"
    );
}

#[test]
fn a_few_lines_cannot_expand_to_gigabytes() {
    let mut text = String::from("a: &a [x, x, x, x, x, x, x, x, x, x]\n");
    for (name, before) in ('b'..='j').zip('a'..) {
        let aliases = vec![format!("*{before}"); 10].join(", ");
        text.push_str(&format!("{name}: &{name} [{aliases}]\n"));
    }

    let found = problems(&text);

    assert!(
        found[0].contains("copy more than 1048576 bytes"),
        "{found:?}"
    );
    let many = problems(&format!("[{}]", "1, ".repeat(200_000)));
    assert!(
        many[0].contains("more than 200000 keys and values"),
        "{many:?}"
    );
    let deep = problems(&format!("{}{}", "[".repeat(200), "]".repeat(200)));
    assert!(deep[0].contains("nested deeper than 128"), "{deep:?}");
}

#[test]
fn empty_documents_are_not_policies() {
    for text in ["", "\n", "---\n---\n", "# only a comment\n", "~\n"] {
        let gathered = gather([("p.yaml", text.as_bytes())]);
        assert_eq!(gathered.problems, [], "{text:?}");
        assert_eq!(gathered.policies, Policies::default(), "{text:?}");
    }
}

#[test]
fn output_of_kubectl_is_accepted() {
    let text = r#"{"apiVersion": "tidegate.dev/v1alpha1", "kind": "BreakerPolicy",
 "metadata": {"name": "web", "namespace": "shop", "uid": "1", "generation": 3, "managedFields": [],
  "creationTimestamp": "2026-01-31T12:00:00Z", "labels": {"a": "b"}},
 "spec": {"selector": {"matchLabels": {"app": "web"}}, "slo": {"latency": {"quantile": 0.9, "target": "1s"}}},
 "status": {"conditions": []}}"#;

    let gathered = gather([("p.json", text.as_bytes())]);

    assert_eq!(gathered.problems, []);
    let policy = gathered.policies.iter().next().unwrap();
    assert_eq!(policy.name().to_string(), "shop/web");
    assert_eq!(
        policy.created().unwrap().to_string(),
        "2026-01-31T12:00:00Z"
    );
    assert!(!policy.document().contains_key("selector"));
}

#[test]
fn a_list_as_kubectl_prints_it_counts_as_its_entries() {
    let sound = with_spec(&format!("proxies: [{{id: a}}]\n{SLO}")).replace('\n', "\n  ");
    let wrong = sound
        .replace("250ms", "soon")
        .replace("name: shop", "name: other");
    let text = format!("apiVersion: v1\nkind: List\nitems:\n- {sound}\n- {wrong}\n");

    let gathered = gather([("p.yaml", text.as_bytes())]);

    assert_eq!(gathered.policies.len(), 1);
    assert_eq!(
        problems(&text),
        [
            "p.yaml:16:37: other: spec.slo.latency.target: found \"soon\", expected a duration from 1ms to 10m such as \"250ms\""
        ]
    );
}

#[test]
fn a_long_text_with_many_aliases_does_not_expand_to_gigabytes() {
    // Half a megabyte of text and 10,000 aliases of it make 5 GB. REST would accept the text.
    let aliases = vec!["*a"; 10_000].join(", ");
    let bomb = format!("a: &a {}\nb: [{aliases}]\n", "x".repeat(500_000));
    // The same in small portions. Each portion is a document.
    let portion = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1_000),
        vec!["*a"; 500].join(", ")
    );
    let portions = vec![portion; 100].join("---\n");
    for text in [bomb, portions] {
        let (found, malformed) = tidegate_control::document::documents(text.as_bytes());

        let reason = malformed.unwrap().reason;
        assert!(reason.contains("copy more than"), "{reason}");
        assert!(found.len() < 5, "{} documents", found.len());
    }
}

#[test]
fn an_objective_that_policies_share_by_an_alias_is_read() {
    let item = |alias: &str, index: usize| {
        format!(
            "- apiVersion: tidegate.dev/v1alpha1\n  kind: BreakerPolicy\n  metadata: {{name: p{index}}}\n  spec: {{proxies: [{{id: p{index}}}], slo: {alias}}}\n"
        )
    };
    let slo = "&slo {latency: {quantile: 0.99, target: 300ms}}";
    let mut text = format!("kind: List\nitems:\n{}", item(slo, 0));
    for index in 1..500 {
        text.push_str(&item("*slo", index));
    }

    let gathered = gather([("list", text.as_bytes())]);

    assert_eq!(gathered.problems, []);
    assert_eq!(gathered.policies.len(), 500);
}
