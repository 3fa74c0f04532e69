//! The event queue, in the order of time, then of creation.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tidegate_core::Instant;

/// An event. Requests are identified by the number of their attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorldEvent {
    /// A caller sends a request for the first time.
    Due { call: usize },
    /// A caller sends it again.
    Again { call: usize },
    /// A request reaches the proxy.
    AtProxy { attempt: usize },
    /// A request reaches the upstream.
    AtUpstream { attempt: usize },
    /// The last byte of a request's body reaches the proxy.
    UploadedAtProxy { attempt: usize },
    /// It reaches the upstream.
    UploadedAtUpstream { attempt: usize },
    /// A slot has done its work for a request.
    Worked { attempt: usize },
    /// The upstream has sent the last byte of a body.
    Sent { attempt: usize },
    /// The headers of a response whose end comes later reach the proxy.
    HeadersAtProxy { attempt: usize },
    /// The first byte of a response whose headers came before reaches the proxy.
    FirstByteAtProxy { attempt: usize },
    /// The upstream's answer has reached the proxy, to its last byte.
    AnswerAtProxy { attempt: usize },
    /// The moment of a response to which latency is measured reaches the caller, before its end.
    MomentAtCaller { attempt: usize },
    /// A caller closes a response before its end.
    ReadEnough { attempt: usize },
    /// An answer has reached the caller, to its last byte.
    AnswerAtCaller { attempt: usize },
    /// The timeout that a caller asked the proxy for has expired.
    TimedOut { attempt: usize },
    /// A caller gives up.
    GiveUp { attempt: usize },
    /// The caller's cancellation reaches the proxy.
    CancelAtProxy { attempt: usize },
    /// The cancellation reaches the upstream.
    CancelAtUpstream { attempt: usize },
    /// An endpoint enters the next stage of its life.
    Stage { upstream: usize, endpoint: usize },
    /// A contender's upkeep.
    Tick { proxy: usize },
    /// An incident of the scenario.
    Incident { index: usize },
    /// A sample of everything.
    Sample,
}

impl WorldEvent {
    /// Kind and subject as numbers, for the digest; the same on machines of 32 bits.
    pub(super) fn code(self) -> (u64, u64) {
        let wide = |index| u64::try_from(index).unwrap_or(u64::MAX);
        let (kind, subject) = match self {
            Self::Due { call } => (1, call),
            Self::Again { call } => (2, call),
            Self::AtProxy { attempt } => (3, attempt),
            Self::AtUpstream { attempt } => (4, attempt),
            Self::Worked { attempt } => (5, attempt),
            Self::AnswerAtProxy { attempt } => (6, attempt),
            Self::AnswerAtCaller { attempt } => (7, attempt),
            Self::GiveUp { attempt } => (8, attempt),
            Self::CancelAtProxy { attempt } => (9, attempt),
            Self::CancelAtUpstream { attempt } => (10, attempt),
            Self::Stage { upstream, endpoint } => {
                return (11, wide(upstream) << 32 ^ wide(endpoint));
            }
            Self::Tick { proxy } => (12, proxy),
            Self::Incident { index } => (13, index),
            Self::Sample => (14, 0),
            Self::UploadedAtProxy { attempt } => (16, attempt),
            Self::UploadedAtUpstream { attempt } => (17, attempt),
            Self::Sent { attempt } => (18, attempt),
            Self::HeadersAtProxy { attempt } => (19, attempt),
            Self::FirstByteAtProxy { attempt } => (20, attempt),
            Self::MomentAtCaller { attempt } => (21, attempt),
            Self::ReadEnough { attempt } => (22, attempt),
            Self::TimedOut { attempt } => (23, attempt),
        };
        (kind, wide(subject))
    }
}

#[derive(Debug, Clone, Copy)]
struct QueueEntry {
    at: Instant,
    sequence: u64,
    what: WorldEvent,
}

impl QueueEntry {
    const fn key(&self) -> (Instant, u64) {
        (self.at, self.sequence)
    }
}

impl PartialEq for QueueEntry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for QueueEntry {}

impl PartialOrd for QueueEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for QueueEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The event queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<QueueEntry>>,
    sequence: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at: Instant, what: WorldEvent) {
        self.sequence += 1;
        self.heap.push(Reverse(QueueEntry {
            at,
            sequence: self.sequence,
            what,
        }));
    }

    pub(super) fn pop(&mut self) -> Option<(Instant, WorldEvent)> {
        self.heap
            .pop()
            .map(|Reverse(QueueEntry { at, what, .. })| (at, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_comes_first_then_the_order_of_making() {
        let mut queue = Queue::default();
        let at = Instant::from_nanos;
        queue.push(at(2), WorldEvent::Sample);
        queue.push(at(1), WorldEvent::Tick { proxy: 7 });
        queue.push(at(1), WorldEvent::Tick { proxy: 3 });
        assert_eq!(queue.pop(), Some((at(1), WorldEvent::Tick { proxy: 7 })));
        assert_eq!(queue.pop(), Some((at(1), WorldEvent::Tick { proxy: 3 })));
        assert_eq!(queue.pop(), Some((at(2), WorldEvent::Sample)));
        assert_eq!(queue.pop(), None);
    }
}
