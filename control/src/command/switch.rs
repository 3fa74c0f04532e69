//! `tidegate disable` and `tidegate enable`: the switch for all policies of a running service.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::client::ServiceWrite;
use super::output::{BAD, OutputOption};
use super::server::ServerOptions;
use super::{CommandFailure, CommandOutcome};

/// The path of the switch in REST.
const PATH: &str = "/v1/disabled";

/// Turn off all policies of a running control service: every request passes, and nothing is counted
///
/// Proxies follow within seconds and keep their learned state. The policies stay off until `tidegate enable --all`,
/// even if the control service restarts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate disable --all --note 'incident 4711' --token-file token
  tidegate status
  tidegate enable --all --token-file token

One policy alone: set enabled: false in it.
Without access to the control service, in Kubernetes: kubectl -n NAMESPACE annotate lease tidegate tidegate.dev/disabled='incident 4711'")]
pub(super) struct Disable {
    /// All policies
    #[arg(long, required = true)]
    all: bool,
    /// Note for other operators, such as the number of an incident
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    #[command(flatten)]
    write: WriteOptions,
}

/// Turn the policies of a running control service on again
#[derive(Debug, Args)]
pub(super) struct Enable {
    /// All policies; those with `enabled: false` stay off
    #[arg(long, required = true)]
    all: bool,
    #[command(flatten)]
    write: WriteOptions,
}

#[derive(Debug, Args)]
struct WriteOptions {
    /// Bearer token for writing; without it, the client certificate decides
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    output: OutputOption,
}

impl Disable {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        self.write.ask(&ServiceWrite::Put(self.note.clone()))
    }
}

impl Enable {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        self.write.ask(&ServiceWrite::Delete)
    }
}

impl WriteOptions {
    fn ask(&self, write: &ServiceWrite) -> Result<CommandOutcome, CommandFailure> {
        let token = match &self.token_file {
            Some(path) => Some(fs::read_to_string(path).map_err(|error| {
                CommandFailure(format!("--token-file {}: {error}", path.display()))
            })?),
            None => None,
        };
        let token = token.as_deref().map(str::trim);
        let client = self.server.client()?;
        let answer = client.write(PATH, write, token, self.server.timeout)?;
        let unreadable = |error: serde_json::Error| {
            let server = &self.server.server;
            CommandFailure(format!("{server}: the answer cannot be read: {error}"))
        };
        let value: Value = serde_json::from_slice(&answer).map_err(unreadable)?;
        self.output.print(&value, || text(&value))?;
        Ok(CommandOutcome::Clean)
    }
}

fn text(value: &Value) -> String {
    match notice(value) {
        on if on.is_empty() => "policies are on, except those with enabled: false\n".to_owned(),
        off => off,
    }
}

/// The notice that all policies are off; empty while they are on.
pub(super) fn notice(value: &Value) -> String {
    if value.get("all").and_then(Value::as_bool) != Some(true) {
        return String::new();
    }
    let by = value.get("by").and_then(Value::as_array);
    let notes: String = by
        .into_iter()
        .flatten()
        .map(|one| {
            let part = |key| one.get(key).and_then(Value::as_str).unwrap_or_default();
            let plain = |text: &str| text.replace(char::is_control, " ");
            format!("  {}: {}\n", plain(part("source")), plain(part("note")))
        })
        .collect();
    format!("{BAD}all policies are off, every request passes{BAD:#}\n{notes}")
}
