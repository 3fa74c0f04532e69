//! What happened to each request, as the caller saw it.

use std::time::Duration;

use serde::Serialize;

use crate::arrivals::Arrival;

/// What the caller got in the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// 200 (gRPC: OK).
    Ok,
    /// A proxy refused it on purpose; the response code details say why.
    Shed(String),
    /// Another status, from the upstream or the proxy.
    Failed(u16),
    /// The caller's deadline passed first.
    GaveUp,
    /// The connection failed before there was a status, or before a response 200 was complete.
    Broken,
}

/// One request from its scheduled arrival to the end of its last attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The request as it was scheduled.
    pub arrival: Arrival,
    /// What the caller got in the end.
    pub answer: Answer,
    /// From the *scheduled* arrival to the moment that [`crate::scenario::LatencyUntil`] names, or to the end if that moment never
    /// came. Includes retries, so that a late client does not look fast. Excludes uploads, which are the caller's time.
    pub latency: Duration,
    /// Attempts made, at least 1.
    pub attempts: u32,
    /// Attempts that were shed.
    pub sheds: u32,
}

impl Record {
    /// Whether the answer is a good one: 200 within the objective's latency.
    #[must_use]
    pub fn is_good(&self, slo_latency: Duration) -> bool {
        self.answer == Answer::Ok && self.latency <= slo_latency
    }

    /// Whether the request was refused on purpose in the end.
    #[must_use]
    pub const fn is_shed(&self) -> bool {
        matches!(self.answer, Answer::Shed(_))
    }
}
