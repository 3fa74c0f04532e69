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
    pub(crate) admitted_at: Instant,
    pub(crate) phase: Phase,
    pub(crate) place: Place,
    /// In flight when it was admitted, itself included.
    pub(crate) load: u32,
    /// The breaker's epoch: an outcome says nothing about a state that began after its admission.
    pub(crate) epoch: u32,
    pub(crate) purpose: Purpose,
    /// Whether the proxy-wide counter counts it.
    pub(crate) shared: bool,
    /// Whether it was written off before its answer came: held, and no load.
    pub(crate) written_off: bool,
}

impl Permit {
    /// Whose permit it is.
    #[must_use]
    pub const fn upstream(&self) -> UpstreamId {
        self.upstream
    }

    /// When the request was admitted.
    #[must_use]
    pub const fn admitted_at(&self) -> Instant {
        self.admitted_at
    }

    /// Time from admission to the response headers, once they have come.
    #[must_use]
    pub fn latency(&self) -> Option<Duration> {
        match self.phase {
            Phase::Waiting => None,
            Phase::Answered { at } => Some(at.saturating_since(self.admitted_at)),
        }
    }

    /// Whether the response headers have come.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        matches!(self.phase, Phase::Answered { .. })
    }
}

/// How far the exchange got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No response headers yet.
    Waiting,
    /// Response headers came; the body may still run.
    Answered { at: Instant },
}

/// Where the ages ledger counts it (see [`crate::ages`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// When it entered by the ledger's clock, which never goes back; nanoseconds.
    pub(crate) entered: u64,
}

/// Why it was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Within the limit.
    Normal,
    /// To see whether a half-open upstream is back.
    Probe,
    /// A health checker's request: counted in flight, never judged.
    Exempt,
}
