//! What a request needs from an endpoint, and what happens to it there.

use std::time::Duration;

use crate::scenario::Quota;

/// What an upstream sends back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum UpstreamReply {
    /// 200.
    #[default]
    Ok,
    /// Another status.
    Status {
        status: u16,
        retry_after: Option<Duration>,
    },
    /// The connection is refused or breaks.
    Reset,
}

impl UpstreamReply {
    /// The reply to a client beyond its quota.
    pub(crate) fn over_quota(quota: Option<Quota>) -> Self {
        quota.map_or(Self::Ok, |quota| {
            Self::status(quota.status, quota.retry_after)
        })
    }

    /// Whether it says that the upstream is too busy.
    pub(super) const fn is_overload(&self) -> bool {
        matches!(
            self,
            Self::Status {
                retry_after: Some(_),
                ..
            }
        )
    }

    pub(super) fn status(status: u16, retry_after: Option<u32>) -> Self {
        Self::Status {
            status,
            retry_after: retry_after.map(|seconds| Duration::from_secs(u64::from(seconds))),
        }
    }
}

/// A request with the work that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) attempt: usize,
    pub(crate) service: Duration,
    /// Its answer comes this long after the slot is free.
    pub(crate) delay: Duration,
    pub(crate) body: Option<Flow>,
}

/// The body of one response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) duration: Duration,
    pub(crate) holds_slot: bool,
}

/// What happens to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acceptance {
    Accepted,
    /// It waits to be accepted.
    Wait,
    Refused,
}

/// What happens to a request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reception {
    /// It is answered at once.
    Answer(UpstreamReply),
    /// It takes a slot.
    Start(Job),
    /// It waits for a slot.
    Wait,
    /// Its headers are sent, and nothing more.
    Silence,
    /// It is never answered.
    Swallow,
}
