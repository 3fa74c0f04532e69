//! Configurations as bytes.

use serde_json::Value;
use tidegate_core::config::{Config, ConfigErrors, RuleIndex, UpstreamName};

use crate::pieces;

/// Most errors that are kept, and most characters that one repeats of the document.
const MOST_ERRORS: usize = 100;
const MOST_FOUND: usize = 100;

const PIECES: [&str; 48] = [
    r#"{"slo":{"latency":{"quantile":0.9,"target":"1s"}}"#,
    r#""slo":{"#,
    r#""latency":{"#,
    r#""quantile":"#,
    r#""target":"#,
    r#""until":"firstByte""#,
    r#""successRate":"#,
    r#""enabled":"#,
    r#""mode":"observe""#,
    r#""stance":"throughput""#,
    r#""enforcement":"#,
    r#""limit":{"#,
    r#""min":"#,
    r#""max":"#,
    r#""initial":"#,
    r#""maxOpen":"#,
    r#""breaker":{"#,
    r#""tripRatio":"#,
    r#""minOpen":"100ms""#,
    r#""shed":{"#,
    r#""reply":"retryElsewhere""#,
    r#""status":"#,
    r#""body":""#,
    r#""maxShare":"#,
    r#""criticality":{"#,
    r#""header":"x-class""#,
    r#""cohortHeader":"x-user""#,
    r#""default":"sheddable""#,
    r#""rules":[{"#,
    r#""criticality":"critical_plus""#,
    r#""path":"/a*""#,
    r#""method":"GET""#,
    r#""clientIdentity":"*""#,
    r#""ignore":{"#,
    r#""paths":["/healthz"]"#,
    r#""userAgents":[""#,
    r#""upstreams":[{"#,
    r#""match":{"cluster":"a*"}"#,
    r#""service":"web.*""#,
    r#""route":""#,
    r#""maxUpstreams":"#,
    "true",
    "null",
    "18446744073709551616",
    "-1e308",
    "\\ud800",
    "\"5m\"",
    "}",
];

#[test]
fn a_document_is_taken_whole_or_rejected_with_all_that_is_wrong() {
    bolero::check!(name = "configuration")
        .with_iterations(4_000)
        .for_each(|bytes: &[u8]| check(&pieces::text(bytes, &PIECES)));
}

pub(crate) fn check(document: &[u8]) {
    match Config::from_json(document) {
        Ok(config) => check_taken(&config, document),
        Err(errors) => check_rejected(&errors),
    }
}

fn check_rejected(errors: &ConfigErrors) {
    let kept = errors.iter().count();
    assert!((1..=MOST_ERRORS).contains(&kept) && kept <= errors.total());
    let omitted = usize::from(errors.total() > kept);
    assert_eq!(errors.to_string().lines().count(), kept + omitted);
    for error in errors.iter() {
        let line = error.to_string();
        assert!(line.bytes().all(|b| (b' '..=b'~').contains(&b)), "{line:?}");
        assert!(
            !error.path().is_empty() && !error.expected().is_empty(),
            "{line}"
        );
        assert!(error.found().len() <= MOST_FOUND, "{line}");
    }
}

fn check_taken(config: &Config, document: &[u8]) {
    // What the filter takes others can read: it is JSON.
    let mut value: Value = serde_json::from_slice(document).unwrap();
    let again = Config::from_json(value.to_string().as_bytes()).unwrap();
    assert!(&again == config || !pieces::is_short(&value), "{value}");
    let name = UpstreamName {
        service: Some("web.shop"),
        cluster: "ab",
        route: Some("r"),
    };
    let (index, policy) = config.policy_for(&name);
    assert_eq!(config.policy(index), policy);
    if let RuleIndex::Rule(index) = index {
        assert!(
            config.rules()[..index]
                .iter()
                .all(|rule| !rule.upstream().matches(&name))
        );
    }
    for policy in config
        .rules()
        .iter()
        .map(|rule| rule.policy())
        .chain([config.default_policy()])
    {
        let (limit, breaker) = (policy.limit(), policy.breaker());
        assert!(
            1 <= limit.min() && limit.min() <= limit.initial() && limit.initial() <= limit.max()
        );
        assert!(breaker.min_open() <= breaker.max_open());
        assert!((400..=599).contains(&policy.shed().status()));
    }
    // One more key, and it is told by its path and nothing else.
    value["stray"] = Value::Null;
    let errors = Config::from_json(value.to_string().as_bytes()).unwrap_err();
    let paths: Vec<&str> = errors.iter().map(|error| error.path()).collect();
    assert_eq!(paths, ["stray"]);
}
