//! Where and how the graph is read.
//!
//! Files with credentials are read again for each graph, so that a token may be replaced while the service runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_graph::prometheus::{
    AskPrometheus, ClientSettings, Credentials, PrometheusClient, SettingsError,
};
use tidegate_graph::{
    BuildError, BuildTerms, CollectError, Collected, MetricsChoice, ObservationWindow, QueryError,
    collect, planned,
};

/// Number of points in a window that is too short for steps of five minutes.
const MIN_POINTS: u32 = 12;
/// Step between the points, in seconds: at least two scrapes at any usual scrape interval.
const STEP_SECONDS: u32 = 300;
/// The shortest step between the points, in seconds: two scrapes at the shortest usual interval.
const MIN_STEP_SECONDS: u32 = 30;

/// Files with the credentials for Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CredentialFiles {
    /// No credentials.
    #[default]
    None,
    /// A file with a bearer token.
    Token(PathBuf),
    /// A name, and a file with its password.
    Basic {
        /// The name.
        user: String,
        /// The file.
        password: PathBuf,
    },
}

/// The address of Prometheus, and the credentials for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrometheusTerms {
    /// Its URL, with its path prefix if it has one.
    pub url: String,
    /// The credentials.
    pub credentials: CredentialFiles,
    /// Certificate authorities (PEM) instead of those of the system.
    pub authorities: Option<PathBuf>,
    /// Client certificate and its key (PEM).
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Longest time for the answer to one query.
    pub timeout: Duration,
}

/// Where and how the graph is read.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficTerms {
    /// Where Prometheus is.
    pub prometheus: PrometheusTerms,
    /// How far back traffic is observed, in seconds.
    pub window_seconds: u32,
    /// Step between the points of the window, in seconds; `None`: five minutes, or less in a short window.
    pub step_seconds: Option<u32>,
    /// Which metrics are read.
    pub choice: MetricsChoice,
    /// The label that names the caller in the metrics of Envoy and Tidegate.
    pub caller_label: String,
    /// The terms of the graph.
    pub build: BuildTerms,
}

/// Why there is no graph.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// A file cannot be used.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The client cannot be created.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The queries cannot be planned.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Prometheus did not answer.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// The answers do not give a graph.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Some queries failed and the others found nothing: the failed ones may have had the traffic.
    #[error("no traffic was found, and {0}")]
    Nothing(String),
}

impl PrometheusTerms {
    /// A client with the credentials that are in the files now. It connects with the first query.
    ///
    /// # Errors
    ///
    /// If the URL, a file or the credentials cannot be used.
    pub fn client(&self) -> Result<PrometheusClient, TrafficError> {
        let credentials = match &self.credentials {
            CredentialFiles::None => Credentials::None,
            CredentialFiles::Token(path) => Credentials::Token(secret(path)?),
            CredentialFiles::Basic { user, password } => Credentials::Basic {
                user: user.clone(),
                password: secret(password)?,
            },
        };
        Ok(PrometheusClient::new(&ClientSettings {
            url: self.url.clone(),
            credentials,
            authorities: self.authorities.clone(),
            identity: self.identity.clone(),
            timeout: self.timeout,
        })?)
    }
}

impl TrafficTerms {
    /// Checks that reads can begin with these terms, and returns the client.
    ///
    /// # Errors
    ///
    /// If the URL, a file, the credentials, the label or the window cannot be used.
    pub fn checked(&self) -> Result<PrometheusClient, TrafficError> {
        planned(self.window(0), &self.caller_label)?;
        self.prometheus.client()
    }

    /// The window that ends at `end`, in seconds since 1970.
    #[must_use]
    pub fn window(&self, end: u64) -> ObservationWindow {
        let usual = (self.window_seconds / MIN_POINTS).clamp(MIN_STEP_SECONDS, STEP_SECONDS);
        ObservationWindow {
            end,
            window_seconds: self.window_seconds,
            step_seconds: self
                .step_seconds
                .unwrap_or_else(|| usual.min(self.window_seconds)),
        }
    }

    /// Prometheus' answers for the window that ends at `end`, in seconds since 1970. Blocks while it waits for them.
    ///
    /// # Errors
    ///
    /// If the queries cannot be planned, or Prometheus does not answer any.
    pub fn collected(
        &self,
        prometheus: &impl AskPrometheus,
        end: u64,
    ) -> Result<Collected, TrafficError> {
        let observed = self.window(end);
        let plan = planned(observed, &self.caller_label)?;
        let label = &self.caller_label;
        Ok(collect(prometheus, plan, observed, label, &self.choice)?)
    }
}

/// A secret on the first line of a file.
fn secret(path: &Path) -> Result<String, TrafficError> {
    let failure = |reason: String| TrafficError::File {
        path: path.to_owned(),
        reason,
    };
    let text = fs::read_to_string(path).map_err(|error| failure(error.to_string()))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(failure("found nothing, expected a secret".to_owned()));
    }
    Ok(text.to_owned())
}
