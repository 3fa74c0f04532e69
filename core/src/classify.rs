//! What a response says about the upstream, decided once and from as few facts as possible.
//!
//! Each fact costs the filter a host call, so it is decided in steps: first the status ([`first_look`]); then the author,
//! from Envoy's response code details, only if the status could blame the upstream ([`answered_by`]); gRPC's status only if
//! there is one; the response flags only if the response never became whole ([`cut_short`]).
//!
//! The rule behind the table: an upstream is blamed for what it did or failed to do. A client error, a local reply
//! of the proxy for its own reasons (no endpoint, its static breaker, another filter) and a caller that went away
//! say nothing about it. "Too busy" is a signal of overload, not of death.
//!
//! The texts are Envoy's, from `source/common/stream_info/utility.cc` and `envoy/stream_info/stream_info.h`.

use core::time::Duration;

use crate::config::OverloadConfig;
use crate::outcome::{Failure, Outcome};

/// gRPC's `DEADLINE_EXCEEDED`: the server knows the caller's deadline, and gave up.
const GRPC_DEADLINE_EXCEEDED: u32 = 4;
/// gRPC codes that blame the server: UNKNOWN, INTERNAL, UNAVAILABLE, DATA_LOSS.
const GRPC_FAILURES: [u32; 4] = [2, 13, 14, 15];

/// Details of an answer that is the upstream's own.
const VIA_UPSTREAM: &str = "via_upstream";
/// Details of a reset before the response headers; the reason is in braces.
const RESET_BEFORE: &str = "upstream_reset_before_response_started";
/// Details of a reset after them.
const RESET_AFTER: &str = "upstream_reset_after_response_started";
/// The reason when the proxy's own static breaker refused: no request went out.
const OVERFLOW: &str = "{overflow";

/// The longest wait from a header that counts: a day.
const MAX_WAIT: Duration = Duration::from_secs(86_400);

/// What the status alone says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstLook {
    /// This holds, unless the response breaks off or its trailers say otherwise.
    Settled(Outcome),
    /// The connection is upgraded (101): a success, and no longer a request.
    Upgraded,
    /// It could be gRPC's: `grpc-status` in the headers decides.
    MaybeGrpc,
    /// It blames its author: the response code details decide who that is.
    WhoAnswered,
}

/// Who made a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The upstream.
    Upstream,
    /// This proxy, in the upstream's place; the outcome is what that says about the upstream.
    Proxy(Outcome),
}

/// Whether the response ends with its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// It does.
    HeadersOnly,
    /// A body or trailers follow.
    More,
}

/// Envoy's response flags that tell why a response never became whole. The bits
/// are those of the attribute `response.flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseFlags(pub u64);

impl ResponseFlags {
    const TIMEOUT: u64 = 1 << 2;
    const LOCAL_RESET: u64 = 1 << 3;
    const REMOTE_RESET: u64 = 1 << 4;
    const CONNECTION_FAILURE: u64 = 1 << 5;
    const CONNECTION_TERMINATION: u64 = 1 << 6;
    const DOWNSTREAM_TERMINATION: u64 = 1 << 14;
    const MAX_STREAM_DURATION: u64 = 1 << 19;
    const UPSTREAM_PROTOCOL_ERROR: u64 = 1 << 23;
    const DOWNSTREAM_REMOTE_RESET: u64 = 1 << 28;

    const fn any(self, bits: u64) -> bool {
        self.0 & bits != 0
    }
}

/// Looks at the status. `is_signal` tells whether the policy makes a client's error with this status a sign of overload.
#[must_use]
pub fn first_look(status: u16, length: Length, is_signal: impl FnOnce() -> bool) -> FirstLook {
    match (status, length) {
        (101, _) => FirstLook::Upgraded,
        (200, Length::HeadersOnly) => FirstLook::MaybeGrpc,
        (500.., _) => FirstLook::WhoAnswered,
        (400..=499, _) if is_signal() => FirstLook::WhoAnswered,
        (400..=499, _) => FirstLook::Settled(Outcome::Ignored),
        (_, _) => FirstLook::Settled(Outcome::Success),
    }
}

/// The author of a response by Envoy's response code details. Unknown details are those of another filter, which answered
/// instead of the upstream.
#[must_use]
pub fn answered_by(details: &str) -> Author {
    if details.is_empty() || details.starts_with(VIA_UPSTREAM) {
        return Author::Upstream;
    }
    Author::Proxy(if details.starts_with(RESET_BEFORE) {
        if details.contains(OVERFLOW) {
            Outcome::Ignored
        } else {
            Outcome::Failure(Failure::Connection)
        }
    } else if details.starts_with(RESET_AFTER) {
        Outcome::Failure(Failure::Truncated)
    } else if is_upstream_timeout(details) {
        Outcome::Failure(Failure::Timeout)
    } else {
        Outcome::Ignored
    })
}

/// The route's timeout, that of one try, and the longest life of a stream; an idle downstream is not among them.
fn is_upstream_timeout(details: &str) -> bool {
    matches!(
        details,
        "response_timeout"
            | "upstream_response_timeout"
            | "upstream_per_try_timeout"
            | "upstream_per_try_idle_timeout"
            | "upstream_max_stream_duration_reached"
    )
}

/// The outcome of an upstream's own answer by its HTTP status. `retry_after` need only be read where the status
/// [may be a signal](OverloadConfig::has_status_with_retry_after).
#[must_use]
pub fn http_answer(
    status: u16,
    retry_after: Option<Duration>,
    signals: &OverloadConfig,
) -> Outcome {
    let is_signal = signals.has_status(status)
        || retry_after.is_some() && signals.has_status_with_retry_after(status);
    match status {
        _ if is_signal => Outcome::Overload { retry_after },
        500.. => Outcome::Failure(Failure::Status),
        400..=499 => Outcome::Ignored,
        _ => Outcome::Success,
    }
}

/// The outcome of an upstream's own answer by its gRPC status. Codes that blame the caller are like a 4xx.
#[must_use]
pub fn grpc_answer(status: u32, pushback: Option<Duration>, signals: &OverloadConfig) -> Outcome {
    match status {
        0 => Outcome::Success,
        _ if signals.has_grpc_status(status) => Outcome::Overload {
            retry_after: pushback,
        },
        GRPC_DEADLINE_EXCEEDED => Outcome::Failure(Failure::Timeout),
        failure if GRPC_FAILURES.contains(&failure) => Outcome::Failure(Failure::Grpc),
        _ => Outcome::Ignored,
    }
}

/// The outcome of an exchange that ended before the response was whole; `None` for flags that cannot be read.
/// A bad outcome by the headers (`verdict`) holds, whatever happened to the body.
#[must_use]
pub const fn cut_short(verdict: Option<Outcome>, flags: Option<ResponseFlags>) -> Outcome {
    if let Some(outcome @ (Outcome::Failure(_) | Outcome::Overload { .. })) = verdict {
        return outcome;
    }
    let answered = verdict.is_some();
    let Some(flags) = flags else {
        return Outcome::Cancelled;
    };
    if flags.any(ResponseFlags::DOWNSTREAM_TERMINATION | ResponseFlags::DOWNSTREAM_REMOTE_RESET) {
        return Outcome::Cancelled;
    }
    if flags.any(ResponseFlags::TIMEOUT | ResponseFlags::MAX_STREAM_DURATION) {
        return Outcome::Failure(Failure::Timeout);
    }
    if flags.any(
        ResponseFlags::LOCAL_RESET
            | ResponseFlags::REMOTE_RESET
            | ResponseFlags::CONNECTION_FAILURE
            | ResponseFlags::CONNECTION_TERMINATION
            | ResponseFlags::UPSTREAM_PROTOCOL_ERROR,
    ) {
        return Outcome::Failure(if answered {
            Failure::Truncated
        } else {
            Failure::Connection
        });
    }
    Outcome::Cancelled
}

/// Reads the value of `:status`.
#[must_use]
pub fn parse_status(value: &[u8]) -> Option<u16> {
    // Nearly all are in this form, and each response has one.
    if let [
        hundreds @ b'1'..=b'9',
        tens @ b'0'..=b'9',
        ones @ b'0'..=b'9',
    ] = *value
    {
        let digit = |byte: u8| u16::from(byte - b'0');
        return Some(100 * digit(hundreds) + 10 * digit(tens) + digit(ones));
    }
    parse_number(value)
        .and_then(|status| u16::try_from(status).ok())
        .filter(|status| (100..=999).contains(status))
}

/// Reads the value of `grpc-status`.
#[must_use]
pub fn parse_grpc_status(value: &[u8]) -> Option<u32> {
    parse_number(value).and_then(|status| u32::try_from(status).ok())
}

/// Reads `retry-after` if it is a number of seconds. A date is of no use without a wall clock, and the control laws do not
/// need it.
#[must_use]
pub fn parse_retry_after(value: &[u8]) -> Option<Duration> {
    parse_number(value).map(|seconds| Duration::from_secs(seconds).min(MAX_WAIT))
}

/// Reads `grpc-retry-pushback-ms` (gRFC A6). A negative number means "never", which is not a wait.
#[must_use]
pub fn parse_pushback(value: &[u8]) -> Option<Duration> {
    parse_number(value).map(|millis| Duration::from_millis(millis).min(MAX_WAIT))
}

fn parse_number(value: &[u8]) -> Option<u64> {
    core::str::from_utf8(value).ok()?.trim_ascii().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const SECOND: Duration = Duration::from_secs(1);

    fn busy(retry_after: Option<Duration>) -> Outcome {
        Outcome::Overload { retry_after }
    }

    /// What a configuration with this `overload` says.
    fn signals(overload: &str) -> OverloadConfig {
        let text = format!(
            r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},"overload":{overload}}}"#
        );
        let config = Config::from_json(text.as_bytes()).unwrap();
        *config.default_policy().overload()
    }

    fn failure(kind: Failure) -> Outcome {
        Outcome::Failure(kind)
    }

    #[test]
    fn the_status_alone_settles_most_answers() {
        let signals = OverloadConfig::default();
        let settled = [
            (200, Outcome::Success),
            (204, Outcome::Success),
            (302, Outcome::Success),
            (400, Outcome::Ignored),
            (404, Outcome::Ignored),
            (499, Outcome::Ignored),
        ];
        for (status, outcome) in settled {
            assert_eq!(
                first_look(status, Length::More, || signals
                    .has_status_with_retry_after(status)),
                FirstLook::Settled(outcome),
                "{status}"
            );
        }
        for status in [429, 500, 502, 503, 504, 599] {
            for length in [Length::More, Length::HeadersOnly] {
                assert_eq!(
                    first_look(status, length, || signals
                        .has_status_with_retry_after(status)),
                    FirstLook::WhoAnswered
                );
            }
        }
        assert_eq!(
            first_look(101, Length::More, || signals
                .has_status_with_retry_after(101)),
            FirstLook::Upgraded
        );
        assert_eq!(
            first_look(200, Length::HeadersOnly, || signals
                .has_status_with_retry_after(200)),
            FirstLook::MaybeGrpc
        );
        assert_eq!(
            first_look(204, Length::HeadersOnly, || signals
                .has_status_with_retry_after(204)),
            FirstLook::Settled(Outcome::Success)
        );
    }

    #[test]
    fn local_replies_are_told_from_the_upstreams_answers() {
        let connection = Author::Proxy(failure(Failure::Connection));
        let ignored = Author::Proxy(Outcome::Ignored);
        let table = [
            ("via_upstream", Author::Upstream),
            ("", Author::Upstream),
            ("response_timeout", Author::Proxy(failure(Failure::Timeout))),
            (
                "upstream_per_try_timeout",
                Author::Proxy(failure(Failure::Timeout)),
            ),
            (
                "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_111}",
                connection,
            ),
            (
                "upstream_reset_before_response_started{connection_termination}",
                connection,
            ),
            (
                "upstream_reset_after_response_started{protocol_error}",
                Author::Proxy(failure(Failure::Truncated)),
            ),
            ("upstream_reset_before_response_started{overflow}", ignored),
            ("no_healthy_upstream", ignored),
            ("direct_response", ignored),
            ("request_rate_limited", ignored),
            ("ext_authz_denied", ignored),
            ("stream_idle_timeout", ignored),
            ("tidegate_shed_limit", ignored),
        ];
        for (details, author) in table {
            assert_eq!(answered_by(details), author, "{details}");
        }
    }

    #[test]
    fn an_overload_signal_is_told_from_a_failure() {
        let signals = OverloadConfig::default();
        let http = |status, retry_after| http_answer(status, retry_after, &signals);
        assert_eq!(http(429, None), busy(None));
        assert_eq!(http(503, Some(SECOND)), busy(Some(SECOND)));
        assert_eq!(http(503, None), failure(Failure::Status));
        assert_eq!(http(500, Some(SECOND)), failure(Failure::Status));
        assert_eq!(grpc_answer(8, Some(SECOND), &signals), busy(Some(SECOND)));
    }

    #[test]
    fn the_configuration_chooses_the_overload_signals() {
        let signals = signals(
            r#"{"statuses":[529],"statusesWithRetryAfter":[403,503,529],"grpcStatuses":[14]}"#,
        );
        let looked_at = |status| {
            first_look(status, Length::More, || {
                signals.has_status_with_retry_after(status)
            })
        };
        assert_eq!(looked_at(403), FirstLook::WhoAnswered);
        assert_eq!(looked_at(429), FirstLook::Settled(Outcome::Ignored));
        let table = [
            (529, None, busy(None)),
            (529, Some(SECOND), busy(Some(SECOND))),
            (403, None, Outcome::Ignored),
            (403, Some(SECOND), busy(Some(SECOND))),
            (503, None, failure(Failure::Status)),
            (503, Some(SECOND), busy(Some(SECOND))),
            (429, None, Outcome::Ignored),
        ];
        for (status, retry_after, outcome) in table {
            assert_eq!(
                http_answer(status, retry_after, &signals),
                outcome,
                "{status}"
            );
        }
        assert_eq!(grpc_answer(14, None, &signals), busy(None));
        assert_eq!(grpc_answer(8, None, &signals), Outcome::Ignored);
    }

    #[test]
    fn with_empty_sets_nothing_is_an_overload_signal() {
        let signals = signals(r#"{"statuses":[],"statusesWithRetryAfter":[],"grpcStatuses":[]}"#);
        for status in 400..=599 {
            let outcome = match status {
                400..=499 => Outcome::Ignored,
                _ => failure(Failure::Status),
            };
            assert_eq!(
                http_answer(status, Some(SECOND), &signals),
                outcome,
                "{status}"
            );
        }
        assert_eq!(grpc_answer(8, Some(SECOND), &signals), Outcome::Ignored);
    }

    #[test]
    fn grpc_codes_blame_the_server_or_the_caller() {
        let grpc = |code| grpc_answer(code, None, &OverloadConfig::default());
        assert_eq!(grpc(0), Outcome::Success);
        for code in [2, 13, 14, 15] {
            assert_eq!(grpc(code), failure(Failure::Grpc), "{code}");
        }
        assert_eq!(grpc(4), failure(Failure::Timeout));
        for code in [1, 3, 5, 6, 7, 9, 10, 11, 12, 16, 99] {
            assert_eq!(grpc(code), Outcome::Ignored, "{code}");
        }
    }

    #[test]
    fn a_truncated_answer_is_judged_by_its_cause() {
        let flags = |bits| Some(ResponseFlags(bits));
        let good = Some(Outcome::Success);
        assert_eq!(
            cut_short(good, flags(8_388_608)),
            failure(Failure::Truncated)
        );
        assert_eq!(cut_short(good, flags(16_384)), Outcome::Cancelled);
        assert_eq!(cut_short(None, flags(16_384)), Outcome::Cancelled);
        assert_eq!(cut_short(None, flags(1 << 28)), Outcome::Cancelled);
        assert_eq!(cut_short(None, flags(64)), failure(Failure::Connection));
        assert_eq!(cut_short(None, flags(4)), failure(Failure::Timeout));
        assert_eq!(cut_short(None, flags(0)), Outcome::Cancelled);
        assert_eq!(cut_short(None, None), Outcome::Cancelled);
        let bad = Some(failure(Failure::Status));
        assert_eq!(cut_short(bad, flags(16_384)), failure(Failure::Status));
    }

    #[test]
    fn numbers_in_headers_are_read_or_refused() {
        assert_eq!(parse_status(b"503"), Some(503));
        for bad in [b"".as_slice(), b"99", b"1000", b"2x0", b"\xff"] {
            assert_eq!(parse_status(bad), None);
        }
        assert_eq!(parse_retry_after(b" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(parse_retry_after(b"Wed, 21 Oct 2026 07:28:00 GMT"), None);
        assert_eq!(parse_retry_after(b"99999999999"), Some(MAX_WAIT));
        assert_eq!(parse_pushback(b"250"), Some(Duration::from_millis(250)));
        assert_eq!(parse_pushback(b"-1"), None);
        assert_eq!(parse_grpc_status(b"14"), Some(14));
    }
}
