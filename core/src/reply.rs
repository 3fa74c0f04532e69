//! What a shed request is answered.
//!
//! The reply tells three readers three things. A caller: when to come back (`retry-after`, and
//! `grpc-retry-pushback-ms` for gRPC, both with the jitter that the engine put into the wait). The caller's proxy:
//! whether another endpoint may do better; with `x-envoy-ratelimited` it does not retry, which is right when the
//! whole service is overloaded. An operator: why, in the response code details.

use core::time::Duration;

use crate::config::{Reply, ShedConfig};
use crate::outcome::GRPC_RESOURCE_EXHAUSTED;
use crate::shed::{Shed, ShedReason};

/// What is known of the request's protocol without paying for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// It may be gRPC.
    Unknown,
    /// It is not gRPC.
    PlainHttp,
}

/// A local reply, ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalReply<'a> {
    /// HTTP status.
    pub status: u16,
    /// gRPC status; used when the request is gRPC.
    pub grpc_status: u32,
    /// Envoy's response code details.
    pub details: &'static str,
    /// The body; empty for none.
    pub body: &'a str,
    /// Value of `retry-after`: whole seconds, rounded up.
    pub retry_after_secs: u64,
    /// Value of `grpc-retry-pushback-ms`; none for a request that is known not to be gRPC.
    pub pushback_ms: Option<u64>,
    /// Whether the reply carries `x-envoy-ratelimited`.
    pub is_final: bool,
    /// The header with the reason and its value, if the policy wants it.
    pub reason: Option<(&'a str, &'static str)>,
}

impl<'a> LocalReply<'a> {
    /// The reply to a shed request, as the policy wants it.
    #[must_use]
    pub fn new(config: &'a ShedConfig, shed: &Shed, protocol: Protocol) -> Self {
        Self {
            status: config.status(),
            grpc_status: GRPC_RESOURCE_EXHAUSTED,
            details: details(shed.reason),
            body: config.body(),
            retry_after_secs: whole_seconds(shed.retry_after),
            pushback_ms: match protocol {
                Protocol::Unknown => {
                    Some(u64::try_from(shed.retry_after.as_millis()).unwrap_or(u64::MAX))
                }
                Protocol::PlainHttp => None,
            },
            is_final: config.reply() == Reply::Stop,
            reason: config
                .reason_header()
                .map(|name| (name, shed.reason.as_str())),
        }
    }
}

/// Envoy's response code details of a shed request: `tidegate_shed_` and the reason.
#[must_use]
pub const fn details(reason: ShedReason) -> &'static str {
    match reason {
        ShedReason::Limit => "tidegate_shed_limit",
        ShedReason::Criticality => "tidegate_shed_criticality",
        ShedReason::Retry => "tidegate_shed_retry",
        ShedReason::Deadline => "tidegate_shed_deadline",
        ShedReason::MaxOpen => "tidegate_shed_max_open",
        ShedReason::BreakerOpen => "tidegate_shed_breaker_open",
        ShedReason::BreakerHalfOpen => "tidegate_shed_breaker_half_open",
    }
}

/// Rounded up, so that a caller does not return too early. At least 1, because 0 means "at once".
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn config(shed: &str) -> Config {
        let text = format!(
            r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},"shed":{shed}}}"#
        );
        Config::from_json(text.as_bytes()).unwrap()
    }

    fn shed(millis: u64) -> Shed {
        Shed {
            reason: ShedReason::BreakerOpen,
            retry_after: Duration::from_millis(millis),
        }
    }

    #[test]
    fn the_wait_is_rounded_up_and_never_zero() {
        let config = config("{}");
        let secs = |millis| {
            LocalReply::new(
                config.default_policy().shed(),
                &shed(millis),
                Protocol::Unknown,
            )
            .retry_after_secs
        };
        assert_eq!([secs(0), secs(1), secs(1000), secs(1001)], [1, 1, 1, 2]);
    }

    #[test]
    fn the_policy_chooses_status_body_and_whether_to_retry() {
        let config = config(r#"{"reply":"retryElsewhere","status":429,"body":"busy"}"#);
        let reply = LocalReply::new(
            config.default_policy().shed(),
            &shed(250),
            Protocol::Unknown,
        );
        assert_eq!((reply.status, reply.body), (429, "busy"));
        assert!(!reply.is_final);
        assert_eq!(reply.pushback_ms, Some(250));
        let plain = LocalReply::new(
            config.default_policy().shed(),
            &shed(250),
            Protocol::PlainHttp,
        );
        assert_eq!(plain.pushback_ms, None);
    }

    #[test]
    fn a_header_names_the_reason_only_if_the_policy_says_so() {
        let reason = |shed_config| {
            let config = config(shed_config);
            let shed_config = config.default_policy().shed();
            let reply = LocalReply::new(shed_config, &shed(250), Protocol::Unknown);
            reply.reason.map(|(name, value)| (name.to_owned(), value))
        };
        assert_eq!(reason("{}"), None);
        assert_eq!(
            reason(r#"{"reasonHeader":"x-tidegate-reason"}"#),
            Some(("x-tidegate-reason".to_owned(), "breaker_open"))
        );
    }

    #[test]
    fn details_carry_the_reasons_name() {
        for reason in ShedReason::ALL {
            assert_eq!(details(reason), format!("tidegate_shed_{reason}"));
        }
    }
}
