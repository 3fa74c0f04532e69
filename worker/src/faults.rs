//! What went wrong in the filter itself.
//!
//! A fault never stops traffic, so it must show elsewhere: each kind has a count, published as a metric, and the
//! first of each kind is logged. Not every one: a call that fails fails on every request.

use std::cell::Cell;

use crate::api::{Host, HostError, LogLevel};

/// What kind of fault. A closed set: the names are metric labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The clock could not be read.
    Clock,
    /// An attribute or a header could not be read.
    Read,
    /// A local reply was refused.
    LocalReply,
    /// A metric was refused, or the host keeps no value for it (its stats matcher rejects it).
    Metric,
    /// Shared data could not be read or written.
    SharedData,
    /// Shared data was malformed or of another version.
    Payload,
    /// A configuration was rejected.
    Configuration,
    /// More upstreams than may have metrics: the rest share some.
    Names,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Clock,
        Self::Read,
        Self::LocalReply,
        Self::Metric,
        Self::SharedData,
        Self::Payload,
        Self::Configuration,
        Self::Names,
    ];

    /// The kind's name in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Read => "read",
            Self::LocalReply => "local_reply",
            Self::Metric => "metric",
            Self::SharedData => "shared_data",
            Self::Payload => "payload",
            Self::Configuration => "configuration",
            Self::Names => "names",
        }
    }
}

/// Faults so far, by kind. They are noted through a shared reference, because all code that calls the host may have to.
#[derive(Clone, Debug, Default)]
pub struct Faults([Cell<u64>; Fault::ALL.len()]);

impl Faults {
    /// How many of `kind`.
    #[must_use]
    pub fn count(&self, kind: Fault) -> u64 {
        self.0.get(kind as usize).map(Cell::get).unwrap_or_default()
    }

    /// Counts one, and logs it if it is the first of its kind.
    pub fn note(&self, host: &impl Host, kind: Fault, what: &dyn core::fmt::Display) {
        if let Some(count) = self.0.get(kind as usize) {
            count.set(count.get().wrapping_add(1));
            if count.get() == 1 {
                let line = format!(
                    "tidegate: fault kind={} error=\"{what}\" (further ones are only counted)",
                    kind.as_str()
                );
                // Nothing is left to do about a log that fails.
                let _ = host.log(LogLevel::Warn, &line);
            }
        }
    }

    /// The value of `result`, or `None` and a fault.
    pub fn check<T>(
        &self,
        host: &impl Host,
        kind: Fault,
        result: Result<T, HostError>,
    ) -> Option<T> {
        result.map_err(|error| self.note(host, kind, &error)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    #[test]
    fn every_fault_counts_and_the_first_of_a_kind_is_logged() {
        let (host, faults) = (FakeHost::default(), Faults::default());
        for _ in 0..3 {
            faults.note(&host, Fault::Metric, &"no");
        }
        faults.note(&host, Fault::Clock, &"no");
        assert_eq!(faults.count(Fault::Metric), 3);
        assert_eq!(host.log_lines().len(), 2);
    }

    #[test]
    fn kinds_are_numbered_in_the_order_of_the_list() {
        for (index, kind) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }
}
