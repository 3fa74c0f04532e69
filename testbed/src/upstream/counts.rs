//! What an upstream counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What an upstream has counted since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests received; each attempt of a caller is one.
    pub received: u64,
    /// Those that came while the mode was not to serve.
    pub received_while_down: u64,
    /// Answers without a failure.
    pub served: u64,
    /// Answers with a failure of any kind.
    pub failed: u64,
    /// Failures because the waiting line was full.
    pub line_full: u64,
    /// Requests under way now, as the caller sees it (received, neither answered nor abandoned).
    pub concurrent: u64,
    /// Most requests under way at the same time.
    pub max_concurrent: u64,
    /// Requests that hold a slot now.
    pub in_service: u64,
    /// Requests that wait for a slot now.
    pub waiting: u64,
}

#[derive(Debug, Default)]
pub(super) struct AtomicCounts {
    received: AtomicU64,
    received_while_down: AtomicU64,
    served: AtomicU64,
    failed: AtomicU64,
    line_full: AtomicU64,
    concurrent: AtomicU64,
    max_concurrent: AtomicU64,
    by_path: Mutex<BTreeMap<String, u64>>,
}

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerOutcome {
    Served,
    Failed,
    LineFull,
}

impl AtomicCounts {
    /// Counts a request; it is under way until the guard is dropped.
    pub(super) fn receive(&self, path: &str, is_up: bool) -> UnderWay<'_> {
        self.received.fetch_add(1, Ordering::Relaxed);
        if !is_up {
            self.received_while_down.fetch_add(1, Ordering::Relaxed);
        }
        let mut by_path = self.by_path.lock().unwrap_or_else(PoisonError::into_inner);
        match by_path.get_mut(path) {
            Some(count) => *count += 1,
            None => {
                by_path.insert(path.to_owned(), 1);
            }
        }
        drop(by_path);
        let now = self.concurrent.fetch_add(1, Ordering::Relaxed) + 1;
        self.max_concurrent.fetch_max(now, Ordering::Relaxed);
        UnderWay(self)
    }

    pub(super) fn end(&self, outcome: AnswerOutcome) {
        match outcome {
            AnswerOutcome::Served => self.served.fetch_add(1, Ordering::Relaxed),
            AnswerOutcome::Failed => self.failed.fetch_add(1, Ordering::Relaxed),
            AnswerOutcome::LineFull => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                self.line_full.fetch_add(1, Ordering::Relaxed)
            }
        };
    }

    pub(super) fn read(&self) -> Counts {
        Counts {
            received: self.received.load(Ordering::Relaxed),
            received_while_down: self.received_while_down.load(Ordering::Relaxed),
            served: self.served.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            line_full: self.line_full.load(Ordering::Relaxed),
            concurrent: self.concurrent.load(Ordering::Relaxed),
            max_concurrent: self.max_concurrent.load(Ordering::Relaxed),
            in_service: 0,
            waiting: 0,
        }
    }

    pub(super) fn received_for(&self, path: &str) -> u64 {
        self.by_path
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(path)
            .copied()
            .unwrap_or(0)
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct UnderWay<'a>(&'a AtomicCounts);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.concurrent.fetch_sub(1, Ordering::Relaxed);
    }
}
