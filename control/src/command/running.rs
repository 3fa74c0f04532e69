//! What proxies run according to their metrics, for `tidegate status`. Where Istio delivers configurations, there is no
//! other source.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_control::traffic::{CredentialFiles, PrometheusTerms};
use tidegate_graph::prometheus::{AnswerSeries, AskPrometheus as _, parse};

use super::CommandFailure;
use super::output::table;
use super::prometheus::{now, unread};

/// Selects what runs now: series of former configurations are 0.
const QUERY: &str = "tidegate_info == 1";

/// Largest accepted answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// The shown part of the service's answer about a policy.
#[derive(Debug, Deserialize)]
struct ListedPolicy {
    name: String,
    #[serde(default)]
    config: String,
}

/// What a proxy runs.
#[derive(Debug)]
pub(super) struct RunningModule {
    proxy: String,
    module: String,
    config: String,
    mode: String,
    /// The policies with this configuration.
    policies: Vec<String>,
}

/// Asks the Prometheus at `url`; `policies` is the service's list of policies.
pub(super) fn ask(
    url: &str,
    policies: &[u8],
    timeout: Duration,
) -> Result<Vec<RunningModule>, CommandFailure> {
    let listed: Value = serde_json::from_slice(policies)
        .map_err(|error| CommandFailure(format!("/v1/policies: {error}")))?;
    let listed = listed.get("policies").cloned().unwrap_or_default();
    let listed: Vec<ListedPolicy> = serde_json::from_value(listed)
        .map_err(|error| CommandFailure(format!("/v1/policies: {error}")))?;
    let mut by_config: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for policy in listed {
        by_config
            .entry(policy.config)
            .or_default()
            .push(policy.name);
    }
    let terms = PrometheusTerms {
        url: url.to_owned(),
        credentials: CredentialFiles::None,
        authorities: None,
        identity: None,
        timeout,
    };
    let client = terms.client().map_err(unread)?;
    let text = client
        .ask(QUERY, now()?, MAX_ANSWER_BYTES)
        .map_err(|error| CommandFailure(error.to_string()))?;
    let answer = parse(&text).map_err(|error| CommandFailure(error.to_string()))?;
    let running = answer.series.iter().map(|series| of(series, &by_config));
    let mut running: Vec<RunningModule> = running.collect();
    running.sort_by(|a, b| a.proxy.cmp(&b.proxy));
    Ok(running)
}

fn of(series: &AnswerSeries, by_config: &BTreeMap<String, Vec<String>>) -> RunningModule {
    let label = |name: &str| series.metric.get(name).cloned().unwrap_or_default();
    let proxy = match (label("namespace"), label("pod")) {
        (namespace, pod) if !pod.is_empty() => format!("{namespace}/{pod}"),
        _ => label("instance"),
    };
    let config = label("tidegate_config");
    RunningModule {
        proxy,
        module: label("tidegate_version"),
        mode: label("tidegate_mode"),
        policies: by_config.get(&config).cloned().unwrap_or_default(),
        config,
    }
}

/// For programs.
pub(super) fn value(running: &[RunningModule]) -> Value {
    let one = |it: &RunningModule| json!({"proxy": it.proxy, "module": it.module, "config": it.config, "mode": it.mode, "policies": it.policies});
    running.iter().map(one).collect()
}

/// For people.
pub(super) fn text(running: &[RunningModule]) -> String {
    let plain = |text: &str| match text.replace(char::is_control, " ") {
        empty if empty.is_empty() => "-".to_owned(),
        text => text,
    };
    let rows: Vec<[String; 5]> = running
        .iter()
        .map(|it| {
            let policies = if it.policies.is_empty() {
                "of no policy in force".to_owned()
            } else {
                it.policies.join(", ")
            };
            [
                plain(&it.proxy),
                plain(&it.module),
                plain(&it.config),
                plain(&policies),
                plain(&it.mode),
            ]
        })
        .collect();
    let headings = ["BY METRICS", "MODULE", "CONFIG", "POLICY", "MODE"];
    format!("\n{}", table(headings, &rows))
}
