//! What a service grants one client.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a service grants one client: beyond it requests are answered at once and without a slot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Requests a second.
    pub rps: f64,
    /// Status of the answer beyond the quota.
    #[serde(default = "too_many_requests")]
    pub status: u16,
    /// Value of its `retry-after` header in seconds, where it has one.
    #[serde(default)]
    pub retry_after: Option<u32>,
}

const fn too_many_requests() -> u16 {
    429
}

/// A quota in use: a bucket of tokens that holds what is granted in a second, at least one, and begins full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenBucket {
    rps: f64,
    tokens: f64,
    at: Duration,
}

impl Quota {
    /// A full bucket.
    #[must_use]
    pub const fn bucket(&self) -> TokenBucket {
        TokenBucket {
            rps: self.rps,
            tokens: self.rps.max(1.0),
            at: Duration::ZERO,
        }
    }
}

impl TokenBucket {
    /// Whether a request at this time of the run is within the quota; if so, it takes a token.
    pub fn take(&mut self, at: Duration) -> bool {
        let earned = at.saturating_sub(self.at).as_secs_f64() * self.rps;
        self.tokens = (self.tokens + earned).min(self.rps.max(1.0));
        self.at = self.at.max(at);
        let is_within = self.tokens >= 1.0;
        if is_within {
            self.tokens -= 1.0;
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_granted_at_once_and_the_rate_from_then_on() {
        let quota = Quota {
            rps: 10.0,
            status: 429,
            retry_after: None,
        };
        let mut bucket = quota.bucket();
        let mut granted = |at_ms| bucket.take(Duration::from_millis(at_ms));
        assert_eq!((0..20).filter(|_| granted(0)).count(), 10);
        assert_eq!((0..200).filter(|n| granted(5_000 + n * 5)).count(), 19);
    }
}
