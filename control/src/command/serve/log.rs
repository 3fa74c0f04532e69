//! The options for the log and for traces.

use clap::{Args, ValueEnum};
use tidegate_control::telemetry::{Traces, is_trace};
use tracing::Level;
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, filter_fn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::command::CommandFailure;

/// Targets of kube that log every failed request and watch. The service logs each outage itself, once.
const KUBE_REQUESTS: [&str; 2] = ["kube_client::client", "kube_client::client::builder"];

/// The log, on standard error, and traces.
#[derive(Debug, Args)]
pub(super) struct ServiceLog {
    /// Form of the log
    #[arg(long, value_enum, env = "TIDEGATE_LOG_FORMAT", default_value_t)]
    log_format: LogFormat,
    /// Log level, or levels by target
    #[arg(
        long,
        value_name = "FILTER",
        env = "TIDEGATE_LOG",
        default_value = "info"
    )]
    log: String,
    /// Trace collector (OTLP over gRPC); default: OTEL_EXPORTER_OTLP_ENDPOINT and related variables
    #[arg(long, value_name = "URL", env = "TIDEGATE_OTLP_ENDPOINT")]
    otlp_endpoint: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// One JSON object per line
    #[default]
    Json,
    /// For people
    Text,
}

impl ServiceLog {
    /// Starts the log, and traces if they are configured. Call it within the runtime.
    pub(super) fn begin(&self) -> Result<Option<Traces>, CommandFailure> {
        let levels = EnvFilter::try_new(&self.log)
            .map_err(|error| CommandFailure(format!("--log: {error}")))?;
        let traces = Traces::start(self.otlp_endpoint.as_deref())
            .map_err(|error| CommandFailure(error.to_string()))?;
        let is_asked_for = self.log.contains("kube_client");
        let filter = levels.and(filter_fn(move |metadata| {
            let is_trouble = *metadata.level() <= Level::WARN;
            let is_repetition = is_trouble && KUBE_REQUESTS.contains(&metadata.target());
            !is_trace(metadata) && (is_asked_for || !is_repetition)
        }));
        let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let log = match self.log_format {
            LogFormat::Json => log.json().flatten_event(true).with_filter(filter).boxed(),
            LogFormat::Text => log.with_filter(filter).boxed(),
        };
        tracing_subscriber::registry()
            .with(log)
            .with(traces.as_ref().map(Traces::layer))
            .init();
        Ok(traces)
    }
}
