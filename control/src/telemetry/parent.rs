//! Connects a span to the span that caused it in another task or at an earlier time.

use axum::http::{HeaderMap, HeaderName};
use opentelemetry::Context;
use opentelemetry::propagation::Extractor;
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The span that caused a change; empty without traces.
#[derive(Debug, Clone, Default)]
pub struct TraceParent(Option<SpanContext>);

impl TraceParent {
    /// The current span.
    #[must_use]
    pub fn current() -> Self {
        let context = Span::current().context();
        let found = context.span().span_context().clone();
        Self(found.is_valid().then_some(found))
    }

    /// Makes `span` a child of this one.
    pub(crate) fn adopt(&self, span: &Span) {
        if let Some(parent) = &self.0 {
            let context = Context::new().with_remote_span_context(parent.clone());
            follow(span, context);
        }
    }
}

/// Makes the span of `context` the parent of `span`.
pub(crate) fn follow(span: &Span, context: Context) {
    // Fails for spans that no collector receives, which does not matter.
    let _ = span.set_parent(context);
}

/// The headers of a request, which may name the caller's trace (W3C Trace Context).
pub(crate) struct TraceHeaders<'a>(pub(crate) &'a HeaderMap);

impl Extractor for TraceHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}
