//! Whether the service lives and is ready, on a port that nothing else is on.
//!
//! What keeps the other ports busy must not look like a service that hangs, or it would be killed for it.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio_util::sync::CancellationToken;

use crate::kube::Health;

/// What health is told by.
#[derive(Debug, Clone)]
pub struct HealthState {
    /// How the work in Kubernetes is going, where there is any.
    pub cluster: Option<Health>,
    /// Cancelled once the service is going away.
    pub closing: CancellationToken,
}

/// `/healthz` and `/readyz`.
pub fn health_routes(state: HealthState) -> Router {
    Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .with_state(state)
}

async fn alive(State(state): State<HealthState>) -> (StatusCode, &'static str) {
    if state.cluster.as_ref().is_none_or(Health::is_alive) {
        (StatusCode::OK, "ok\n")
    } else {
        let reason = "the work in Kubernetes has stopped\n";
        (StatusCode::SERVICE_UNAVAILABLE, reason)
    }
}

async fn ready(State(state): State<HealthState>) -> (StatusCode, &'static str) {
    if state.closing.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n")
    } else if !state.cluster.as_ref().is_none_or(Health::has_policies) {
        let reason = "waiting for the policies from Kubernetes\n";
        (StatusCode::SERVICE_UNAVAILABLE, reason)
    } else {
        (StatusCode::OK, "ready\n")
    }
}
