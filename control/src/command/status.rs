//! `tidegate status`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use tidegate_core::config::parse_duration;

use super::client::{ClientTlsFiles, ServiceClient};
use super::output::{BAD, GOOD, NOTED, OutputOption, table};
use super::{CommandFailure, CommandOutcome};

/// Show which proxies run which version
///
/// Asks a running service. The exit code is 1 if a proxy does not run what it should.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate status
  tidegate status --server https://tidegate.example:8443 --ca ca.pem
  tidegate status -o json | jq -r '.proxies[].id'")]
pub(super) struct Status {
    /// URL of the service's REST interface
    #[arg(
        long,
        value_name = "URL",
        env = "TIDEGATE_SERVER",
        default_value = "http://127.0.0.1:18080"
    )]
    server: String,
    /// Certificate authorities (PEM) for the service; required with https
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CA")]
    ca: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CERT", requires_all = ["key", "ca"])]
    cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", env = "TIDEGATE_KEY", requires_all = ["cert", "ca"])]
    key: Option<PathBuf>,
    /// Longest time for the response
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    timeout: Duration,
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
        let tls = self.ca.as_ref().map(|ca| ClientTlsFiles {
            authorities: ca.clone(),
            identity: self.cert.clone().zip(self.key.clone()),
        });
        let server = ServiceClient::new(&self.server, tls.as_ref())?;
        let answer = server.get("/v1/proxies", self.timeout)?;
        let unreadable = |error: serde_json::Error| {
            CommandFailure(format!(
                "{}: the answer cannot be read: {error}",
                self.server
            ))
        };
        let value: Value = serde_json::from_slice(&answer).map_err(unreadable)?;
        let proxies = value.get("proxies").cloned().unwrap_or_default();
        let proxies: Vec<ShownProxy> = serde_json::from_value(proxies).map_err(unreadable)?;
        let states: Vec<ProxyState> = proxies
            .iter()
            .flat_map(|proxy| proxy.resources.values().map(ShownResource::state))
            .collect();
        self.output.print(&value, || text(&proxies, &states))?;
        Ok(
            if states.iter().all(|state| *state == ProxyState::Current) {
                CommandOutcome::Clean
            } else {
                CommandOutcome::Found
            },
        )
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

fn text(proxies: &[ShownProxy], states: &[ProxyState]) -> String {
    let mut rows: Vec<[String; 7]> = Vec::new();
    for proxy in proxies {
        for (name, resource) in &proxy.resources {
            rows.push([
                shown(&proxy.id),
                shown(&proxy.cluster),
                shown(proxy.policy.as_deref().unwrap_or_default()),
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
        "PROXY", "CLUSTER", "POLICY", "RESOURCE", "WANTED", "RUNNING", "STATE",
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

/// A text from a proxy without control characters, which could control the terminal.
fn shown(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a time such as 250ms, 5s or 1m".to_owned())
}
