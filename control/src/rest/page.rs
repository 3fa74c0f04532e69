//! The page at `/`: policies and proxies, live.
//!
//! No framework and no external resources, enforced by a content security policy: script and style are two files next
//! to the page. Received texts are only ever set as text, never as HTML.

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The routes of the page, its style and its script.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let page = file("text/html; charset=utf-8", include_str!("page.html"));
    let style = file("text/css; charset=utf-8", include_str!("page.css"));
    let script = file("text/javascript; charset=utf-8", include_str!("page.js"));
    Router::new()
        .route("/", get(move || async { page }))
        .route("/page.css", get(move || async { style }))
        .route("/page.js", get(move || async { script }))
}

fn file(kind: &'static str, text: &'static str) -> impl IntoResponse + Clone {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // A new version of the service comes with a new page.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text)
}
