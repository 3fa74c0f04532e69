//! Policies as YAML.

use tidegate_core::config::{Config, Node};

use super::pieces;
use crate::document::{YamlDocument, documents, value_of, yaml};
use crate::policy::{Gathered, gather};
use crate::render::PluginConfig;

/// Memory of a value in addition to its text, and the most bytes that anchors and aliases of one text copy, as in
/// `control/src/document/build.rs`. A copy is counted before it is made, and that of an anchor is in no document: so there is no
/// margin.
const VALUE_BYTES: usize = 128;
const MOST_COPIED: usize = 1 << 20;

pub(super) const PIECES: [&str; 56] = [
    "apiVersion: tidegate.dev/v1alpha1\nkind: BreakerPolicy\nmetadata:\n  name: a\nspec:\n  slo: {latency: {quantile: 0.9, target: 1s}}\n",
    "  proxies: [{id: '*'}]\n",
    "  proxies:\n  - metadata: {zone: a}\n",
    "  selector: {matchLabels: {app: web}}\n",
    "  targetRefs: [{group: '', kind: Service, name: web}]\n",
    "{apiVersion: tidegate.dev/v1alpha1, kind: BreakerPolicy, metadata: {name: b, namespace: shop}, spec: {",
    "slo: {latency: {quantile: 0.9, target: 1s}}, ",
    "limit: {min: 1, max: 2}, ",
    "  limit:\n    max: ",
    "  shed: {reply: stop, status: 429}\n",
    "  upstreams:\n  - match: {cluster: 'a*'}\n",
    "    stance: throughput\n",
    "  criticality: {rules: [{path: /a*, criticality: sheddable}]}\n",
    "kind: List\nitems:\n",
    "status: {}\n",
    "creationTimestamp: 2026-01-31T12:00:00Z\n",
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    ": ",
    "? ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "&x ",
    "*x",
    "&y [*x, *x, *x, *x, *x, *x, *x, *x, *x]\n",
    "x: &x [a, a, a, a, a, a, a, a]\n",
    "!t ",
    "!!str ",
    "|\n",
    ">-\n",
    "'",
    "\"",
    "\\u0000",
    "#",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "\t",
    "~",
    "0x1F",
    "1e400",
    ".inf",
    "é",
    "\u{feff}",
    "\u{0}",
    "\u{85}",
    "\r",
    "<<: ",
    "yes",
    "2026-01-31",
    "1:30",
];

#[test]
fn texts_are_read_within_bounds_and_valid_policies_mean_the_same_everywhere() {
    bolero::check!(name = "policy_yaml")
        .with_iterations(3_000)
        .for_each(|bytes: &[u8]| {
            let text = pieces::text(bytes, &PIECES);
            let (found, malformed) = documents(&text);
            assert!(std::str::from_utf8(&text).is_ok() || malformed.is_some());
            let size: usize = found.iter().map(|document| size(document.root())).sum();
            // The text of a value may be one letter, and a key may have no text for its value.
            assert!(
                size <= 2 * (text.len() + 1) * (VALUE_BYTES + 1) + MOST_COPIED,
                "{size} bytes"
            );
            for document in &found {
                check_written(document);
            }
            let gathered = gather([("any", text.as_slice())]);
            assert!(malformed.is_none() || !gathered.problems.is_empty());
            check_problems(&gathered);
            check_policies(&gathered);
        });
}

#[test]
fn the_bound_on_copies_can_nearly_be_reached() {
    let sizes = (1..1_000).map_while(|aliases| {
        let list = ["a"; 100].join(", ");
        let copies = vec!["*x"; aliases].join(", ");
        let text = format!("x: &x [{list}]\ny: [{copies}]\n");
        let (found, malformed) = documents(text.as_bytes());
        let all = found.iter().map(|document| size(document.root())).sum();
        malformed.is_none().then_some(all)
    });
    let sizes: Vec<usize> = sizes.collect();
    let (least, most) = (sizes.first().unwrap(), sizes.last().unwrap());
    let copied = most - least;
    assert!(
        (MOST_COPIED * 9 / 10..=MOST_COPIED).contains(&copied),
        "{copied} bytes"
    );
}

fn size(node: &Node) -> usize {
    VALUE_BYTES
        + match node {
            Node::Text(text) => text.len(),
            Node::List(items) => items.iter().map(size).sum(),
            Node::Object(entries) => entries
                .iter()
                .map(|(key, node)| key.len() + size(node))
                .sum(),
            _ => 0,
        }
}

/// Checks that a document written as YAML reads as the same document.
fn check_written(document: &YamlDocument) {
    let value = value_of(document.root());
    let written = yaml(&value);
    let (again, malformed) = documents(written.as_bytes());
    assert!(malformed.is_none(), "{malformed:?}\n{written}");
    // A list of objects counts as its entries, and an empty document as none.
    if let [again] = again.as_slice()
        && value.get("items").is_none()
    {
        assert_eq!(value_of(again.root()), value, "{written}");
    }
}

pub(super) fn check_problems(gathered: &Gathered) {
    for problem in &gathered.problems {
        assert!(problem.place.line >= 1 && problem.place.column >= 1);
        assert!(!problem.path.is_empty() && !problem.expected.is_empty());
        let line = problem.to_string();
        assert!(!line.contains(char::is_control), "{line:?}");
    }
}

fn check_policies(gathered: &Gathered) {
    for policy in gathered.policies.iter() {
        let rendered = PluginConfig::of(policy);
        let read = Config::from_json(rendered.config.as_bytes()).unwrap();
        let is_short = policy.document().values().all(pieces::is_short);
        assert!(&read == policy.config() || !is_short, "{}", rendered.config);
    }
}
