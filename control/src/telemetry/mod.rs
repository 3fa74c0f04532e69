//! Traces to an OpenTelemetry collector (OTLP over gRPC), if one is configured.
//!
//! A trace begins with the cause of a change: a REST request, a scan of the directory, a new proxy. Its children are
//! the rendering of the policies and, for each affected proxy, the push, which lasts until the proxy has answered.
//!
//! Spans go to a bounded queue, from which a thread of its own sends them in batches. If the collector is slow or
//! unreachable, the spans that exceed the queue are lost, and nothing else happens. Without a collector no spans are
//! created.
//!
//! The `OTEL_*` environment variables of the OpenTelemetry specification configure endpoint, headers, sampler,
//! resource and queue.

mod exporter;
mod parent;
mod wanted;

use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

pub use parent::TraceParent;
pub(crate) use parent::{TraceHeaders, follow};
pub use wanted::Unusable;

/// Target of the spans that are meant for traces only.
pub const TARGET: &str = "tidegate_trace";

/// The default service name.
const SERVICE: &str = "tidegate";

/// Longest time for sending the last spans.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why traces cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The environment asks for something that is not supported.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// The endpoint cannot be used.
    #[error("the trace collector: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// The connection to a trace collector.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Sends traces to `endpoint` (`http://127.0.0.1:4317`), or to the endpoint in the environment; `None` if
    /// neither is given. Call it within the runtime.
    ///
    /// # Errors
    /// When the configuration is invalid. An unreachable collector is not an error.
    pub fn start(endpoint: Option<&str>) -> Result<Option<Self>, TraceError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if !wanted::is_wanted(endpoint, variable)? {
            return Ok(None);
        }
        let builder = SpanExporter::builder().with_tonic();
        let builder = match endpoint {
            Some(endpoint) => builder.with_endpoint(endpoint),
            None => builder,
        };
        let resource = Resource::builder();
        let resource = match variable("OTEL_SERVICE_NAME") {
            Some(_) => resource,
            None => resource.with_service_name(SERVICE),
        };
        let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter::Reporting::new(builder.build()?))
            .with_resource(resource.with_attribute(version).build())
            .build();
        opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
        Ok(Some(Self { provider }))
    }

    /// The layer that collects the spans.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SERVICE))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_level(false)
            .with_filter(filter_fn(is_trace))
    }

    /// Sends the remaining spans. Blocks for at most two seconds.
    pub fn stop(&self) {
        // The exporter has already logged a failure.
        let _ = self.provider.shutdown_with_timeout(FAREWELL);
    }
}

/// Whether a span is meant for traces and not for the log.
#[must_use]
pub fn is_trace(metadata: &Metadata<'_>) -> bool {
    metadata.target() == TARGET
}
