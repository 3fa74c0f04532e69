//! The page at `/`: policies and proxies, live.
//!
//! No framework, nothing from elsewhere, and the browser is told so: scripts and styles are the two files
//! beside the page, and texts from outside are only ever set as text.

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page and what it needs.
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
