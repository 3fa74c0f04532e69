//! The page at `/`: policies, proxies and the service graph, live.
//!
//! It uses no framework and no external resources, which a content security policy enforces: scripts and style are files
//! next to the page. Received texts are only ever set as text, never as HTML. The layout of the graph comes from dagre, a
//! library that is kept here unchanged; ci/versions.env names its version and checksum.

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const LAYOUT: &str = include_str!("vendor/dagre.min.js");

/// The routes of the page, its style and its script.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let page = file("text/html; charset=utf-8", include_str!("page.html"));
    let style = file("text/css; charset=utf-8", include_str!("page.css"));
    let script = file("text/javascript; charset=utf-8", include_str!("page.js"));
    let graph = file("text/javascript; charset=utf-8", include_str!("graph.js"));
    let layout = file("text/javascript; charset=utf-8", LAYOUT);
    Router::new()
        .route("/", get(move || async { page }))
        .route("/graph.js", get(move || async { graph }))
        .route("/dagre.min.js", get(move || async { layout }))
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

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn the_library_is_the_one_that_ci_names() {
        let versions = include_str!("../../../ci/versions.env");
        let named = versions
            .lines()
            .find_map(|line| line.strip_prefix("DAGRE_SHA256="));
        let found: String = Sha256::digest(LAYOUT)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();

        assert_eq!(Some(found.as_str()), named);
    }
}
