//! A failed write: what, why, and when to retry it.

use std::time::{Duration, Instant};

use crate::kube::istio::ObjectKey;
use crate::policy::PolicyName;

/// First and longest wait after a failed write.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// Doublings after which the longest wait is reached.
const MAX_DOUBLINGS: u32 = 9;

/// The subject of a write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteSubject {
    /// An object of Istio.
    Object(ObjectKey),
    /// The status of a policy.
    Status(PolicyName),
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteFailureCause {
    /// Someone else owns fields that it sets; the server's message.
    FieldsTaken(String),
    /// The server rejects it; the server's message.
    Rejected(String),
    /// The server could not be reached, or failed.
    Failed,
}

/// A failed write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteFailure {
    /// Hash of the object to be written.
    pub hash: String,
    /// Version of the object at that time; `None`: it did not exist.
    pub resource_version: Option<String>,
    /// Why the write failed.
    pub cause: WriteFailureCause,
    /// Number of consecutive failures.
    pub attempts: u32,
    /// When to retry it.
    pub retry_at: Instant,
}

impl WriteFailure {
    /// The failure after `before`. If the same object was to be written, the wait is twice the previous one.
    #[must_use]
    pub fn after(
        before: Option<&Self>,
        hash: String,
        resource_version: Option<String>,
        cause: WriteFailureCause,
        now: Instant,
    ) -> Self {
        let before = before.filter(|before| before.hash == hash);
        let attempts = before.map_or(0, |before| before.attempts).saturating_add(1);
        let doublings = (attempts - 1).min(MAX_DOUBLINGS);
        let wait = FIRST_RETRY
            .saturating_mul(1 << doublings)
            .min(LONGEST_RETRY);
        Self {
            hash,
            resource_version,
            cause,
            attempts,
            retry_at: now.checked_add(wait).unwrap_or(now),
        }
    }
}
