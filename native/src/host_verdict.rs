//! What the end of a request says about the upstream host that had it.

use core::time::Duration;

use tidegate_core::{Failure, Outcome};
use tidegate_worker::metrics::description::Metric;
use tidegate_worker::metrics::table::{HOST_FAILURES, HOST_OVERLOADS, HOST_REQUESTS, HOST_SLOW};

/// What is counted for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostCount {
    /// Every request.
    Requests,
    Failures,
    Overloads,
    Slow,
}

impl HostCount {
    pub(crate) const ALL: [Self; 4] = [Self::Requests, Self::Failures, Self::Overloads, Self::Slow];

    /// The metric that has it.
    pub(crate) const fn metric(self) -> &'static Metric {
        match self {
            Self::Requests => &HOST_REQUESTS,
            Self::Failures => &HOST_FAILURES,
            Self::Overloads => &HOST_OVERLOADS,
            Self::Slow => &HOST_SLOW,
        }
    }

    /// What a request counts as besides [`HostCount::Requests`]. `waited` is its latency, or the time since the upstream had the whole
    /// request if it ended before; `None` if there is no such time. It is asked for only where it matters.
    ///
    /// | outcome | waited | counts as |
    /// |---|---|---|
    /// | failure | any | failure |
    /// | timeout of an upload | none | nothing: the caller did not send |
    /// | overload | any | overload |
    /// | success, caller left | longer than the target | slow |
    /// | success, caller left | up to the target, none | nothing |
    /// | ignored, such as a 4xx | any | nothing |
    pub(crate) fn of(
        outcome: Outcome,
        target: Duration,
        waited: impl FnOnce() -> Option<Duration>,
    ) -> Option<Self> {
        match outcome {
            Outcome::Failure(Failure::Timeout) => waited().map(|_| Self::Failures),
            Outcome::Failure(_) => Some(Self::Failures),
            Outcome::Overload { .. } => Some(Self::Overloads),
            Outcome::Success | Outcome::Cancelled => {
                waited().filter(|it| *it > target).map(|_| Self::Slow)
            }
            Outcome::Ignored => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_counts_as() {
        const FAILED: Option<HostCount> = Some(HostCount::Failures);
        const BUSY: Option<HostCount> = Some(HostCount::Overloads);
        const SLOW: Option<HostCount> = Some(HostCount::Slow);
        let overload = Outcome::Overload { retry_after: None };
        let failure = Outcome::Failure;
        // Waited for: no time, as long as the target, and longer.
        let table = [
            (failure(Failure::Status), [FAILED; 3]),
            (failure(Failure::Grpc), [FAILED; 3]),
            (failure(Failure::Connection), [FAILED; 3]),
            (failure(Failure::Truncated), [FAILED; 3]),
            (failure(Failure::Timeout), [None, FAILED, FAILED]),
            (overload, [BUSY; 3]),
            (Outcome::Success, [None, None, SLOW]),
            (Outcome::Cancelled, [None, None, SLOW]),
            (Outcome::Ignored, [None; 3]),
        ];
        let target = Duration::from_millis(300);
        let waits = [None, Some(target), Some(target + Duration::from_nanos(1))];
        for (outcome, expected) in table {
            let found = waits.map(|waited| HostCount::of(outcome, target, || waited));
            assert_eq!(found, expected, "{outcome:?}");
        }
    }
}
