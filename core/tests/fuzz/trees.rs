//! Configurations as trees: any JSON, with our keys often enough to get past the first check.

use bolero::{TypeGenerator, produce};
use serde_json::{Map, Value};

use crate::configuration::check;

#[derive(Debug, TypeGenerator)]
enum Tree {
    Null,
    Flag(bool),
    Whole(i64),
    Large(u64),
    Small(u16),
    Number(f64),
    Share(u8),
    Span(u16, u8),
    Word(u8),
    Text(String),
    List(Vec<Self>),
    Object(Vec<(Key, Self)>),
    /// With what has no default, so that the rest is looked at.
    Policy(Vec<(Key, Self)>),
}

#[derive(Debug, TypeGenerator)]
enum Key {
    Ours(u8),
    Any(String),
}

const KEYS: [&str; 44] = [
    "slo",
    "latency",
    "quantile",
    "target",
    "until",
    "successRate",
    "mode",
    "stance",
    "limit",
    "min",
    "max",
    "initial",
    "breaker",
    "tripRatio",
    "minOpen",
    "maxOpen",
    "shed",
    "reply",
    "status",
    "body",
    "maxShare",
    "criticality",
    "header",
    "cohortHeader",
    "default",
    "rules",
    "path",
    "method",
    "clientIdentity",
    "ignore",
    "paths",
    "userAgents",
    "upstreams",
    "match",
    "service",
    "cluster",
    "enforcement",
    "maxUpstreams",
    "keyBy",
    "maxDestinations",
    "overload",
    "statuses",
    "statusesWithRetryAfter",
    "grpcStatuses",
];
const WORDS: [&str; 14] = [
    "observe",
    "enforce",
    "failFast",
    "throughput",
    "headers",
    "firstByte",
    "end",
    "stop",
    "retryElsewhere",
    "critical",
    "sheddable",
    "*",
    "/a*",
    "x-class",
];
const UNITS: [&str; 6] = ["us", "ms", "s", "m", "h", "d"];

impl Tree {
    fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Flag(flag) => (*flag).into(),
            Self::Whole(number) => (*number).into(),
            Self::Large(number) => (*number).into(),
            Self::Small(number) => (*number).into(),
            Self::Number(number) => (*number).into(),
            Self::Share(share) => (f64::from(*share) / 200.0).into(),
            Self::Span(count, unit) => format!("{count}{}", pick(&UNITS, *unit)).into(),
            Self::Word(word) => pick(&WORDS, *word).into(),
            Self::Text(text) => text.as_str().into(),
            Self::List(entries) => entries.iter().map(Self::value).collect(),
            Self::Object(entries) => Value::Object(object(entries)),
            Self::Policy(entries) => policy(entries),
        }
    }
}

fn policy(entries: &[(Key, Tree)]) -> Value {
    let mut object = object(entries);
    let slo = serde_json::json!({"latency": {"quantile": 0.9, "target": "1s"}});
    object.insert("slo".to_owned(), slo);
    Value::Object(object)
}

fn object(entries: &[(Key, Tree)]) -> Map<String, Value> {
    let entry = |(key, tree): &(Key, Tree)| {
        let key = match key {
            Key::Ours(key) => pick(&KEYS, *key),
            Key::Any(text) => text,
        };
        (key.to_owned(), tree.value())
    };
    entries.iter().map(entry).collect()
}

fn pick<'a>(words: &[&'a str], number: u8) -> &'a str {
    words[usize::from(number) % words.len()]
}

#[test]
fn any_tree_is_taken_whole_or_rejected_with_all_that_is_wrong() {
    let entries = produce::<Vec<(Key, Tree)>>().with().len(0..10_usize);
    bolero::check!(name = "configuration_tree")
        .with_generator((produce::<bool>(), entries))
        .with_iterations(3_000)
        .for_each(|(is_policy, entries): &(bool, Vec<(Key, Tree)>)| {
            let document = if *is_policy {
                policy(entries)
            } else {
                Value::Object(object(entries))
            };
            check(document.to_string().as_bytes());
        });
}
