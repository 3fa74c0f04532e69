//! A write that did not come about: what, why, and when it is to be tried again.

use std::time::{Duration, Instant};

use super::extension::ObjectKey;
use crate::policy::PolicyName;

/// First wait after a write that was refused, and the longest.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// Doublings after which the longest wait is reached.
const MAX_DOUBLINGS: u32 = 9;

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// An object of Istio.
    Object(ObjectKey),
    /// The status of a policy.
    Status(PolicyName),
}

/// Why a write did not come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Somebody else holds fields that it sets; the server's words.
    FieldsTaken(String),
    /// The server does not take it; its words.
    Rejected(String),
    /// The server could not be asked, or failed.
    Failed,
}

/// A write that did not come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Hash of what was to be written.
    pub hash: String,
    /// Version of the object then; `None`: there was none.
    pub resource_version: Option<String>,
    /// Why.
    pub cause: Cause,
    /// How often in a row.
    pub attempts: u32,
    /// When it is to be tried again.
    pub retry_at: Instant,
}

impl Refusal {
    /// Another one, after `before`; each waits twice as long as the one before it, if the same was to be written.
    #[must_use]
    pub fn after(
        before: Option<&Self>,
        hash: String,
        resource_version: Option<String>,
        cause: Cause,
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
