//! A span for each request to `/v1`, in the caller's trace if the request names one.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::global::get_text_map_propagator;
use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};

use crate::telemetry::{TARGET, TraceHeaders, follow};

pub(super) async fn traced(route: &'static str, request: Request, next: Next) -> Response {
    let span = span_of(route, &request);
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    response
}

fn span_of(route: &'static str, request: &Request) -> Span {
    // The names of OpenTelemetry's semantic conventions for HTTP servers.
    let span = info_span!(
        target: TARGET,
        "request",
        otel.name = format!("{} {route}", request.method()),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = %request.method(),
        http.route = route,
        url.path = request.uri().path(),
        http.response.status_code = Empty,
    );
    if !span.is_disabled() {
        let context =
            get_text_map_propagator(|from| from.extract(&TraceHeaders(request.headers())));
        follow(&span, context);
    }
    span
}
