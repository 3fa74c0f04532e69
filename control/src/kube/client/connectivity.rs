//! Logs when the API server becomes unreachable, and when it answers again.
//!
//! Several tasks send requests, and during an outage each fails again and again. Each counts its failures; the log
//! should show once that the server is unreachable and once that it is back. Therefore the client itself is observed:
//!
//! ```text
//!              failed                    failed, PATIENCE later
//!   Connected ---------------> Failing ---------------------------> Disconnected
//!     ^                           |                                      |
//!     +--------- answered --------+-------------- answered --------------+
//! ```
//!
//! A single broken connection is not an outage, so failures are logged only after `PATIENCE`. An error status from the
//! server is an answer. An error of a gateway in front of it (502, 503, 504) is neither answer nor failure: the task that
//! sent the request logs it. A request that its task abandoned is not observed here.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Response, StatusCode};
use tower::BoxError;
use tracing::{info, warn};

use super::error::describe;
use crate::kube::clock::ClockReading;

/// How long requests must fail before the outage is logged: not longer than the first backoff of a watch, so that the
/// second failed attempt logs it.
const PATIENCE: Duration = Duration::from_millis(500);

/// The state of the connection; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Connectivity(Arc<Mutex<ConnectivityState>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ConnectivityState {
    #[default]
    Connected,
    Failing {
        since: Instant,
    },
    Disconnected {
        since: Instant,
    },
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ApiOutcome {
    Answered,
    Failed,
}

/// A change that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectivityChange {
    Lost,
    Restored { after: Duration },
}

impl ConnectivityState {
    /// The state after an outcome, and the change to log.
    fn after(self, outcome: ApiOutcome, now: Instant) -> (Self, Option<ConnectivityChange>) {
        match (self, outcome) {
            (Self::Connected | Self::Failing { .. }, ApiOutcome::Answered) => {
                (Self::Connected, None)
            }
            (Self::Disconnected { since }, ApiOutcome::Answered) => {
                let after = now.saturating_duration_since(since);
                (
                    Self::Connected,
                    Some(ConnectivityChange::Restored { after }),
                )
            }
            (Self::Connected, ApiOutcome::Failed) => (Self::Failing { since: now }, None),
            (Self::Failing { since }, ApiOutcome::Failed)
                if now.saturating_duration_since(since) >= PATIENCE =>
            {
                (Self::Disconnected { since }, Some(ConnectivityChange::Lost))
            }
            (Self::Failing { .. } | Self::Disconnected { .. }, ApiOutcome::Failed) => (self, None),
        }
    }
}

impl Connectivity {
    /// Observes the result of a request and returns it unchanged.
    pub(super) fn observer<B>(
        &self,
    ) -> impl FnOnce(Result<Response<B>, BoxError>) -> Result<Response<B>, BoxError> + Clone + use<B>
    {
        let connectivity = self.clone();
        move |result| {
            match &result {
                Ok(answer) if is_gateway_error(answer.status()) => {}
                Ok(_) => connectivity.note(ApiOutcome::Answered, &""),
                Err(error) => connectivity.note(ApiOutcome::Failed, &describe(error.as_ref())),
            }
            result
        }
    }

    fn note(&self, outcome: ApiOutcome, error: &dyn fmt::Display) {
        let change = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (next, change) = state.after(outcome, ClockReading::now().instant);
            *state = next;
            change
        };
        match change {
            Some(ConnectivityChange::Lost) => {
                warn!(%error, "the API server is unreachable; the known policies remain in force");
            }
            Some(ConnectivityChange::Restored { after }) => {
                let seconds = after.as_secs();
                info!(seconds, "the API server answers again");
            }
            None => {}
        }
    }
}

fn is_gateway_error(status: StatusCode) -> bool {
    [
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ]
    .contains(&status)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWERED: ApiOutcome = ApiOutcome::Answered;
    const FAILED: ApiOutcome = ApiOutcome::Failed;

    /// The changes after these outcomes, each at its time in milliseconds.
    fn changes(outcomes: &[(u64, ApiOutcome)]) -> Vec<Option<ConnectivityChange>> {
        let start = Instant::now();
        let mut state = ConnectivityState::default();
        let step = |&(at, outcome): &(u64, ApiOutcome)| {
            let (next, change) = state.after(outcome, start + Duration::from_millis(at));
            state = next;
            change
        };
        outcomes.iter().map(step).collect()
    }

    #[test]
    fn an_outage_and_its_end_are_logged_once_each() {
        let after = Duration::from_millis(9_000);
        assert_eq!(
            changes(&[
                (0, ANSWERED),
                (1_000, FAILED),
                (1_001, FAILED),
                (1_499, FAILED),
                (1_500, FAILED),
                (5_000, FAILED),
                (10_000, ANSWERED),
                (10_001, ANSWERED),
            ]),
            [
                None,
                None,
                None,
                None,
                Some(ConnectivityChange::Lost),
                None,
                Some(ConnectivityChange::Restored { after }),
                None
            ]
        );
    }

    #[test]
    fn occasional_broken_connections_are_not_logged() {
        let outcomes = [
            (0, FAILED),
            (499, FAILED),
            (600, ANSWERED),
            (5_000, FAILED),
            (5_010, ANSWERED),
        ];
        assert_eq!(changes(&outcomes), [None; 5]);
    }

    #[test]
    fn an_error_of_a_gateway_changes_nothing() {
        let connectivity = Connectivity::default();
        let answer = |status: u16| Ok(Response::builder().status(status).body(()).unwrap());
        let state = || *connectivity.0.lock().unwrap();
        let observe = |result| {
            let _ = connectivity.observer()(result);
        };
        observe(Err("refused".into()));
        let failing = state();
        assert_ne!(failing, ConnectivityState::Connected);
        observe(answer(503));
        assert_eq!(state(), failing);
        observe(answer(403));
        assert_eq!(
            state(),
            ConnectivityState::Connected,
            "an error status is an answer"
        );
    }
}
