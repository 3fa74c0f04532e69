//! `tidegate status`.

use std::collections::BTreeMap;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::output::{BAD, GOOD, NOTED, OutputOption, table};
use super::prometheus::PrefixedPrometheusOptions;
use super::running::{ListedPolicy, RunningModule};
use super::server::ServerOptions;
use super::{CommandFailure, CommandOutcome, output, running, switch};

/// Show which proxies run which version
///
/// Asks a running control service. The exit code is 1 if a proxy does not run the wanted version, or if by its metrics it runs the
/// configuration of no policy in force.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate status
  tidegate status --server https://tidegate.example:8443 --ca ca.pem
  tidegate status --prometheus http://127.0.0.1:9090
  tidegate status --prometheus https://prometheus.example --prometheus-ca ca.pem --prometheus-token-file token
  tidegate status -o json | jq -r '.proxies[].id'")]
pub(super) struct Status {
    #[command(flatten)]
    prometheus: PrefixedPrometheusOptions,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    output: OutputOption,
}

/// The shown part of the service's answer about a proxy.
#[derive(Debug, Deserialize)]
struct ShownProxy {
    id: String,
    #[serde(default)]
    cluster: String,
    policy: Option<String>,
    #[serde(default)]
    resources: BTreeMap<String, ShownResource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownResource {
    wanted: Option<String>,
    running: Option<String>,
    last_rejected: Option<StatusRejection>,
}

#[derive(Debug, Deserialize)]
struct StatusRejection {
    version: String,
    message: String,
}

/// Whether a proxy runs what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ProxyState {
    Current,
    Behind,
    Rejected(String),
}

/// Digits of a version that are shown in a table.
const SHOWN_DIGITS: usize = 12;

impl Status {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        let server = self.server.client()?;
        let answer = server.get("/v1/proxies", self.server.timeout)?;
        let unreadable = |error: serde_json::Error| {
            CommandFailure(format!(
                "{}: the answer cannot be read: {error}",
                self.server.server
            ))
        };
        let mut value: Value = serde_json::from_slice(&answer).map_err(unreadable)?;
        let proxies = value.get("proxies").cloned().unwrap_or_default();
        let proxies: Vec<ShownProxy> = serde_json::from_value(proxies).map_err(unreadable)?;
        let states: Vec<ProxyState> = proxies
            .iter()
            .flat_map(|proxy| proxy.resources.values().map(ShownResource::state))
            .collect();
        let policies = ListedPolicy::all(&server.get("/v1/policies", self.server.timeout)?)?;
        let running: Option<Vec<RunningModule>> = self
            .prometheus
            .client(self.server.timeout)?
            .map(|client| running::ask(&client, &policies))
            .transpose()?;
        if let (Some(running), Some(whole)) = (&running, value.as_object_mut()) {
            whole.insert("running".to_owned(), running::value(running));
        }
        if running.is_none() && proxies.is_empty() && !policies.is_empty() {
            let count = policies.len();
            output::note(&format_args!(
                "{NOTED}note{NOTED:#}: policies: {count}, but no proxy has a stream here; in a mesh, --prometheus URL shows what proxies run"
            ));
        }
        let modes = policies.iter();
        let modes: BTreeMap<&str, &str> =
            modes.map(|one| (one.name.as_str(), one.mode())).collect();
        let off = value.get("disabled").map(switch::notice);
        let wrong = value.get("problems").and_then(Value::as_u64);
        let wrong = wrong.filter(|count| *count > 0).map(problems);
        let text = || {
            let (off, wrong) = (off.unwrap_or_default(), wrong.unwrap_or_default());
            let shown = text(&proxies, &states, &modes);
            let running = running.as_deref().map(running::text).unwrap_or_default();
            format!("{off}{wrong}{shown}{running}")
        };
        self.output.print(&value, text)?;
        let is_behind = states.iter().any(|state| *state != ProxyState::Current);
        let mut by_metrics = running.iter().flatten();
        Ok(if is_behind || by_metrics.any(RunningModule::is_foreign) {
            CommandOutcome::Found
        } else {
            CommandOutcome::Clean
        })
    }
}

impl ShownResource {
    fn state(&self) -> ProxyState {
        if self.wanted == self.running {
            return ProxyState::Current;
        }
        match &self.last_rejected {
            Some(last) if self.wanted.as_ref() == Some(&last.version) => {
                ProxyState::Rejected(last.message.clone())
            }
            _ => ProxyState::Behind,
        }
    }
}

/// A warning about errors in policies. Without it, all proxies look current although a change is not in force.
fn problems(count: u64) -> String {
    format!(
        "{BAD}errors in policies: {count}{BAD:#}; their last valid version is in force (/v1/policies and tidegate validate name the errors)\n"
    )
}

fn text(proxies: &[ShownProxy], states: &[ProxyState], modes: &BTreeMap<&str, &str>) -> String {
    let mut rows: Vec<[String; 8]> = Vec::new();
    for proxy in proxies {
        let policy = proxy.policy.as_deref().unwrap_or_default();
        let mode = modes.get(policy).copied().unwrap_or_default();
        for (name, resource) in &proxy.resources {
            rows.push([
                shown(&proxy.id),
                shown(&proxy.cluster),
                shown(policy),
                shown(mode),
                shown(name),
                version(resource.wanted.as_deref()),
                version(resource.running.as_deref()),
                match resource.state() {
                    ProxyState::Current => "current".to_owned(),
                    ProxyState::Behind => "behind".to_owned(),
                    ProxyState::Rejected(message) => format!("rejected: {}", shown(&message)),
                },
            ]);
        }
    }
    let headings = [
        "PROXY", "CLUSTER", "POLICY", "MODE", "RESOURCE", "WANTED", "RUNNING", "STATE",
    ];
    let count =
        |wanted: fn(&ProxyState) -> bool| states.iter().filter(|state| wanted(state)).count();
    let current = count(|state| *state == ProxyState::Current);
    let behind = count(|state| *state == ProxyState::Behind);
    let rejected = count(|state| matches!(state, ProxyState::Rejected(_)));
    format!(
        "{}proxies: {}, {GOOD}current: {current}{GOOD:#}, {NOTED}behind: {behind}{NOTED:#}, {BAD}rejected: {rejected}{BAD:#}\n",
        table(headings, &rows),
        proxies.len(),
    )
}

fn version(version: Option<&str>) -> String {
    version.map_or_else(
        || "-".to_owned(),
        |version| version.chars().take(SHOWN_DIGITS).collect(),
    )
}

/// A text from a proxy, without control characters, which the terminal would interpret.
fn shown(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
