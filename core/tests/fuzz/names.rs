//! Names of clusters, and the patterns that rules match them with.

use tidegate_core::config::{Config, Pattern};
use tidegate_core::{Direction, Engine, Instant, ServiceName, UpstreamKey};

use crate::pieces;

const PIECES: [&str; 16] = [
    "outbound|",
    "inbound|",
    "inbound-vip|",
    "outbound_.",
    "inbound_.",
    "_.",
    "|",
    "||",
    "80",
    "65536",
    "+1",
    "_",
    "reviews.shop.svc.cluster.local",
    "PassthroughCluster",
    "BlackHoleCluster",
    "é",
];
/// Few letters, so that names match.
const LETTERS: [&str; 4] = ["a", "b", "*", "é"];

#[test]
fn a_name_is_read_into_parts_of_itself_and_keeps_its_handle() {
    let config = r#"{"slo":{"latency":{"quantile":0.9,"target":"1s"}},"maxUpstreams":2,
        "upstreams":[{"match":{"route":"*a*"}},{"match":{"service":"reviews.*"}}]}"#;
    let config = Config::from_json(config.as_bytes()).unwrap();
    bolero::check!(name = "cluster_names")
        .with_iterations(10_000)
        .for_each(|bytes: &[u8]| {
            let name = pieces::text(bytes, &PIECES);
            let name = String::from_utf8_lossy(&name);
            check_parts(&name);
            let half = (0..=name.len() / 2)
                .rev()
                .find(|at| name.is_char_boundary(*at))
                .unwrap_or_default();
            let (cluster, route) = name.split_at(half);
            check_handles(&config, cluster, route);
        });
}

fn check_parts(name: &str) {
    let parts = ServiceName::parse(name);
    let Some(direction) = parts.direction else {
        assert_eq!(
            (parts.port, parts.subset, parts.host),
            (None, None, Some(name))
        );
        return;
    };
    assert!(parts.port.is_some());
    let direction = match direction {
        Direction::Outbound => "outbound",
        Direction::Inbound => "inbound",
    };
    assert!(name.starts_with(direction));
    let text = |part: Option<&str>| part.unwrap_or_default().to_owned();
    let (subset, host) = (text(parts.subset), text(parts.host));
    assert!(name.contains(&subset) && name.ends_with(&host));
    // Written as Istio does it means the same, unless a separator stands within a part.
    let written = format!("{direction}|{}|{subset}|{host}", parts.port.unwrap());
    if !subset.contains('|') {
        assert_eq!(ServiceName::parse(&written), parts, "{written}");
    }
}

fn check_handles(config: &Config, cluster: &str, route: &str) {
    let now = Instant::ZERO;
    let mut engine = Engine::new(config.clone(), now, 1);
    let upstream = engine.upstream(cluster, Some(route), now);
    assert_eq!(engine.upstream(cluster, Some(route), now), upstream);
    assert_eq!(
        engine.hash(upstream),
        UpstreamKey::hash(cluster, engine.key(upstream).route.as_deref())
    );
    assert_eq!(engine.key(upstream).cluster, cluster);
    for other in ["one", "two", "three"] {
        // Beyond the cap they share one.
        let _ = engine.upstream(other, Some(route), now);
    }
    assert!(engine.snapshot(now).upstreams.len() <= 3);
}

#[test]
fn patterns_match_as_defined() {
    bolero::check!(name = "patterns")
        .with_iterations(20_000)
        .for_each(|bytes: &[u8]| {
            let middle = bytes
                .iter()
                .position(|byte| *byte == b' ')
                .unwrap_or(bytes.len() / 2);
            let (pattern, name) = bytes.split_at(middle);
            let (pattern, name) = (
                pieces::text(pattern, &LETTERS),
                pieces::text(name, &LETTERS),
            );
            let (Ok(pattern), Ok(name)) = (str::from_utf8(&pattern), str::from_utf8(&name)) else {
                return;
            };
            if let Some(parsed) = Pattern::parse(pattern) {
                assert_eq!(parsed.as_str(), pattern);
                assert_eq!(
                    parsed.matches(name),
                    matches_by_definition(pattern, name),
                    "{pattern:?} {name:?}"
                );
            } else {
                assert!(
                    pattern.is_empty() || pattern.len() > 512 || pattern.contains(char::is_control)
                );
            }
        });
}

/// For each beginning of the name, whether the pattern so far matches it.
fn matches_by_definition(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let mut matched = vec![false; name.len() + 1];
    matched[0] = true;
    for wanted in pattern.chars() {
        if wanted == '*' {
            let first = matched.iter().position(|is| *is).unwrap_or(matched.len());
            matched[first..].fill(true);
        } else {
            for at in (0..name.len()).rev() {
                matched[at + 1] = matched[at] && name[at] == wanted;
            }
            matched[0] = false;
        }
    }
    matched[name.len()]
}
