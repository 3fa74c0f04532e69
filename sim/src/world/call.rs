//! A caller's request and its attempts.

use std::time::Duration;

use tidegate_core::config::OverloadConfig;
use tidegate_core::{Failure, Instant, Outcome, classify};

use super::reception::{Flow, UpstreamReply};
use crate::arrivals::Arrival;
use crate::record::Answer;

/// A request as its caller sees it, over all attempts.
#[derive(Debug, Clone)]
pub(super) struct SimCall {
    pub(super) arrival: Arrival,
    pub(super) proxy: usize,
    /// Its caller in a closed loop, by its index; none: nothing follows it.
    pub(super) member: Option<usize>,
    /// The caller's index, for callers with an identity.
    pub(super) caller: usize,
    pub(super) cohort: u64,
    pub(super) attempts: u32,
    pub(super) sheds: u32,
    /// Time of its uploads, which is the caller's own.
    pub(super) uploading: Duration,
    /// Latency to the moment that the objective names, where that has come and the end has not.
    pub(super) moment: Option<Duration>,
    pub(super) end: Option<CallEnd>,
    /// The attempt of a service's request that makes this call; none for a caller's own.
    pub(super) parent: Option<usize>,
    /// Whether that request succeeds without the answer.
    pub(super) is_optional: bool,
    /// When that request's own caller gives up, if the service passes that on.
    pub(super) until: Option<Instant>,
    /// Its last attempt.
    pub(super) latest: Option<usize>,
    /// Its attempts that are not over.
    pub(super) under_way: u32,
}

impl SimCall {
    /// A call that is to be made.
    pub(super) const fn new(arrival: Arrival) -> Self {
        Self {
            arrival,
            proxy: 0,
            member: None,
            caller: 0,
            cohort: 0,
            attempts: 0,
            sheds: 0,
            uploading: Duration::ZERO,
            moment: None,
            end: None,
            parent: None,
            is_optional: false,
            until: None,
            latest: None,
            under_way: 0,
        }
    }
}

/// How it ended.
#[derive(Debug, Clone)]
pub(super) struct CallEnd {
    pub(super) answer: Answer,
    pub(super) latency: Duration,
}

/// One attempt.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) call: usize,
    /// From 1.
    pub(super) number: u32,
    pub(super) worker: usize,
    pub(super) upstream: usize,
    pub(super) endpoint: usize,
    pub(super) admitted_at: Instant,
    pub(super) in_flight_before: u32,
    /// When the upstream got it, and how long it waited there for a slot.
    pub(super) arrived_at: Instant,
    pub(super) waited: Option<Duration>,
    pub(super) awaits: Awaits,
    pub(super) at_proxy: HeldByProxy,
    pub(super) place: AttemptPlace,
    /// The last byte of the request is at the upstream.
    pub(super) is_complete: bool,
    /// It takes one of the upstream's connections.
    pub(super) is_accepted: bool,
    /// The upstream knows that the caller went away.
    pub(super) is_gone: bool,
    /// The response's body.
    pub(super) body: Option<Flow>,
    /// The headers are sent before the work.
    pub(super) headers_first: bool,
    /// Later messages of the caller reach the proxy and the upstream no earlier than this.
    pub(super) ask_due: Instant,
    pub(super) upstream_due: Instant,
    /// Later parts of the response reach the proxy and the caller no earlier than this.
    pub(super) proxy_due: Instant,
    pub(super) caller_due: Instant,
    /// Delay of the answer on its way back from the upstream.
    pub(super) delay: Duration,
    pub(super) verdict: ProxyRefusal,
    pub(super) reply: UpstreamReply,
    /// When its caller gives up.
    pub(super) patient_until: Instant,
    /// Work that the upstream has begun for it.
    pub(super) work: Duration,
    /// The calls that it makes of other services.
    pub(super) calling: Calling,
}

/// The calls that a request makes of other services.
#[derive(Debug, Clone, Default)]
pub(super) struct Calling {
    /// Calls below this step have been made.
    pub(super) next_step: u32,
    /// The calls of the step under way that have not ended.
    pub(super) open: Vec<usize>,
}

/// What the caller waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Awaits {
    /// The moment that the objective names.
    #[default]
    Moment,
    /// The end of a response that it reads.
    End,
    Nothing,
}

/// Whether the proxy holds it, and what it knows of the response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum HeldByProxy {
    #[default]
    No,
    /// The headers have not come.
    Waiting,
    /// The headers have come.
    Answered,
}

/// Where it is in the upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AttemptPlace {
    #[default]
    Nowhere,
    /// On its way there.
    Coming,
    /// Not accepted yet.
    Backlog,
    /// Accepted, and not complete.
    Uploading,
    Line,
    Slot,
    /// In a slot, where it waits for other services.
    Calling,
    /// Its work is done, and its response is on the way.
    Sending {
        holds_slot: bool,
    },
}

/// Whether and how the proxy refused it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ProxyRefusal {
    #[default]
    None,
    Shed {
        reason: &'static str,
        is_final: bool,
    },
    /// The timeout that the caller asked for has expired.
    TimedOut,
}

/// Status of the reply that a proxy makes when the connection to the upstream breaks.
const BAD_CONNECTION: u16 = 503;
/// Status of its reply when that timeout has expired.
const TIMED_OUT: u16 = 504;

impl Attempt {
    pub(super) fn new(call: usize, number: u32, worker: usize, upstream: usize) -> Self {
        Self {
            call,
            number,
            worker,
            upstream,
            endpoint: 0,
            admitted_at: Instant::ZERO,
            in_flight_before: 0,
            arrived_at: Instant::ZERO,
            waited: None,
            awaits: Awaits::default(),
            at_proxy: HeldByProxy::default(),
            place: AttemptPlace::default(),
            is_complete: true,
            is_accepted: false,
            is_gone: false,
            body: None,
            headers_first: false,
            ask_due: Instant::ZERO,
            upstream_due: Instant::ZERO,
            proxy_due: Instant::ZERO,
            caller_due: Instant::ZERO,
            delay: Duration::ZERO,
            verdict: ProxyRefusal::None,
            reply: UpstreamReply::Ok,
            patient_until: Instant::ZERO,
            work: Duration::ZERO,
            calling: Calling::default(),
        }
    }

    /// How long it waited, or has waited until `now`; none if it neither waited nor got a slot.
    pub(super) fn waited_until(&self, now: Instant) -> Option<Duration> {
        let still =
            (self.place == AttemptPlace::Line).then(|| now.saturating_since(self.arrived_at));
        self.waited.or(still)
    }

    /// What the caller gets, and whether it would retry after that.
    pub(super) fn answer(&self) -> (Answer, bool) {
        match (self.verdict, self.reply) {
            (ProxyRefusal::Shed { reason, is_final }, _) => {
                (Answer::Shed(reason.to_owned()), !is_final)
            }
            (ProxyRefusal::TimedOut, _) => (Answer::Failed(TIMED_OUT), true),
            (ProxyRefusal::None, UpstreamReply::Ok) => (Answer::Ok, false),
            (ProxyRefusal::None, UpstreamReply::Status { status, .. }) => {
                (Answer::Failed(status), true)
            }
            (ProxyRefusal::None, UpstreamReply::Reset) => (Answer::Failed(BAD_CONNECTION), true),
        }
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.at_proxy != HeldByProxy::No
    }

    /// Whether caller, proxy and upstream are done with it. Messages about it that are still on their way change nothing.
    pub(super) fn is_over(&self) -> bool {
        self.awaits == Awaits::Nothing
            && !self.is_in_flight()
            && self.place == AttemptPlace::Nowhere
            && !self.is_accepted
    }

    /// What the proxy learns from the upstream's reply, by the rules of the filter.
    pub(super) fn outcome(&self) -> Outcome {
        match self.reply {
            UpstreamReply::Reset if self.at_proxy == HeldByProxy::Answered => {
                Outcome::Failure(Failure::Truncated)
            }
            UpstreamReply::Ok => Outcome::Success,
            UpstreamReply::Status {
                status,
                retry_after,
            } => classify::http_answer(status, retry_after, &OverloadConfig::default()),
            UpstreamReply::Reset => Outcome::Failure(Failure::Connection),
        }
    }
}

impl CallEnd {
    /// For the digest.
    pub(super) fn code(&self) -> u64 {
        match &self.answer {
            Answer::Ok => 1,
            Answer::Shed(_) => 2,
            Answer::Failed(status) => 1_000 + u64::from(*status),
            Answer::GaveUp => 3,
            Answer::Broken => 4,
        }
    }
}
