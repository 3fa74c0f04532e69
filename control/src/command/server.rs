//! The options for asking a running service.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tidegate_core::config::parse_duration;

use super::CommandFailure;
use super::client::{ClientTlsFiles, ServiceClient};

/// How to reach a running service.
#[derive(Debug, Args)]
pub(super) struct ServerOptions {
    /// URL of the control service's REST interface
    #[arg(
        long,
        value_name = "URL",
        env = "TIDEGATE_SERVER",
        default_value = "http://127.0.0.1:18080"
    )]
    pub(super) server: String,
    /// Certificate authorities (PEM) for the control service; required with https
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
    pub(super) timeout: Duration,
}

impl ServerOptions {
    /// A client of that service.
    pub(super) fn client(&self) -> Result<ServiceClient, CommandFailure> {
        let tls = self.ca.as_ref().map(|ca| ClientTlsFiles {
            authorities: ca.clone(),
            identity: self.cert.clone().zip(self.key.clone()),
        });
        ServiceClient::new(&self.server, tls.as_ref())
    }
}

/// Parses a duration like the configuration does.
fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a time such as 250ms, 5s or 1m".to_owned())
}
