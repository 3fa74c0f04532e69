//! Liveness and readiness, on a port of their own.
//!
//! Load on the other ports must not make health checks time out: the kubelet would kill the service.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio_util::sync::CancellationToken;

use crate::kube::Health;

/// The state that health checks examine.
#[derive(Debug, Clone)]
pub struct HealthState {
    /// The health of the Kubernetes controller, if it runs.
    pub cluster: Option<Health>,
    /// Canceled when the service shuts down.
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
        let reason = "the Kubernetes controller has stopped\n";
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
