//! Whether anybody answers at the other end of the client, and a line in the log when that changes.
//!
//! Several tasks ask the API server, and while it is away each fails again and again. Each counts its failures; in the
//! log an operator wants to read that the server is away and that it is back. So the client itself is listened to:
//!
//! ```text
//!              failed                  failed, PATIENCE later
//!   Heard ---------------> Doubted ---------------------------> Away
//!     ^                       |                                  |
//!     +------- answered ------+------------ answered ------------+
//! ```
//!
//! One connection that breaks is no outage, so that doubt is not told. A refusal is an answer. What a gateway says in
//! the server's place (502, 503, 504) is neither: the one who asked tells of it. A question that its asker gave up is not
//! heard of here.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Response, StatusCode};
use tower::BoxError;
use tracing::{info, warn};

use super::cause::words;
use super::shared::moment;

/// How long nobody answers before that is told: no longer than the first pause of a watch, so that an outage is told by
/// the second look.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is known of the other end; handles share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Contact(Arc<Mutex<State>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Heard,
    Doubted {
        since: Instant,
    },
    Away {
        since: Instant,
    },
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answered,
    Failed,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Gone,
    Back { after: Duration },
}

impl State {
    /// The state after an outcome, and what there is to tell.
    fn after(self, outcome: Outcome, now: Instant) -> (Self, Option<News>) {
        match (self, outcome) {
            (Self::Heard | Self::Doubted { .. }, Outcome::Answered) => (Self::Heard, None),
            (Self::Away { since }, Outcome::Answered) => {
                let after = now.saturating_duration_since(since);
                (Self::Heard, Some(News::Back { after }))
            }
            (Self::Heard, Outcome::Failed) => (Self::Doubted { since: now }, None),
            (Self::Doubted { since }, Outcome::Failed)
                if now.saturating_duration_since(since) >= PATIENCE =>
            {
                (Self::Away { since }, Some(News::Gone))
            }
            (Self::Doubted { .. } | Self::Away { .. }, Outcome::Failed) => (self, None),
        }
    }
}

impl Contact {
    /// Listens to one answer, which goes on as it came.
    pub(super) fn listen<B>(
        &self,
    ) -> impl FnOnce(Result<Response<B>, BoxError>) -> Result<Response<B>, BoxError> + Clone + use<B>
    {
        let contact = self.clone();
        move |result| {
            match &result {
                Ok(answer) if is_of_a_gateway(answer.status()) => {}
                Ok(_) => contact.note(Outcome::Answered, &""),
                Err(error) => contact.note(Outcome::Failed, &words(error.as_ref())),
            }
            result
        }
    }

    fn note(&self, outcome: Outcome, error: &dyn fmt::Display) {
        let news = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (next, news) = state.after(outcome, moment().instant);
            *state = next;
            news
        };
        match news {
            Some(News::Gone) => {
                warn!(%error, "the API server cannot be reached; the known policies stay in force");
            }
            Some(News::Back { after }) => {
                let seconds = after.as_secs();
                info!(seconds, "the API server answers again");
            }
            None => {}
        }
    }
}

fn is_of_a_gateway(status: StatusCode) -> bool {
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

    const ANSWERED: Outcome = Outcome::Answered;
    const FAILED: Outcome = Outcome::Failed;

    /// What is told after each of these outcomes, at these milliseconds.
    fn told(outcomes: &[(u64, Outcome)]) -> Vec<Option<News>> {
        let start = Instant::now();
        let mut state = State::default();
        let step = |&(at, outcome): &(u64, Outcome)| {
            let (next, news) = state.after(outcome, start + Duration::from_millis(at));
            state = next;
            news
        };
        outcomes.iter().map(step).collect()
    }

    #[test]
    fn an_outage_is_told_once_and_so_is_its_end() {
        let after = Duration::from_millis(9_000);
        assert_eq!(
            told(&[
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
                Some(News::Gone),
                None,
                Some(News::Back { after }),
                None
            ]
        );
    }

    #[test]
    fn a_connection_that_breaks_now_and_then_is_not_told() {
        let outcomes = [
            (0, FAILED),
            (499, FAILED),
            (600, ANSWERED),
            (5_000, FAILED),
            (5_010, ANSWERED),
        ];
        assert_eq!(told(&outcomes), [None; 5]);
    }

    #[test]
    fn a_gateway_speaks_for_nobody() {
        let contact = Contact::default();
        let answer = |status: u16| Ok(Response::builder().status(status).body(()).unwrap());
        let state = || *contact.0.lock().unwrap();
        let listen = |result| {
            let _ = contact.listen()(result);
        };
        listen(Err("refused".into()));
        let doubted = state();
        assert_ne!(doubted, State::Heard);
        listen(answer(503));
        assert_eq!(state(), doubted);
        listen(answer(403));
        assert_eq!(state(), State::Heard, "a refusal is an answer");
    }
}
