//! The HTTP side: policies by REST, what is known of proxies, health, metrics, and a page to look at.

mod access;
mod page;
mod policies;
mod reply;
mod traced;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use axum::{Json, middleware};
use serde_json::{Value, json};
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;

pub use access::{Access, Token};

use crate::fleet::{Fleet, ProxyRecord};
use crate::kube::Health;
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
    /// How the work in Kubernetes is going, where there is any.
    pub cluster: Option<Health>,
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
    let traced = [
        ("/v1/policies", get(policies::list)),
        ("/v1/policies/{name}", policy),
        ("/v1/proxies", get(proxies)),
        ("/v1/events", get(events)),
    ];
    let traced = traced
        .into_iter()
        .fold(Router::new(), |router, (route, methods)| {
            let span = move |request, next| traced::traced(route, request, next);
            router.route(route, methods.layer(middleware::from_fn(span)))
        });
    Router::new()
        .merge(page::routes())
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .merge(traced)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(desk)
}

async fn alive(State(desk): State<Desk>) -> (StatusCode, &'static str) {
    if desk.cluster.as_ref().is_none_or(Health::is_alive) {
        (StatusCode::OK, "ok\n")
    } else {
        let reason = "the work in Kubernetes has stopped\n";
        (StatusCode::SERVICE_UNAVAILABLE, reason)
    }
}

async fn ready(State(desk): State<Desk>) -> (StatusCode, &'static str) {
    if desk.closing.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n")
    } else if !desk.cluster.as_ref().is_none_or(Health::has_policies) {
        let reason = "waiting for the policies from Kubernetes\n";
        (StatusCode::SERVICE_UNAVAILABLE, reason)
    } else {
        (StatusCode::OK, "ready\n")
    }
}

async fn metrics(State(desk): State<Desk>) -> impl IntoResponse {
    let text = desk.metrics.text(&desk.fleet.proxies());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text)
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
    let states: serde_json::Map<String, Value> = ProxyRecord::states(&proxies)
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
