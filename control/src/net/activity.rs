//! Whether anything is under way on a connection.
//!
//! A request is under way from its headers until its response has been sent or given up, so that a stream that
//! says nothing for hours counts, and a connection that was opened and left does not.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::watch;

/// The requests under way on one connection; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Activity(watch::Sender<usize>);

/// A request under way; ends when dropped.
#[derive(Debug)]
pub(super) struct UnderWay(Activity);

impl Activity {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(super) fn begin(&self) -> UnderWay {
        self.0.send_modify(|count| *count = count.saturating_add(1));
        UnderWay(self.clone())
    }

    /// Ends once nothing has been under way for so long.
    pub(super) async fn rest(&self, patience: Duration) {
        let mut count = self.0.subscribe();
        loop {
            // The sender is here: it cannot be gone.
            let _ = count.wait_for(|count| *count == 0).await;
            let begun = count.wait_for(|count| *count > 0);
            if tokio::time::timeout(patience, begun).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let count = &self.0.0;
        count.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// The body of a response, until whose end its request is under way.
#[derive(Debug)]
pub(super) struct Sent {
    body: Body,
    _under_way: UnderWay,
}

impl Sent {
    pub(super) const fn new(body: Body, under_way: UnderWay) -> Self {
        Self {
            body,
            _under_way: under_way,
        }
    }
}

impl HttpBody for Sent {
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
    async fn a_connection_rests_once_nothing_was_under_way_for_long_enough() {
        let activity = Activity::new();
        let started = Instant::now();
        let request = activity.begin();
        let resting = tokio::spawn({
            let activity = activity.clone();
            async move { activity.rest(PATIENCE).await }
        });
        advance(PATIENCE * 100).await;
        assert!(!resting.is_finished(), "a request is under way");

        drop(request);
        resting.await.unwrap();

        assert_eq!(started.elapsed(), PATIENCE * 101);
    }
}
