//! What caused something, where it is carried on elsewhere: in another task, or after a change was seen.

use axum::http::{HeaderMap, HeaderName};
use opentelemetry::Context;
use opentelemetry::propagation::Extractor;
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// A place in a trace; nothing where there are no traces.
#[derive(Debug, Clone, Default)]
pub struct Cause(Option<SpanContext>);

impl Cause {
    /// The span that is entered now.
    #[must_use]
    pub fn current() -> Self {
        let context = Span::current().context();
        let found = context.span().span_context().clone();
        Self(found.is_valid().then_some(found))
    }

    /// Puts a span below it, in the same trace.
    pub(crate) fn leads_to(&self, span: &Span) {
        if let Some(cause) = &self.0 {
            let context = Context::new().with_remote_span_context(cause.clone());
            follow(span, context);
        }
    }
}

/// Puts a span below what a context says.
pub(crate) fn follow(span: &Span, context: Context) {
    // It is refused for spans that nobody takes in: there is nothing to be done then.
    let _ = span.set_parent(context);
}

/// The headers of a request, in which a caller may say in which trace it is (W3C Trace Context).
pub(crate) struct Headers<'a>(pub(crate) &'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}
