//! The HTTP side: policies by REST, what is known of proxies, health, metrics, and a page to look at.

mod access;
mod page;
mod policies;
mod reply;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use axum::{Json, middleware};
use serde_json::{Value, json};
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;

pub use access::{Access, Token};

use crate::fleet::{Fleet, ProxyRecord};
use crate::metrics::Metrics;
use crate::source::Catalogue;

/// Largest policy that is taken, in bytes: a hundred times what a long one has.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Proxies on the page; the list behind it has all.
const MAX_SHOWN: usize = 200;

/// Shortest time between two updates of the page.
const PAGE_INTERVAL: Duration = Duration::from_millis(250);

/// What the HTTP side needs.
#[derive(Debug, Clone)]
pub struct Desk {
    /// Policies.
    pub catalogue: Catalogue,
    /// Proxies.
    pub fleet: Fleet,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Who may write.
    pub access: Arc<Access>,
    /// Cancelled once the service is going away.
    pub closing: CancellationToken,
}

/// All routes.
pub fn routes(desk: Desk) -> Router {
    let write = middleware::from_fn_with_state(Arc::clone(&desk.access), access::check);
    let policy = get(policies::read)
        .put(policies::put)
        .delete(policies::remove)
        .layer(write);
    Router::new()
        .route("/", get(|| async { Html(page::PAGE) }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/v1/policies", get(policies::list))
        .route("/v1/policies/{name}", policy)
        .route("/v1/proxies", get(proxies))
        .route("/v1/events", get(events))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(desk)
}

async fn ready(State(desk): State<Desk>) -> (StatusCode, &'static str) {
    if desk.closing.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n")
    } else {
        (StatusCode::OK, "ready\n")
    }
}

async fn metrics(State(desk): State<Desk>) -> impl IntoResponse {
    desk.metrics.resources(states(&desk.fleet.proxies()));
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], desk.metrics.text())
}

async fn proxies(State(desk): State<Desk>) -> Json<Value> {
    Json(json!({ "proxies": desk.fleet.proxies() }))
}

async fn events(
    State(desk): State<Desk>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<>> {
    let closing = desk.closing.clone();
    let revisions = WatchStream::new(desk.fleet.revisions());
    let updates = revisions
        .throttle(PAGE_INTERVAL)
        .map(move |_| Ok(Event::default().data(snapshot(&desk).to_string())));
    // Otherwise a page that is looked at would hold up the service's end.
    let bounded = until(updates, closing);
    Sse::new(bounded).keep_alive(KeepAlive::default())
}

fn until<T>(stream: impl Stream<Item = T>, closing: CancellationToken) -> impl Stream<Item = T> {
    let end = async move { closing.cancelled().await };
    let end = Box::pin(end);
    futures_util::StreamExt::take_until(stream, end)
}

fn snapshot(desk: &Desk) -> Value {
    let mut proxies = desk.fleet.proxies();
    let total = proxies.len();
    let states: serde_json::Map<String, Value> = states(&proxies)
        .into_iter()
        .map(|(state, count)| (state.to_owned(), Value::from(count)))
        .collect();
    proxies.truncate(MAX_SHOWN);
    json!({
        "policies": desk.catalogue.records(),
        "problems": desk.catalogue.problems(),
        "proxies": proxies,
        "total": total,
        "states": states,
    })
}

/// How many resources of proxies run what they are to run, do not yet, or refused it.
fn states(proxies: &[ProxyRecord]) -> [(&'static str, usize); 3] {
    let (mut current, mut behind, mut refused) = (0, 0, 0);
    for resource in proxies.iter().flat_map(|proxy| proxy.resources.values()) {
        let is_refused = resource
            .last_refused
            .as_ref()
            .is_some_and(|last| resource.wanted.as_ref() == Some(&last.version));
        if resource.wanted == resource.running {
            current += 1;
        } else if is_refused {
            refused += 1;
        } else {
            behind += 1;
        }
    }
    [
        ("current", current),
        ("behind", behind),
        ("refused", refused),
    ]
}
