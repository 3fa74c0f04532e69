//! The options for Prometheus: its address and the credentials.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use tidegate_control::traffic::{CredentialFiles, PrometheusTerms, TrafficError};
use tidegate_core::config::parse_duration;
use tidegate_graph::output as forms;
use tidegate_graph::prometheus::PrometheusClient;

use super::output::NOTED;
use super::{CommandFailure, output};

/// The warning about credentials over http.
const SENT_IN_CLEAR: &str = "the credentials go over http, which others can read: expected https";

/// The options of every command that asks Prometheus.
#[derive(Debug, Args)]
pub(super) struct PrometheusOptions {
    /// URL of Prometheus, with its path prefix if it has one
    #[arg(long = "prometheus", value_name = "URL", env = "TIDEGATE_PROMETHEUS")]
    url: Option<String>,
    /// File with a bearer token
    #[arg(long, value_name = "FILE", conflicts_with = "basic_user")]
    token_file: Option<PathBuf>,
    /// User for basic authentication
    #[arg(long, value_name = "NAME", requires = "basic_password_file")]
    basic_user: Option<String>,
    /// File with the password for basic authentication
    #[arg(long, value_name = "FILE", requires = "basic_user")]
    basic_password_file: Option<PathBuf>,
    /// Certificate authorities (PEM) instead of those of the system
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Longest time for the answer to one query
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    timeout: Duration,
}

impl PrometheusOptions {
    /// Whether a Prometheus is given.
    pub(super) const fn is_given(&self) -> bool {
        self.url.is_some()
    }

    /// Longest time for one answer.
    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A client of it. Warns about credentials that others could read.
    pub(super) fn client(&self) -> Result<PrometheusClient, CommandFailure> {
        let client = self.terms()?.client().map_err(unread)?;
        if client.sends_credentials_in_clear() {
            output::note(&format_args!("{NOTED}warning{NOTED:#}: {SENT_IN_CLEAR}"));
        }
        Ok(client)
    }

    /// Its address and the credentials.
    pub(super) fn terms(&self) -> Result<PrometheusTerms, CommandFailure> {
        let Some(url) = self.url.clone() else {
            return Err(CommandFailure(
                "found no Prometheus, expected --prometheus <URL>".to_owned(),
            ));
        };
        let user = self.basic_user.clone();
        Ok(PrometheusTerms {
            url,
            credentials: credentials(
                self.token_file.clone(),
                user.zip(self.basic_password_file.clone()),
            ),
            authorities: self.ca.clone(),
            identity: self.cert.clone().zip(self.key.clone()),
            timeout: self.timeout,
        })
    }
}

/// The same options for a command whose own server has `--ca`, `--cert` and `--key`; the names are those of `serve`.
#[derive(Debug, Args)]
pub(super) struct PrefixedPrometheusOptions {
    /// URL of a Prometheus that scrapes the proxies: show what each proxy reports in its metrics, the only source in a
    /// mesh
    #[arg(long, value_name = "URL", env = "TIDEGATE_PROMETHEUS")]
    prometheus: Option<String>,
    /// File with a bearer token for Prometheus
    #[arg(
        long,
        value_name = "FILE",
        env = "TIDEGATE_PROMETHEUS_TOKEN_FILE",
        conflicts_with = "prometheus_basic_user"
    )]
    prometheus_token_file: Option<PathBuf>,
    /// User for basic authentication at Prometheus
    #[arg(
        long,
        value_name = "NAME",
        env = "TIDEGATE_PROMETHEUS_BASIC_USER",
        requires = "prometheus_basic_password_file"
    )]
    prometheus_basic_user: Option<String>,
    /// File with the password of that user
    #[arg(
        long,
        value_name = "FILE",
        env = "TIDEGATE_PROMETHEUS_BASIC_PASSWORD_FILE",
        requires = "prometheus_basic_user"
    )]
    prometheus_basic_password_file: Option<PathBuf>,
    /// Certificate authorities (PEM) of Prometheus, instead of those of the system
    #[arg(long, value_name = "FILE", env = "TIDEGATE_PROMETHEUS_CA")]
    prometheus_ca: Option<PathBuf>,
    /// Client certificate (PEM) for Prometheus
    #[arg(
        long,
        value_name = "FILE",
        env = "TIDEGATE_PROMETHEUS_CERT",
        requires = "prometheus_key"
    )]
    prometheus_cert: Option<PathBuf>,
    /// Private key (PEM) of that certificate
    #[arg(
        long,
        value_name = "FILE",
        env = "TIDEGATE_PROMETHEUS_KEY",
        requires = "prometheus_cert"
    )]
    prometheus_key: Option<PathBuf>,
}

impl PrefixedPrometheusOptions {
    /// A client of the given Prometheus, if one is given. Warns about credentials that others could read.
    pub(super) fn client(
        &self,
        timeout: Duration,
    ) -> Result<Option<PrometheusClient>, CommandFailure> {
        let options = PrometheusOptions {
            url: self.prometheus.clone(),
            token_file: self.prometheus_token_file.clone(),
            basic_user: self.prometheus_basic_user.clone(),
            basic_password_file: self.prometheus_basic_password_file.clone(),
            ca: self.prometheus_ca.clone(),
            cert: self.prometheus_cert.clone(),
            key: self.prometheus_key.clone(),
            timeout,
        };
        options.is_given().then(|| options.client()).transpose()
    }
}

/// The credentials for Prometheus: a token, or a user with a password.
pub(super) fn credentials(
    token: Option<PathBuf>,
    basic: Option<(String, PathBuf)>,
) -> CredentialFiles {
    match (token, basic) {
        (Some(path), _) => CredentialFiles::Token(path),
        (None, Some((user, password))) => CredentialFiles::Basic { user, password },
        (None, None) => CredentialFiles::None,
    }
}

pub(super) fn unread(error: TrafficError) -> CommandFailure {
    CommandFailure(match error {
        // The message may contain text from a server.
        TrafficError::Collect(error) => forms::plain(&error.to_string()),
        other => other.to_string(),
    })
}

/// Now, in seconds since 1970.
pub(super) fn now() -> Result<u64, CommandFailure> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since
        .map(|since| since.as_secs())
        .map_err(|error| CommandFailure(format!("the clock: {error}")))
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a duration such as 30s".to_owned())
}
