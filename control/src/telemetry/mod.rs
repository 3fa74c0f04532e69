//! Traces to an OpenTelemetry collector (OTLP over gRPC), if one is configured.
//!
//! A trace begins with what changes something: a request by REST, a look at the directory, a proxy's arrival.
//! Below it stand the rendering of the policies and, for each proxy that this touches, the push, which lasts
//! until the proxy has answered.
//!
//! Spans go to a queue of bounded length and from there in batches, on a thread of their own: a collector that
//! is slow or gone costs the spans that find no room, and nothing else. Without a collector no span is made.
//!
//! Configured as OpenTelemetry specifies, by `OTEL_*`: endpoint, headers, sampler, resource, queue.

mod cause;
mod exporter;
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

pub use cause::Cause;
pub(crate) use cause::{Headers, follow};
pub use wanted::Unusable;

/// Target of the spans that are meant for traces and for nothing else.
pub const TARGET: &str = "tidegate_trace";

/// What the service is called where nothing else is said.
const SERVICE: &str = "tidegate";

/// How long the last spans may take to be sent off.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why there can be no traces.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The environment asks for what there is not.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// The endpoint cannot be used.
    #[error("the collector of traces: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// The way to a collector.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// The way to `endpoint` (`http://127.0.0.1:4317`), or to the one that the environment names; `None` if
    /// neither does. To be called within the runtime.
    ///
    /// # Errors
    /// When what is asked for cannot be had; that the collector does not answer is none.
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

    /// What takes the spans in.
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

    /// Sends off what is left. Blocks for as long as that takes, or two seconds.
    pub fn stop(&self) {
        // What could not be sent has been said by the exporter.
        let _ = self.provider.shutdown_with_timeout(FAREWELL);
    }
}

/// Whether a span is meant for traces, and not for the log.
#[must_use]
pub fn is_trace(metadata: &Metadata<'_>) -> bool {
    metadata.target() == TARGET
}
