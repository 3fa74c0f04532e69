//! Recordings made of a few calls.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fmt::Write as _;

use tidegate_graph::{BuildTerms, BuiltGraph, Recording, build};

/// The graph of a recording.
pub fn built(text: &str) -> BuiltGraph {
    build(&Recording::parse(text).unwrap(), BuildTerms::default()).unwrap()
}

/// A call with its figures, in requests and milliseconds.
#[derive(Clone, Debug)]
pub struct Call {
    pub caller: &'static str,
    pub upstream: &'static str,
    pub requests: u32,
    pub failures: u32,
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

pub const CALL: Call = Call {
    caller: "web",
    upstream: "cart",
    requests: 36_000,
    failures: 36,
    mean: 20.0,
    p50: 15.0,
    p95: 40.0,
    p99: 80.0,
};

/// A recording of these calls by Istio, each workload behind a service of its name; `lead` comes before each name.
pub fn recording(calls: &[Call], lead: &str) -> String {
    type Figure = fn(&Call) -> f64;
    let measures: [(&str, Figure); 9] = [
        (r#""rate""#, |call| f64::from(call.requests) / 3_600.0),
        (r#""points""#, |_| 12.0),
        (r#""last_seen""#, |_| 1_700_000_000.0),
        (r#""requests""#, |call| f64::from(call.requests)),
        (r#""failures""#, |call| f64::from(call.failures)),
        (r#"{"mean":"classic"}"#, |call| call.mean),
        (r#"{"p50":"classic"}"#, |call| call.p50),
        (r#"{"p95":"classic"}"#, |call| call.p95),
        (r#"{"p99":"classic"}"#, |call| call.p99),
    ];
    let name = |name: &str| serde_json::to_string(&format!("{lead}{name}")).unwrap();
    let mut answers = Vec::new();
    for (measure, figure) in measures {
        let mut rows = String::new();
        for call in calls {
            let comma = if rows.is_empty() { "" } else { "," };
            write!(rows, r#"{comma}{{"metric":{{"reporter":"source","source_workload_namespace":"shop","source_workload":{},"destination_workload_namespace":"shop","destination_workload":{}}},"value":[1700000000,"{}"]}}"#, name(call.caller), name(call.upstream), figure(call)).unwrap();
        }
        answers.push((measure, rows));
    }
    let mut services = String::new();
    for call in calls {
        let comma = if services.is_empty() { "" } else { "," };
        let upstream = name(call.upstream);
        write!(services, r#"{comma}{{"metric":{{"destination_workload_namespace":"shop","destination_workload":{upstream},"destination_service_namespace":"shop","destination_service_name":{upstream}}},"value":[1700000000,"1"]}}"#).unwrap();
    }
    answers.push((r#""services""#, services));
    let answers: Vec<String> = answers
        .into_iter()
        .map(|(measure, rows)| format!(r#"{{"family":"istio-workloads","measure":{measure},"promql":"x","body":{{"status":"success","data":{{"resultType":"vector","result":[{rows}]}}}}}}"#))
        .collect();
    format!(
        r#"{{"format":"tidegate-graph-recording/1","observed":{{"end":1700000000,"window_seconds":3600,"step_seconds":300}},"caller_label":"job","answers":[{}]}}"#,
        answers.join(",")
    )
}

pub fn of(calls: &[Call]) -> BuiltGraph {
    built(&recording(calls, ""))
}
