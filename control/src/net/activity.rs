//! Whether a connection has active requests.
//!
//! A request is active from its headers until its response has been sent or aborted. So a stream that is silent for
//! hours counts as active, and a connection that was opened and abandoned does not.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::watch;

/// The active requests of one connection; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Activity(watch::Sender<usize>);

/// An active request; ends when dropped.
#[derive(Debug)]
pub(super) struct ActiveRequest(Activity);

impl Activity {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(super) fn begin(&self) -> ActiveRequest {
        self.0.send_modify(|count| *count = count.saturating_add(1));
        ActiveRequest(self.clone())
    }

    /// Returns once no request has been active for as long as `patience`.
    pub(super) async fn rest(&self, patience: Duration) {
        let mut count = self.0.subscribe();
        loop {
            // Cannot fail: this value holds the sender.
            let _ = count.wait_for(|count| *count == 0).await;
            let active = count.wait_for(|count| *count > 0);
            if tokio::time::timeout(patience, active).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let count = &self.0.0;
        count.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// The body of a response; its request is active until the body ends.
#[derive(Debug)]
pub(super) struct TrackedBody {
    body: Body,
    _active: ActiveRequest,
}

impl TrackedBody {
    pub(super) const fn new(body: Body, active: ActiveRequest) -> Self {
        Self {
            body,
            _active: active,
        }
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, advance};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_connection_rests_once_nothing_was_active_for_long_enough() {
        let activity = Activity::new();
        let started = Instant::now();
        let request = activity.begin();
        let resting = tokio::spawn({
            let activity = activity.clone();
            async move { activity.rest(PATIENCE).await }
        });
        advance(PATIENCE * 100).await;
        assert!(!resting.is_finished(), "a request is active");

        drop(request);
        resting.await.unwrap();

        assert_eq!(started.elapsed(), PATIENCE * 101);
    }
}
