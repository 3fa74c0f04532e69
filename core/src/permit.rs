//! The right to be in flight.
//!
//! A permit is made by `admit` and spent by value in `complete`, so that no request can be counted twice or
//! given back twice: in-flight neither leaks nor goes negative.

use core::time::Duration;

use crate::time::Instant;
use crate::upstream::UpstreamId;

/// One admitted request. Spend it with [`crate::Engine::complete`]; a permit that is dropped leaks its place.
#[must_use = "an admitted request stays in flight until its permit is completed"]
#[derive(Debug, PartialEq, Eq)]
pub struct Permit {
    pub(crate) upstream: UpstreamId,
    /// When the upstream had the whole request: at its admission, or at the end of its body.
    pub(crate) started_at: Instant,
    pub(crate) stage: RequestStage,
    pub(crate) place: LedgerPlace,
    /// From the start to the moment that the objective measures.
    pub(crate) latency: Latency,
    /// In flight when it was admitted, itself included.
    pub(crate) load: u32,
    /// The breaker's epoch: an outcome says nothing about a state that began after its admission.
    pub(crate) epoch: u32,
    pub(crate) purpose: Purpose,
    /// How long the caller waits, if the request was admitted to find out whether that is too short.
    pub(crate) explored: Option<Duration>,
    /// Whether the proxy-wide counter counts it.
    pub(crate) shared: bool,
    /// The answer by its response headers, if that was no failure.
    pub(crate) answer: Option<AnswerClass>,
}

impl Permit {
    /// Whose permit it is.
    #[must_use]
    pub const fn upstream(&self) -> UpstreamId {
        self.upstream
    }

    /// When the upstream had the whole request: at its admission, or at the end of its body.
    #[must_use]
    pub const fn started_at(&self) -> Instant {
        self.started_at
    }

    /// Time from the end of the request to the moment that the objective measures, once that has come.
    #[must_use]
    pub const fn latency(&self) -> Option<Duration> {
        self.latency.waited()
    }

    /// The latency, or while it is not measured what it would be at this moment; the clock is read only then. `None` for a request
    /// that is not complete yet, and for a connection that was upgraded.
    pub fn latency_by(&self, now: impl FnOnce() -> Instant) -> Option<Duration> {
        match self.stage {
            RequestStage::Uploading => None,
            RequestStage::Waiting | RequestStage::Answering => {
                Some(now().saturating_since(self.started_at))
            }
            RequestStage::Open => self.latency(),
        }
    }

    /// Whether it no longer counts as load.
    pub(crate) fn is_open(&self) -> bool {
        self.stage == RequestStage::Open
    }

    /// Whether the response headers have come.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        matches!(self.stage, RequestStage::Answering | RequestStage::Open)
    }
}

/// How far the exchange got.
///
/// ```text
///             request complete     headers        the moment measured
///  Uploading ------------------> Waiting -----> Answering ---------> Open --> (complete)
///     admitted with a body          ^ admitted without one
/// ```
///
/// A request counts against the limit before `Open`, and its latency begins after `Uploading`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestStage {
    /// The caller still sends the request's body.
    Uploading,
    /// The upstream has the request; no response headers yet.
    Waiting,
    /// The response headers came, and the objective measures a later moment.
    Answering,
    /// The objective has its latency. The response may continue.
    Open,
}

/// Time from the start of a request to the moment that the objective measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Latency {
    /// That moment has not come, or never comes: the request was answered before it was complete.
    Running,
    /// The request counted as load all the time.
    Measured(Duration),
    /// The request was taken out of the count in flight before. It stood in no queue, so no law learns from this time. Its caller
    /// waited for it all the same.
    Uncounted(Duration),
}

impl Latency {
    /// What the laws may learn from.
    pub(crate) const fn sample(self) -> Option<Duration> {
        match self {
            Self::Measured(time) => Some(time),
            Self::Running | Self::Uncounted(_) => None,
        }
    }

    /// How long the caller waited.
    pub(crate) const fn waited(self) -> Option<Duration> {
        match self {
            Self::Running => None,
            Self::Measured(time) | Self::Uncounted(time) => Some(time),
        }
    }
}

/// The answer by response headers that were no failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerClass {
    /// A success, which has been counted as one.
    Success,
    /// Nothing about the upstream, such as a client's error.
    Neutral,
    /// A success that upgraded its connection, whose end says nothing about answers.
    Upgraded,
}

/// Where the ages ledger counts it (see [`crate::ages`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LedgerPlace {
    /// When it entered by the ledger's clock, which never goes back; nanoseconds.
    pub(crate) entered: u64,
}

impl LedgerPlace {
    /// Of a request that no ledger counts.
    pub(crate) const NONE: Self = Self { entered: 0 };
}

/// Why the request was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Within the limit.
    Normal,
    /// To see whether a half-open upstream is back.
    Probe,
    /// A health checker's request that was admitted despite a refusal: no load, and never judged.
    Exempt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_that_is_not_measured_grows_until_the_upgrade_of_the_connection() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let permit = |stage, latency| Permit {
            upstream: UpstreamId::OVERFLOW,
            started_at: at(100),
            stage,
            place: LedgerPlace::NONE,
            latency,
            load: 1,
            epoch: 0,
            purpose: Purpose::Normal,
            explored: None,
            shared: false,
            answer: None,
        };
        use Latency::{Measured, Running, Uncounted};
        let short = Duration::from_millis(5);
        let by_now = Some(Duration::from_millis(40));
        for (stage, latency, expected) in [
            (RequestStage::Uploading, Running, None),
            (RequestStage::Waiting, Running, by_now),
            (RequestStage::Answering, Running, by_now),
            (RequestStage::Open, Measured(short), Some(short)),
            (RequestStage::Open, Uncounted(short), Some(short)),
            (RequestStage::Open, Running, None),
        ] {
            let found = permit(stage, latency).latency_by(|| at(140));
            assert_eq!(found, expected, "{stage:?}");
        }
    }
}
