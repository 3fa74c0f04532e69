//! The service graph and its recommendations: `/v1/graph`, `/v1/recommendations`, and the overview that the page draws.
//!
//! The bodies are those of `tidegate graph -o json` and `tidegate recommend -o json`. Headers state their age and whether
//! the last read failed, so that programs can parse the bodies of commands and service alike. A body may have megabytes
//! and takes a moment to render, so it is rendered once per graph, on a thread that may block.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use jiff::Timestamp;
use serde_json::json;
use tidegate_graph::output::{document, json, plain_json};

use super::Desk;
use super::listing::{self, CachedListing};
use super::policies::blocking;
use super::reply::problem;
use crate::advice::advised;
use crate::traffic::{GoodRead, TrafficSnapshot, overview};

/// The header with the time and reason of the last failure; absent if the last read succeeded.
const FAILURE: HeaderName = HeaderName::from_static("tidegate-read-failure");

/// The revisions of a graph and of the policies.
type GraphRevision = (u64, u64);

/// The cached bodies.
#[derive(Debug, Clone, Default)]
pub(super) struct GraphListings {
    graph: CachedListing,
    recommendations: CachedListing<GraphRevision>,
    overview: CachedListing<GraphRevision>,
}

pub(super) async fn graph(State(desk): State<Desk>) -> Response {
    answer(desk, |desk, snapshot, good| {
        desk.listings.graph.graph.at(snapshot.revision, || {
            // All keys are names, so writing it as JSON cannot fail.
            json(&document(&good.built)).unwrap_or_default()
        })
    })
    .await
}

pub(super) async fn recommendations(State(desk): State<Desk>) -> Response {
    answer(desk, |desk, snapshot, good| {
        let revision = (snapshot.revision, desk.catalog.revision());
        desk.listings.graph.recommendations.at(revision, || {
            plain_json(&json!(advised(&good.built, desk.catalog.policies())).to_string())
        })
    })
    .await
}

/// The overview that the page draws.
pub(super) async fn busiest(State(desk): State<Desk>) -> Response {
    answer(desk, |desk, snapshot, good| {
        let revision = (snapshot.revision, desk.catalog.revision());
        desk.listings.graph.overview.at(revision, || {
            let failure = snapshot
                .failure()
                .map(|failure| json!({"at": failure.at.to_string(), "message": failure.message}));
            let shown = overview(&good.built, &advised(&good.built, desk.catalog.policies()));
            let body = json!({
                "readAt": good.at.to_string(),
                "failure": failure,
                "overview": shown,
            });
            plain_json(&body.to_string())
        })
    })
    .await
}

/// The body that `make` returns for the last graph, or why there is none.
async fn answer(
    desk: Desk,
    make: impl FnOnce(&Desk, &TrafficSnapshot, &GoodRead) -> Bytes + Send + 'static,
) -> Response {
    let Some(live) = &desk.traffic else {
        return problem(
            StatusCode::NOT_FOUND,
            "there is no service graph: the control service was started without --prometheus URL",
        );
    };
    let snapshot = live.snapshot();
    let Some(good) = snapshot.good.clone() else {
        let reason = match snapshot.failure() {
            None => "the service graph is being read for the first time".to_owned(),
            Some(failure) => format!(
                "the service graph could not be read yet: {}",
                failure.message
            ),
        };
        return problem(StatusCode::SERVICE_UNAVAILABLE, &reason);
    };
    let age = Timestamp::now().duration_since(good.at).as_secs().max(0);
    let failure = snapshot
        .failure()
        .map(|failure| format!("{} {}", failure.at, failure.message));
    let Some(body) = blocking(move || make(&desk, &snapshot, &good)).await else {
        return problem(StatusCode::INTERNAL_SERVER_ERROR, "the answer was aborted");
    };
    let mut response = listing::json(body);
    let headers = response.headers_mut();
    headers.insert(header::AGE, HeaderValue::from(age));
    let failure = failure.map(|text| text.escape_default().to_string());
    if let Some(Ok(value)) = failure.map(HeaderValue::try_from) {
        headers.insert(FAILURE, value);
    }
    response
}
