//! The options for the service graph.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tidegate_control::traffic::{PrometheusTerms, TrafficSettings, TrafficTerms};
use tidegate_graph::BuildTerms;

use super::needs;
use crate::command::CommandFailure;
use crate::command::prometheus::{credentials, time};
use crate::command::traffic_source::{MetricsOption, choice, seconds};

/// Where the service graph is read from, for the page, `/v1/graph` and `/v1/recommendations`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Service graph")]
pub(super) struct Traffic {
    /// URL of Prometheus, with its path prefix if it has one; without it, there is no service graph
    #[arg(long, value_name = "URL", env = "TIDEGATE_PROMETHEUS")]
    prometheus: Option<String>,
    /// Time from one read to the next
    #[arg(long, value_name = "TIME", env = "TIDEGATE_PROMETHEUS_INTERVAL", default_value = "5m", value_parser = time)]
    prometheus_interval: Duration,
    /// How far back traffic is observed
    #[arg(long, value_name = "TIME", env = "TIDEGATE_PROMETHEUS_WINDOW", default_value = "1h", value_parser = seconds)]
    prometheus_window: u32,
    /// Time between the points over which the rate is averaged, at least twice the scrape interval; default: 5m, or a
    /// twelfth of
    /// a shorter window, but at least 30s
    #[arg(long, value_name = "TIME", env = "TIDEGATE_PROMETHEUS_STEP", value_parser = seconds)]
    prometheus_step: Option<u32>,
    /// Source of the metrics; default: the first that has any
    #[arg(
        long,
        value_enum,
        value_name = "SOURCE",
        env = "TIDEGATE_PROMETHEUS_METRICS",
        value_delimiter = ','
    )]
    prometheus_metrics: Vec<MetricsOption>,
    /// The label that names the caller in the metrics of Envoy and Tidegate
    #[arg(
        long,
        value_name = "LABEL",
        env = "TIDEGATE_PROMETHEUS_CALLER_LABEL",
        default_value = "job"
    )]
    prometheus_caller_label: String,
    /// Mark edges with fewer requests in the window
    #[arg(long, value_name = "N", env = "TIDEGATE_PROMETHEUS_MIN_SAMPLES", default_value_t = BuildTerms::default().min_samples)]
    prometheus_min_samples: u32,
    /// File with a bearer token for Prometheus, read again for each graph
    #[arg(long, value_name = "FILE", env = "TIDEGATE_PROMETHEUS_TOKEN_FILE")]
    prometheus_token_file: Option<PathBuf>,
    /// User for basic authentication at Prometheus
    #[arg(long, value_name = "NAME", env = "TIDEGATE_PROMETHEUS_BASIC_USER")]
    prometheus_basic_user: Option<String>,
    /// File with the password of that user, read again for each graph
    #[arg(
        long,
        value_name = "FILE",
        env = "TIDEGATE_PROMETHEUS_BASIC_PASSWORD_FILE"
    )]
    prometheus_basic_password_file: Option<PathBuf>,
    /// Certificate authorities (PEM) of Prometheus, instead of those of the system
    #[arg(long, value_name = "FILE", env = "TIDEGATE_PROMETHEUS_CA")]
    prometheus_ca: Option<PathBuf>,
    /// Client certificate (PEM) for Prometheus
    #[arg(long, value_name = "FILE", env = "TIDEGATE_PROMETHEUS_CERT")]
    prometheus_cert: Option<PathBuf>,
    /// Private key (PEM) of that certificate
    #[arg(long, value_name = "FILE", env = "TIDEGATE_PROMETHEUS_KEY")]
    prometheus_key: Option<PathBuf>,
    /// Longest time for the answer to one query
    #[arg(long, value_name = "TIME", env = "TIDEGATE_PROMETHEUS_TIMEOUT", default_value = "30s", value_parser = time)]
    prometheus_timeout: Duration,
}

impl Traffic {
    /// The settings; `None`: no graph is read.
    pub(super) fn settings(self) -> Result<Option<TrafficSettings>, CommandFailure> {
        let (user, password) = (
            &self.prometheus_basic_user,
            &self.prometheus_basic_password_file,
        );
        let (certificate, key) = (&self.prometheus_cert, &self.prometheus_key);
        if user.is_some() {
            needs(
                password,
                "prometheus-basic-password-file",
                "prometheus-basic-user",
            )?;
        }
        if password.is_some() {
            needs(
                user,
                "prometheus-basic-user",
                "prometheus-basic-password-file",
            )?;
        }
        if certificate.is_some() {
            needs(key, "prometheus-key", "prometheus-cert")?;
        }
        if key.is_some() {
            needs(certificate, "prometheus-cert", "prometheus-key")?;
        }
        if user.is_some() && self.prometheus_token_file.is_some() {
            return Err(CommandFailure(
                "found --prometheus-token-file and --prometheus-basic-user, expected one of them"
                    .to_owned(),
            ));
        }
        let Some(url) = self.prometheus else {
            return Ok(None);
        };
        let basic = self
            .prometheus_basic_user
            .zip(self.prometheus_basic_password_file);
        let terms = TrafficTerms {
            prometheus: PrometheusTerms {
                url,
                credentials: credentials(self.prometheus_token_file, basic),
                authorities: self.prometheus_ca,
                identity: self.prometheus_cert.zip(self.prometheus_key),
                timeout: self.prometheus_timeout,
            },
            window_seconds: self.prometheus_window,
            step_seconds: self.prometheus_step,
            choice: choice(&self.prometheus_metrics),
            caller_label: self.prometheus_caller_label,
            build: BuildTerms {
                min_samples: self.prometheus_min_samples,
            },
        };
        Ok(Some(TrafficSettings {
            terms,
            interval: self.prometheus_interval,
        }))
    }
}
