//! What proxies run according to their metrics, for `tidegate status`. Where Istio delivers configurations, there is no
//! other source.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_control::render::PluginConfig;
use tidegate_graph::prometheus::{AnswerSeries, AskPrometheus as _, PrometheusClient, parse};

use super::CommandFailure;
use super::output::table;
use super::prometheus::now;

/// Selects what runs now: series of former configurations are 0.
const QUERY: &str = "tidegate_info == 1";

/// Largest accepted answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// The shown part of the service's answer about a policy.
#[derive(Debug, Deserialize)]
pub(super) struct ListedPolicy {
    pub(super) name: String,
    #[serde(default)]
    config: String,
    enabled: Option<bool>,
    #[serde(default)]
    mode: String,
}

impl ListedPolicy {
    /// The policies in the service's answer.
    pub(super) fn all(answer: &[u8]) -> Result<Vec<Self>, CommandFailure> {
        let unreadable =
            |error: serde_json::Error| CommandFailure(format!("/v1/policies: {error}"));
        let mut answer: Value = serde_json::from_slice(answer).map_err(unreadable)?;
        match answer.get_mut("policies").map(Value::take) {
            Some(policies) => serde_json::from_value(policies).map_err(unreadable),
            None => Ok(Vec::new()),
        }
    }

    /// Its mode, in the words of the label `tidegate_mode`.
    pub(super) fn mode(&self) -> &str {
        if self.enabled == Some(false) {
            return "disabled";
        }
        &self.mode
    }
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
    /// Whether it is what the service gives to proxies that no policy matches.
    is_default: bool,
}

impl RunningModule {
    /// Whether the configuration is known, and not one that the service gives out.
    pub(super) fn is_foreign(&self) -> bool {
        self.policies.is_empty() && !self.is_default && !self.config.is_empty()
    }
}

/// Asks Prometheus; `policies` are those of the service.
pub(super) fn ask(
    client: &PrometheusClient,
    policies: &[ListedPolicy],
) -> Result<Vec<RunningModule>, CommandFailure> {
    let mut by_config: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for policy in policies {
        let names = by_config.entry(&policy.config).or_default();
        names.push(policy.name.clone());
    }
    let text = client
        .ask(QUERY, now()?, MAX_ANSWER_BYTES)
        .map_err(|error| CommandFailure(error.to_string()))?;
    let answer = parse(&text).map_err(|error| CommandFailure(error.to_string()))?;
    let running = answer.series.iter().map(|series| of(series, &by_config));
    let mut running: Vec<RunningModule> = running.collect();
    running.sort_by(|a, b| a.proxy.cmp(&b.proxy));
    Ok(running)
}

fn of(series: &AnswerSeries, by_config: &BTreeMap<&str, Vec<String>>) -> RunningModule {
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
        policies: by_config.get(&*config).cloned().unwrap_or_default(),
        is_default: [PluginConfig::unmatched(), PluginConfig::unmatched_and_off()]
            .iter()
            .any(|default| default.digest() == config),
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
            let policies = match it.policies.as_slice() {
                [] if it.is_default => "none matches: the default".to_owned(),
                [] => "of no policy in force".to_owned(),
                names => names.join(", "),
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
