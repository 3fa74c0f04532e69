//! What can happen in a world.

/// An event. Requests are identified by the number of their attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorldEvent {
    /// A caller sends a request for the first time.
    Due { call: usize },
    /// A caller sends it again.
    Again { call: usize },
    /// A request reaches the proxy.
    AtProxy { attempt: usize },
    /// A request reaches the upstream.
    AtUpstream { attempt: usize },
    /// The last byte of a request's body reaches the proxy.
    UploadedAtProxy { attempt: usize },
    /// It reaches the upstream.
    UploadedAtUpstream { attempt: usize },
    /// A slot has done its work for a request.
    Worked { attempt: usize },
    /// The upstream has sent the last byte of a body.
    Sent { attempt: usize },
    /// The headers of a response whose end comes later reach the proxy.
    HeadersAtProxy { attempt: usize },
    /// The first byte of a response whose headers came before reaches the proxy.
    FirstByteAtProxy { attempt: usize },
    /// The upstream's answer has reached the proxy, to its last byte.
    AnswerAtProxy { attempt: usize },
    /// The moment of a response to which latency is measured reaches the caller, before its end.
    MomentAtCaller { attempt: usize },
    /// A caller closes a response before its end.
    ReadEnough { attempt: usize },
    /// An answer has reached the caller, to its last byte.
    AnswerAtCaller { attempt: usize },
    /// The timeout that a caller asked the proxy for has expired.
    TimedOut { attempt: usize },
    /// A caller gives up.
    GiveUp { attempt: usize },
    /// The caller's cancellation reaches the proxy.
    CancelAtProxy { attempt: usize },
    /// The cancellation reaches the upstream.
    CancelAtUpstream { attempt: usize },
    /// An endpoint enters the next stage of its life.
    Stage { upstream: u32, endpoint: u32 },
    /// A contender's tick.
    Tick { proxy: usize },
    /// An incident of the scenario.
    Incident { index: usize },
    /// A sample of everything.
    Sample,
}

impl WorldEvent {
    /// Kind and subject as numbers, for the digest; the same on machines of 32 bits.
    pub(super) fn code(self) -> (u64, u64) {
        let wide = |index| u64::try_from(index).unwrap_or(u64::MAX);
        let (kind, subject) = match self {
            Self::Due { call } => (1, call),
            Self::Again { call } => (2, call),
            Self::AtProxy { attempt } => (3, attempt),
            Self::AtUpstream { attempt } => (4, attempt),
            Self::Worked { attempt } => (5, attempt),
            Self::AnswerAtProxy { attempt } => (6, attempt),
            Self::AnswerAtCaller { attempt } => (7, attempt),
            Self::GiveUp { attempt } => (8, attempt),
            Self::CancelAtProxy { attempt } => (9, attempt),
            Self::CancelAtUpstream { attempt } => (10, attempt),
            Self::Stage { upstream, endpoint } => {
                return (11, u64::from(upstream) << 32 ^ u64::from(endpoint));
            }
            Self::Tick { proxy } => (12, proxy),
            Self::Incident { index } => (13, index),
            Self::Sample => (14, 0),
            Self::UploadedAtProxy { attempt } => (16, attempt),
            Self::UploadedAtUpstream { attempt } => (17, attempt),
            Self::Sent { attempt } => (18, attempt),
            Self::HeadersAtProxy { attempt } => (19, attempt),
            Self::FirstByteAtProxy { attempt } => (20, attempt),
            Self::MomentAtCaller { attempt } => (21, attempt),
            Self::ReadEnough { attempt } => (22, attempt),
            Self::TimedOut { attempt } => (23, attempt),
        };
        (kind, wide(subject))
    }

    /// The attempt that it is about; none where it is about no attempt.
    pub(super) const fn attempt(self) -> Option<usize> {
        match self {
            Self::AtProxy { attempt }
            | Self::AtUpstream { attempt }
            | Self::UploadedAtProxy { attempt }
            | Self::UploadedAtUpstream { attempt }
            | Self::Worked { attempt }
            | Self::Sent { attempt }
            | Self::HeadersAtProxy { attempt }
            | Self::FirstByteAtProxy { attempt }
            | Self::AnswerAtProxy { attempt }
            | Self::MomentAtCaller { attempt }
            | Self::ReadEnough { attempt }
            | Self::AnswerAtCaller { attempt }
            | Self::TimedOut { attempt }
            | Self::GiveUp { attempt }
            | Self::CancelAtProxy { attempt }
            | Self::CancelAtUpstream { attempt } => Some(attempt),
            Self::Due { .. }
            | Self::Again { .. }
            | Self::Stage { .. }
            | Self::Tick { .. }
            | Self::Incident { .. }
            | Self::Sample => None,
        }
    }
}
