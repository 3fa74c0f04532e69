//! Bodies of requests and responses whose bytes are spread over time.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::HeaderMap;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// A body of any kind.
pub(crate) type AnyBody = UnsyncBoxBody<Bytes, Infallible>;

/// Longest interval between two pieces of a body.
const MOST_APART: Duration = Duration::from_millis(100);

/// When the pieces of a body that lasts `duration` are due, from its first byte (zero) to its last (`duration`).
pub(crate) fn pieces(duration: Duration) -> impl Iterator<Item = Duration> + Send {
    at_least(1, duration)
}

/// The same for a body of at least this number of pieces.
pub(crate) fn at_least(least: u32, duration: Duration) -> impl Iterator<Item = Duration> + Send {
    let gaps = duration.as_nanos().div_ceil(MOST_APART.as_nanos());
    let gaps = u32::try_from(gaps).unwrap_or(u32::MAX);
    let gaps = gaps.max(least.saturating_sub(1));
    (0..=gaps).map(move |number| duration.mul_f64(f64::from(number) / f64::from(gaps.max(1))))
}

/// The end of a body that is written; the body ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Writer(mpsc::Sender<Result<Frame<Bytes>, Infallible>>);

/// A body and its writer.
pub(crate) fn body() -> (Writer, AnyBody) {
    // A slow reader holds the writer up, as a full socket does.
    let (sender, receiver) = mpsc::channel(1);
    (
        Writer(sender),
        StreamBody::new(Frames(receiver)).boxed_unsync(),
    )
}

impl Writer {
    /// Sends a piece; false when the reader is gone.
    pub(crate) async fn send(&self, data: Bytes) -> bool {
        self.0.send(Ok(Frame::data(data))).await.is_ok()
    }

    /// Sends the trailers; false when the reader is gone.
    pub(crate) async fn trailers(&self, trailers: HeaderMap) -> bool {
        self.0.send(Ok(Frame::trailers(trailers))).await.is_ok()
    }

    /// Waits until `moment`; false as soon as the reader is gone.
    pub(crate) async fn wait_until(&self, moment: Instant) -> bool {
        // A timer would fire late by up to a millisecond.
        if moment <= Instant::now() {
            return !self.0.is_closed();
        }
        tokio::select! {
            biased;
            () = self.gone() => false,
            () = sleep_until(moment) => true,
        }
    }

    /// Waits until the reader is gone.
    pub(crate) async fn gone(&self) {
        self.0.closed().await;
    }
}

/// A channel as a stream.
struct Frames(mpsc::Receiver<Result<Frame<Bytes>, Infallible>>);

impl Stream for Frames {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn pieces_begin_at_once_end_in_time_and_are_never_far_apart() {
        for (duration, count) in [(0, 1), (40, 2), (100, 2), (101, 3), (2_000, 21)] {
            let due: Vec<Duration> = pieces(ms(duration)).collect();
            assert_eq!(due.len(), count, "{duration} ms");
            assert_eq!(due.first(), Some(&Duration::ZERO));
            assert_eq!(due.last(), Some(&ms(duration)));
            let is_near = |pair: &[Duration]| pair[1] - pair[0] <= MOST_APART;
            assert!(due.windows(2).all(is_near), "{due:?}");
        }
    }

    #[test]
    fn a_large_body_has_more_pieces_in_the_same_time() {
        let due: Vec<Duration> = at_least(5, ms(40)).collect();
        assert_eq!(due, [0, 10, 20, 30, 40].map(ms));
        assert_eq!(at_least(2, ms(2_000)).count(), 21);
    }

    #[tokio::test]
    async fn a_writer_learns_that_its_reader_is_gone() {
        let (writer, body) = body();
        assert!(writer.wait_until(Instant::now()).await);
        drop(body);
        assert!(!writer.wait_until(Instant::now() + ms(60_000)).await);
        assert!(!writer.send(Bytes::from_static(b"x")).await);
    }
}
