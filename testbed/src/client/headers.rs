//! Headers by which callers and proxies tell each other things.

/// Header in which Envoy's own replies say why.
pub const DETAILS_HEADER: &str = "x-response-code-details";

/// Header that carries the criticality of a request.
pub const CRITICALITY_HEADER: &str = "x-criticality";

/// Header that carries the number of an attempt, from 1.
pub const ATTEMPT_HEADER: &str = "x-envoy-attempt-count";

/// Header in which a caller asks the proxy to wait no longer, in milliseconds.
pub const TIMEOUT_HEADER: &str = "x-envoy-upstream-rq-timeout-ms";

/// Header in which a client with a quota says which one it is, by its index in the scenario.
pub const CLIENT_HEADER: &str = "x-client";

/// Header that carries the number of the caller's request from which calls of services come, where services call services.
pub const ORIGIN_HEADER: &str = "x-origin-request";

/// Beginnings of the response code details of replies that a proxy made to shed load.
pub const SHED_DETAILS: [&str; 5] = [
    "tidegate_shed_",
    "reached_concurrency_limit",
    "denied_by_admission_control",
    "upstream_reset_before_response_started{overflow",
    "no_healthy_upstream",
];
