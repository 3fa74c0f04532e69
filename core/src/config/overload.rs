//! Which answers say "too busy".
//!
//! A quota for each caller, a full queue, and a service that is down can answer with the same statuses. Only the service's
//! owner knows which one a status means. So the set is configurable. With an empty set no answer is a signal.

use super::number_set::NumberSet;
use super::reader::Section;
use super::schema;

/// The answers that are overload signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverloadConfig {
    statuses: NumberSet,
    with_retry_after: NumberSet,
    grpc: NumberSet,
}

impl OverloadConfig {
    /// Whether answers with this HTTP status are signals, even without `retry-after`.
    #[must_use]
    pub fn has_status(&self, status: u16) -> bool {
        self.statuses.has(status.into())
    }

    /// Whether answers with this HTTP status are signals if they have a `retry-after`.
    #[must_use]
    pub fn has_status_with_retry_after(&self, status: u16) -> bool {
        self.has_status(status) || self.with_retry_after.has(status.into())
    }

    /// Whether answers with this gRPC status are signals.
    #[must_use]
    pub fn has_grpc_status(&self, status: u32) -> bool {
        self.grpc.has(status)
    }

    pub(super) fn read(s: &mut Section<'_>, parent: Option<&Self>) -> Self {
        let default = Self::default();
        let parent = parent.unwrap_or(&default);
        Self {
            statuses: s.numbers(schema::OVERLOAD_STATUSES, parent.statuses),
            with_retry_after: s.numbers(schema::OVERLOAD_WITH_RETRY_AFTER, parent.with_retry_after),
            grpc: s.numbers(schema::OVERLOAD_GRPC, parent.grpc),
        }
    }
}

impl Default for OverloadConfig {
    fn default() -> Self {
        Self {
            statuses: NumberSet::of(&schema::OVERLOAD_STATUSES),
            with_retry_after: NumberSet::of(&schema::OVERLOAD_WITH_RETRY_AFTER),
            grpc: NumberSet::of(&schema::OVERLOAD_GRPC),
        }
    }
}
