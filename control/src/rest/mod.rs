//! The HTTP interface: policies by REST, the state of proxies, the service graph, metrics, and a status page; health
//! checks are on a port of their own.

mod access;
mod graph;
mod health;
mod listing;
mod page;
mod policies;
mod reply;
mod shutoff;
mod traced;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;

pub use access::{Token, WriteAccess};
pub use health::{HealthState, health_routes};

use self::graph::GraphListings;
use self::listing::CachedListing;
use self::reply::problem;
use crate::fleet::{ProxyFleet, ProxyRecord};
use crate::kube::lease::ShutoffLease;
use crate::metrics::ControlMetrics;
use crate::source::Catalog;
use crate::traffic::LiveTraffic;

/// Largest accepted policy, in bytes: a hundred times the size of a long one.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Most proxies on the page; `/v1/proxies` lists all.
const MAX_SHOWN: usize = 200;

/// Shortest time between two updates of the page.
const PAGE_INTERVAL: Duration = Duration::from_millis(250);

/// Most pages that may be open at the same time, each without a time limit.
const MAX_WATCHERS: usize = 64;

/// What the HTTP interface needs.
#[derive(Debug, Clone)]
pub struct Desk {
    /// The policies.
    pub catalog: Catalog,
    /// Writes the switch for all policies in the cluster; `None`: no cluster.
    pub cluster: Option<ShutoffLease>,
    /// The connected proxies.
    pub fleet: ProxyFleet,
    /// The service graph; `None`: the service does not read it.
    pub traffic: Option<LiveTraffic>,
    /// The metrics.
    pub metrics: Arc<ControlMetrics>,
    /// Decides which clients may write.
    pub access: Arc<WriteAccess>,
    /// Canceled when the service shuts down.
    pub closing: CancellationToken,
    /// The cached listings.
    pub listings: Listings,
    /// One permit per open page.
    pub watchers: Arc<Semaphore>,
}

/// The cached listings of policies, proxies and the service graph.
#[derive(Debug, Clone, Default)]
pub struct Listings {
    policies: CachedListing,
    proxies: CachedListing,
    page: CachedListing,
    graph: GraphListings,
}

impl Desk {
    /// Grows with every change of anything that the page shows.
    fn revision(&self) -> u64 {
        *self.fleet.revisions().borrow()
    }

    /// One permit per open page.
    #[must_use]
    pub fn watchers() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MAX_WATCHERS))
    }
}

/// All routes.
pub fn routes(desk: Desk) -> Router {
    let write = middleware::from_fn_with_state(Arc::clone(&desk.access), access::check);
    let policy = get(policies::read)
        .put(policies::put)
        .delete(policies::remove)
        .layer(write.clone());
    let switch = get(shutoff::read)
        .put(shutoff::put)
        .delete(shutoff::remove)
        .layer(write);
    let traced = [
        ("/v1/disabled", switch),
        ("/v1/status", get(status)),
        ("/v1/policies", get(policies::list)),
        ("/v1/policies/{name}", policy),
        ("/v1/proxies", get(proxies)),
        ("/v1/graph", get(graph::graph)),
        ("/v1/graph/busiest", get(graph::busiest)),
        ("/v1/recommendations", get(graph::recommendations)),
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
        .route("/metrics", get(metrics))
        .merge(traced)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(desk)
}

async fn metrics(State(desk): State<Desk>) -> impl IntoResponse {
    let text = desk.metrics.text(&desk.fleet.proxies());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text)
}

/// A summary in a few figures, for people and scripts.
async fn status(State(desk): State<Desk>) -> Response {
    let proxies = desk.fleet.proxies();
    let records = desk.catalog.records();
    let body = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "disabled": shutoff::shown(&desk.catalog.shutoff()),
        "policies": {
            "total": records.len(),
            "disabled": records.iter().filter(|record| !record.enabled).count(),
            "problems": desk.catalog.problems().len(),
        },
        "proxies": ProxyRecord::states(&proxies)
            .into_iter()
            .map(|(state, count)| (state.to_owned(), Value::from(count)))
            .collect::<serde_json::Map<String, Value>>(),
    });
    axum::Json(body).into_response()
}

async fn proxies(State(desk): State<Desk>) -> Response {
    let revision = desk.revision();
    let make = || {
        json!({
            "disabled": shutoff::shown(&desk.catalog.shutoff()),
            "problems": desk.catalog.problems().len(),
            "proxies": desk.fleet.proxies(),
        })
    };
    listing::json(desk.listings.proxies.at(revision, make))
}

async fn events(State(desk): State<Desk>) -> Response {
    let Ok(place) = Arc::clone(&desk.watchers).try_acquire_owned() else {
        let reason = format!("{MAX_WATCHERS} pages are open already");
        return problem(StatusCode::SERVICE_UNAVAILABLE, &reason);
    };
    let closing = desk.closing.clone();
    let revisions = WatchStream::new(desk.fleet.revisions());
    let updates = revisions.throttle(PAGE_INTERVAL).map(move |_| {
        // Released when the stream ends.
        let _place = &place;
        Ok::<_, Infallible>(Event::default().data(snapshot(&desk)))
    });
    // Without this bound, an open page would delay the shutdown.
    let bounded = until(updates, closing);
    Sse::new(bounded)
        .keep_alive(KeepAlive::default())
        .into_response()
}

fn until<T>(stream: impl Stream<Item = T>, closing: CancellationToken) -> impl Stream<Item = T> {
    let end = async move { closing.cancelled().await };
    let end = Box::pin(end);
    futures_util::StreamExt::take_until(stream, end)
}

fn snapshot(desk: &Desk) -> String {
    let text = desk.listings.page.at(desk.revision(), || page_of(desk));
    // JSON is always valid UTF-8.
    String::from_utf8_lossy(&text).into_owned()
}

fn page_of(desk: &Desk) -> Value {
    let mut proxies = desk.fleet.proxies();
    let total = proxies.len();
    let states: serde_json::Map<String, Value> = ProxyRecord::states(&proxies)
        .into_iter()
        .map(|(state, count)| (state.to_owned(), Value::from(count)))
        .collect();
    proxies.truncate(MAX_SHOWN);
    json!({
        "policies": desk.catalog.records(),
        "problems": desk.catalog.problems(),
        "disabled": shutoff::shown(&desk.catalog.shutoff()),
        "proxies": proxies,
        "total": total,
        "states": states,
        // The page fetches the graph again when this number changes.
        "graph": desk.traffic.as_ref().map(|live| live.snapshot().revision),
    })
}
