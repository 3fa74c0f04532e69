//! What the oracle says of one request.

use std::time::Duration;

use crate::record::{Answer, Record};

/// The oracle's verdict on one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OracleVerdict {
    /// Whether it would have been admitted.
    pub admitted: bool,
    /// Expected number of good answers: 0 when not admitted, 1 when nothing else is wrong.
    pub good: f64,
    /// Whether it has no value and costs nothing, so that neither serving nor shedding it counts.
    pub is_worthless: bool,
    /// Whether any answer 200 is a good one, because none can be within the objective.
    pub any_answer: bool,
}

impl OracleVerdict {
    /// A request that cannot be served.
    pub(super) const NOTHING: Self = Self {
        admitted: false,
        good: 0.0,
        is_worthless: false,
        any_answer: false,
    };
    /// A request without value: shedding it costs nothing either.
    pub(super) const WORTHLESS: Self = Self {
        is_worthless: true,
        ..Self::NOTHING
    };

    /// Whether what came out is a good answer.
    #[must_use]
    pub fn is_good(&self, record: &Record, latency: Duration) -> bool {
        if self.any_answer {
            record.answer == Answer::Ok
        } else {
            record.is_good(latency)
        }
    }
}
