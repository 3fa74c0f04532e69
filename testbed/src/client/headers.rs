//! Headers by which callers and proxies communicate.

/// Header in which Envoy's own replies state their cause.
pub const DETAILS_HEADER: &str = "x-response-code-details";

/// Header that carries the criticality of a request.
pub const CRITICALITY_HEADER: &str = "x-criticality";

/// Header that carries the number of an attempt, from 1.
pub const ATTEMPT_HEADER: &str = "x-envoy-attempt-count";

/// Header with the longest time, in milliseconds, that the caller wants the proxy to wait.
pub const TIMEOUT_HEADER: &str = "x-envoy-upstream-rq-timeout-ms";

/// Header in which a client with a quota gives its index in the scenario.
pub const CLIENT_HEADER: &str = "x-client";

/// Header with the number of the caller's request that caused the calls between services.
pub const ORIGIN_HEADER: &str = "x-origin-request";

/// Prefixes of the response code details of replies with which a proxy shed load.
pub const SHED_DETAILS: [&str; 5] = [
    "tidegate_shed_",
    "reached_concurrency_limit",
    "denied_by_admission_control",
    "upstream_reset_before_response_started{overflow",
    "no_healthy_upstream",
];
