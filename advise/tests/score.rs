//! Scores from answers of a Prometheus: recorded, missing, failed, partial, hostile.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_advise::score::{
    ReadingsError, ScoreObjective, ScoreQuery, ScoreReadings, ScoreTerms, ScoredUpstream,
    score_queries, scored_upstreams,
};
use tidegate_graph::prometheus::{AskError, AskPrometheus};

/// Answers to the queries, as Prometheus gave them.
const RECORDED: &str = include_str!("recordings/score.json");
const END: u64 = 1_700_000_000;

/// A Prometheus that answers from a recording, by name of the query.
struct Recorded {
    answers: BTreeMap<String, Value>,
    queries: Vec<ScoreQuery>,
    asked: RefCell<Vec<String>>,
}

impl AskPrometheus for Recorded {
    fn ask(&self, promql: &str, time: u64, _: u64) -> Result<String, AskError> {
        assert_eq!(time, END);
        let query = self.queries.iter().find(|query| query.promql == promql);
        let name = query.map_or("probe", |query| query.name.as_str());
        self.asked.borrow_mut().push(name.to_owned());
        match self.answers.get(name) {
            Some(Value::Null) => Err(AskError::Timeout {
                url: "http://prometheus".to_owned(),
                timeout: std::time::Duration::from_secs(30),
            }),
            Some(answer) => Ok(answer.to_string()),
            None => Ok(vector(&json!([]))),
        }
    }
}

fn vector(result: &Value) -> String {
    json!({"status": "success", "data": {"resultType": "vector", "result": result}}).to_string()
}

/// The recording with some answers replaced; null is not an answer.
fn recorded(changes: &[(&str, Value)]) -> Recorded {
    let mut answers: BTreeMap<String, Value> = serde_json::from_str(RECORDED).unwrap();
    for (name, answer) in changes {
        answers.insert((*name).to_owned(), answer.clone());
    }
    Recorded {
        answers,
        queries: score_queries(3_600, 300).unwrap(),
        asked: RefCell::default(),
    }
}

fn read(changes: &[(&str, Value)]) -> Result<ScoreReadings, ReadingsError> {
    let prometheus = recorded(changes);
    ScoreReadings::ask(&prometheus, &prometheus.queries, END)
}

fn scored(changes: &[(&str, Value)]) -> Vec<ScoredUpstream> {
    let promised = |upstream: &str| {
        upstream.contains("cart").then(|| ScoreObjective {
            quantile: 0.95,
            success_rate: 0.99,
            origin: "policy shop/cart, upstreams[0]".to_owned(),
        })
    };
    let terms = ScoreTerms::ours().unwrap();
    scored_upstreams(&read(changes).unwrap(), &terms, promised)
}

fn of<'a>(scored: &'a [ScoredUpstream], name: &str) -> &'a ScoredUpstream {
    scored
        .iter()
        .find(|one| one.upstream.contains(name))
        .unwrap()
}

/// Name, score to three places, and reason of each part.
fn parts(one: &ScoredUpstream) -> Vec<(&str, Option<f64>, &str)> {
    let rounded = |score: f64| (score * 1_000.0).round() / 1_000.0;
    let parts = one.parts.iter();
    parts
        .map(|part| (part.name, part.score.map(rounded), part.reason.as_str()))
        .collect()
}

#[test]
fn each_part_has_a_score_and_a_reason() {
    let scored = scored(&[]);
    let cart = of(&scored, "cart");
    let expected = [
        (
            "latency",
            Some(0.956),
            "7 % of the answers late, 5 % allowed by policy shop/cart, upstreams[0]",
        ),
        (
            "success",
            Some(1.0),
            "0.5 % of the answers failed, 1 % allowed by policy shop/cart, upstreams[0]",
        ),
        (
            "needless",
            Some(0.8),
            "1 % of the requests shed while nothing was overloaded, of 4 % in all",
        ),
        ("cpu", Some(0.5), "600 us of CPU for a request"),
        ("memory", Some(1.0), "120 MiB for a proxy"),
    ];
    assert_eq!(parts(cart), expected);
    let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-3;
    assert!(
        near(cart.benefit, 0.978) && near(cart.cost, 0.775),
        "{cart:?}"
    );
    assert!(near(cart.score, 3.506 / 4.0), "{cart:?}");
    let names: Vec<&str> = scored.iter().map(|one| one.upstream.as_str()).collect();
    assert_eq!(
        names[0], "outbound|80||web.shop.svc.cluster.local",
        "the worst comes first"
    );
}

#[test]
fn a_counter_that_is_missing_is_0_and_what_is_not_known_has_no_score() {
    let scored = scored(&[]);
    let web = of(&scored, "web");
    let origin = "the default, because no policy names the upstream";
    let late = format!("3 % of the answers late, 1 % allowed by {origin}");
    let failed = format!("0 % of the answers failed, 0.1 % allowed by {origin}");
    let expected = [
        ("latency", Some(0.778), late.as_str()),
        ("success", Some(1.0), failed.as_str()),
        (
            "needless",
            Some(0.0),
            "0 % of the requests shed while nothing was overloaded, of 0 % in all; 10 % would have been, of 10 % in all",
        ),
        (
            "cpu",
            None,
            "not known: Prometheus has no CPU time of the proxies' containers (cAdvisor, by namespace and pod)",
        ),
        (
            "memory",
            None,
            "not known: Prometheus has no envoy_server_memory_physical_size of the proxies",
        ),
    ];
    assert_eq!(parts(web), expected);
    assert!(
        (web.score.unwrap() - 1.778 / 3.0).abs() < 1e-3,
        "the mean of what is known: {web:?}"
    );
    // Nothing was shed, so that no limit is needed to say that nothing was shed without need.
    let quiet = of(&scored, "quiet");
    assert_eq!(
        (quiet.score, quiet.benefit, quiet.cost),
        (None, None, Some(1.0))
    );
    assert_eq!(
        quiet.parts[0].reason,
        "not known: 40 answers, expected at least 100"
    );
    assert_eq!(
        scored.last().unwrap().upstream,
        "quiet",
        "those without a score come last"
    );
    let text = serde_json::to_string(quiet).unwrap();
    assert!(
        !text.contains("null") && !text.contains("\"score\":0"),
        "{text}"
    );
}

#[test]
fn without_a_limit_nothing_is_said_of_sheds() {
    let empty = serde_json::from_str(&vector(&json!([]))).unwrap();
    let scored = scored(&[("limits", empty)]);
    let cart = of(&scored, "cart");
    assert_eq!(
        cart.parts[2].reason,
        "not known: Prometheus has no limit of this upstream"
    );
    assert_eq!((cart.score, cart.cost), (None, None));
    assert!(cart.benefit.is_some());
}

#[test]
fn a_query_that_fails_leaves_its_part_unknown() {
    let rejected = json!({"status": "error", "errorType": "execution", "error": "query timed out"});
    let changes = [("cpu_us", rejected), ("late", Value::Null)];
    let readings = read(&changes).unwrap();
    assert_eq!(
        readings.warnings,
        [
            "the query late failed: http://prometheus: no answer within 30s: a longer timeout or a shorter window may help",
            "the query cpu_us failed: Prometheus rejected the query: execution: query timed out"
        ]
    );
    let scored = scored(&changes);
    let cart = of(&scored, "cart");
    assert!(
        cart.parts[0]
            .reason
            .starts_with("not known: the query failed: http://prometheus")
    );
    assert_eq!((cart.parts[0].score, cart.score), (None, None));
    assert!(cart.cost.is_some(), "the cost is made of the others");
}

#[test]
fn partial_answers_are_warned_of_and_nan_is_not_known() {
    let row = json!({"metric": {"tidegate_upstream": "outbound|80||cart.shop.svc.cluster.local"}, "value": [END, "NaN"]});
    let answer = json!({"status": "success", "isPartial": true, "data": {"resultType": "vector", "result": [row]}});
    let changes = [("memory_mib", answer)];
    assert_eq!(
        read(&changes).unwrap().warnings,
        ["memory_mib: the answer is partial"]
    );
    assert_eq!(of(&scored(&changes), "cart").parts[4].score, None);
}

#[test]
fn an_outage_ends_the_questions_and_no_requests_are_an_error() {
    let prometheus = recorded(&[("requests", Value::Null)]);
    let error = ScoreReadings::ask(&prometheus, &prometheus.queries, END).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the query requests failed: http://prometheus: no answer"),
        "{error}"
    );
    let lost = ["answers", "late", "failed"].map(|name| (name, Value::Null));
    let prometheus = recorded(&lost);
    ScoreReadings::ask(&prometheus, &prometheus.queries, END).unwrap();
    assert_eq!(
        *prometheus.asked.borrow(),
        ["probe", "requests", "answers", "late", "failed"]
    );
    let down = recorded(&[("probe", Value::Null)]);
    let error = ScoreReadings::ask(&down, &down.queries, END).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("http://prometheus: no answer within 30s"),
        "{error}"
    );
    let empty = serde_json::from_str(&vector(&json!([]))).unwrap();
    let error = read(&[("requests", empty)]).unwrap_err().to_string();
    assert!(
        error.starts_with("no upstream of Tidegate has requests in the window"),
        "{error}"
    );
}
