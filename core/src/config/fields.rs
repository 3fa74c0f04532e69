//! The rows of the reference: every field of the document with its meaning.
//!
//! Ranges and defaults come from the constants of [`super::schema`], which the
//! reader uses; a test reads every default back through the reader.

use super::choices::{KeyBy, Mode, Reply, Stance, Until};
use super::kinds::{Field, Values, names};
use super::schema;
use crate::criticality::Criticality;

/// Every field of the document, in the order of the reference.
pub static FIELDS: &[Field] = &[
    Field {
        path: "enabled",
        values: Values::Flag(schema::ENABLED),
        is_per_upstream: false,
        doc: "Kill switch: `false` passes every request untouched and counts nothing.",
    },
    Field {
        path: "slo.latency.quantile",
        values: Values::Fraction(schema::LATENCY_QUANTILE),
        is_per_upstream: true,
        doc: "Share of requests that must be answered within `slo.latency.target`.",
    },
    Field {
        path: "slo.latency.target",
        values: Values::Span(schema::LATENCY_TARGET),
        is_per_upstream: true,
        doc: "Latency that the quantile must meet, from the end of the request to the moment that `slo.latency.until` names.",
    },
    Field {
        path: "slo.latency.until",
        values: Values::Choice {
            names: names::<Until>,
            default: Some(schema::LATENCY_UNTIL.1.name()),
        },
        is_per_upstream: true,
        doc: "Moment to which latency is measured and until which a request counts against the limit: the response's `headers`, the `firstByte` of its body, or its `end`.",
    },
    Field {
        path: "slo.successRate",
        values: Values::Fraction(schema::SUCCESS_RATE),
        is_per_upstream: true,
        doc: "Share of requests that must not fail.",
    },
    Field {
        path: "mode",
        values: Values::Choice {
            names: names::<Mode>,
            default: Some(schema::MODE.1.name()),
        },
        is_per_upstream: true,
        doc: "`enforce` sheds; `observe` admits everything and counts what would have been shed.",
    },
    Field {
        path: "enforcement",
        values: Values::Fraction(schema::ENFORCEMENT),
        is_per_upstream: true,
        doc: "Share of the decisions to shed that are carried out in mode `enforce`; the others are only counted. For a careful start.",
    },
    Field {
        path: "stance",
        values: Values::Choice {
            names: names::<Stance>,
            default: Some(schema::STANCE.1.name()),
        },
        is_per_upstream: true,
        doc: "`failFast`: stability first: while a queue stands, the smallest limit that carries the throughput. `throughput`: up to the edge of the latency objective, also then.",
    },
    Field {
        path: "keyBy",
        values: Values::Choice {
            names: names::<KeyBy>,
            default: Some(schema::KEY_BY.1.name()),
        },
        is_per_upstream: true,
        doc: "Unit that has its own state: the `cluster`; each `authority` that requests name, for a cluster with several destinations; or nothing (`none`): requests pass. `auto` is `none` for Istio's clusters with several destinations, and `cluster` for all others.",
    },
    Field {
        path: "limit.min",
        values: Values::Count(schema::LIMIT_MIN),
        is_per_upstream: true,
        doc: "Least concurrency limit of a proxy, in requests in flight, however many endpoints there are. With 1, requests may also be admitted one by one, at a rate: one of many proxies may have a share below one request in flight.",
    },
    Field {
        path: "limit.max",
        values: Values::Count(schema::LIMIT_MAX),
        is_per_upstream: true,
        doc: "Greatest concurrency limit, in requests in flight per endpoint; at least `limit.min`.",
    },
    Field {
        path: "limit.initial",
        values: Values::Count(schema::LIMIT_INITIAL),
        is_per_upstream: true,
        doc: "Limit before anything is learned, per endpoint. Within `limit.min` and `limit.max`; if not set, it is clamped to these bounds.",
    },
    Field {
        path: "limit.maxOpen",
        values: Values::Bound(schema::LIMIT_MAX_OPEN),
        is_per_upstream: true,
        doc: "Most requests per endpoint that have not ended, streams and downloads among them; at least `limit.min`.",
    },
    Field {
        path: "breaker.enabled",
        values: Values::Flag(schema::BREAKER_ENABLED),
        is_per_upstream: true,
        doc: "`false` leaves the concurrency limit as the only guard.",
    },
    Field {
        path: "breaker.tripRatio",
        values: Values::Fraction(schema::TRIP_RATIO),
        is_per_upstream: true,
        doc: "Share of failures at which the breaker opens.",
    },
    Field {
        path: "breaker.minOpen",
        values: Values::Span(schema::MIN_OPEN),
        is_per_upstream: true,
        doc: "Shortest open interval, for an upstream with much traffic. An upstream with little traffic is first probed once a second.",
    },
    Field {
        path: "breaker.maxOpen",
        values: Values::Span(schema::MAX_OPEN),
        is_per_upstream: true,
        doc: "Longest open interval; at least `breaker.minOpen`.",
    },
    Field {
        path: "overload.statuses[]",
        values: Values::Numbers(schema::OVERLOAD_STATUSES),
        is_per_upstream: true,
        doc: "HTTP statuses that mean that the upstream is too busy. An empty list: none.",
    },
    Field {
        path: "overload.statusesWithRetryAfter[]",
        values: Values::Numbers(schema::OVERLOAD_WITH_RETRY_AFTER),
        is_per_upstream: true,
        doc: "HTTP statuses that mean so only with `retry-after`, in seconds.",
    },
    Field {
        path: "overload.grpcStatuses[]",
        values: Values::Numbers(schema::OVERLOAD_GRPC),
        is_per_upstream: true,
        doc: "gRPC statuses, by number, that mean so; 8 is RESOURCE_EXHAUSTED.",
    },
    Field {
        path: "shed.reply",
        values: Values::Choice {
            names: names::<Reply>,
            default: Some(schema::SHED_REPLY.1.name()),
        },
        is_per_upstream: true,
        doc: "`stop` tells callers not to retry (`x-envoy-ratelimited`): the whole service is overloaded. `retryElsewhere` lets them try another endpoint.",
    },
    Field {
        path: "shed.status",
        values: Values::Count(schema::SHED_STATUS),
        is_per_upstream: true,
        doc: "HTTP status of the reply to a shed request; gRPC callers get RESOURCE_EXHAUSTED.",
    },
    Field {
        path: "shed.body",
        values: Values::Text {
            expected: schema::BODY_EXPECTED,
            default: Some(""),
        },
        is_per_upstream: true,
        doc: "Body of that reply.",
    },
    Field {
        path: "shed.maxShare",
        values: Values::Fraction(schema::MAX_SHARE),
        is_per_upstream: true,
        doc: "Greatest share of an upstream's requests that is ever shed, in each worker. After a time in which none was, up to ten more can be shed.",
    },
    Field {
        path: "shed.reasonHeader",
        values: Values::Text {
            expected: schema::REASON_HEADER_EXPECTED,
            default: None,
        },
        is_per_upstream: true,
        doc: "Response header in which that reply names the reason, such as `x-tidegate-reason: limit`. Callers see it, so they learn about the state of the upstream. Not set: no header; the access log has the reason in any case.",
    },
    Field {
        path: "criticality.header",
        values: Values::Text {
            expected: schema::HEADER_EXPECTED,
            default: None,
        },
        is_per_upstream: false,
        doc: "Request header with the class of the request. It wins over the rules, so take it from trusted callers only; any other value counts as absent. Not set: no header is read.",
    },
    Field {
        path: "criticality.default",
        values: Values::Choice {
            names: names::<Criticality>,
            default: Some(schema::DEFAULT_CRITICALITY.1.name()),
        },
        is_per_upstream: false,
        doc: "Class of requests that match no header and no rule.",
    },
    Field {
        path: "criticality.cohortHeader",
        values: Values::Text {
            expected: schema::HEADER_EXPECTED,
            default: None,
        },
        is_per_upstream: false,
        doc: "Request header that identifies a caller within its class (a user, a tenant): under overload the same callers are served throughout. Not set: no cohorts.",
    },
    Field {
        path: "criticality.cohortKey",
        values: Values::Text {
            expected: schema::KEY_EXPECTED,
            default: None,
        },
        is_per_upstream: false,
        doc: "Any secret text. Proxies with the same key serve the same callers; the choice changes every ten minutes. Not set: each proxy chooses its own callers.",
    },
    Field {
        path: "criticality.rules[].path",
        values: Values::Text {
            expected: schema::PATH_EXPECTED,
            default: None,
        },
        is_per_upstream: false,
        doc: "Condition: the path, without its query.",
    },
    Field {
        path: "criticality.rules[].method",
        values: Values::Text {
            expected: schema::METHOD_EXPECTED,
            default: None,
        },
        is_per_upstream: false,
        doc: "Condition: the method.",
    },
    Field {
        path: "criticality.rules[].clientIdentity",
        values: Values::Text {
            expected: schema::NAME_EXPECTED,
            default: None,
        },
        is_per_upstream: false,
        doc: "Condition: the URI in the client's certificate, such as `spiffe://cluster.local/ns/shop/sa/*`.",
    },
    Field {
        path: "criticality.rules[].criticality",
        values: Values::Choice {
            names: names::<Criticality>,
            default: None,
        },
        is_per_upstream: false,
        doc: "Class of the requests for which every condition of this rule holds. Required in a rule.",
    },
    Field {
        path: "deadline.headers[]",
        values: Values::Texts {
            expected: schema::HEADER_EXPECTED,
            default: &[],
        },
        is_per_upstream: false,
        doc: "Request headers in which callers say how long they wait, such as `x-envoy-expected-rq-timeout-ms` or `grpc-timeout`; the first that names a time counts. `grpc-timeout` has the format of gRPC, the others whole milliseconds or a duration such as `250ms`; 0 means no deadline. Near the limit, a request is shed if nearly all answers take longer than its caller waits. Take these headers from trusted callers only. Empty: deadlines are not read.",
    },
    Field {
        path: "ignore.paths[]",
        values: Values::Texts {
            expected: schema::PATH_EXPECTED,
            default: &[],
        },
        is_per_upstream: false,
        doc: "Paths of health checks: these requests pass without a decision, and their outcomes do not count.",
    },
    Field {
        path: "ignore.userAgents[]",
        values: Values::Texts {
            expected: schema::AGENT_EXPECTED,
            default: &[],
        },
        is_per_upstream: false,
        doc: "Prefixes of the user-agents of health checkers. One such request at a time in each worker is admitted where others are shed. Any caller can send such a header; each shed request then costs one more host call.",
    },
    Field {
        path: "maxUpstreams",
        values: Values::Count(schema::MAX_UPSTREAMS),
        is_per_upstream: false,
        doc: "Most upstreams with their own state and metrics. At the bound, the least recently used one loses its state; upstreams without a state share one.",
    },
    Field {
        path: "maxDestinations",
        values: Values::Count(schema::MAX_DESTINATIONS),
        is_per_upstream: false,
        doc: "Most destinations of clusters with `keyBy: authority` for which a worker keeps a state. Requests to others pass without a decision, and are counted.",
    },
    Field {
        path: "upstreams[].match.service",
        values: Values::Text {
            expected: schema::HOST_EXPECTED,
            default: None,
        },
        is_per_upstream: false,
        doc: "Condition: the host of the service.",
    },
    Field {
        path: "upstreams[].match.cluster",
        values: Values::Text {
            expected: schema::NAME_EXPECTED,
            default: None,
        },
        is_per_upstream: false,
        doc: "Condition: the name of the Envoy cluster.",
    },
    Field {
        path: "upstreams[].match.route",
        values: Values::Text {
            expected: schema::NAME_EXPECTED,
            default: None,
        },
        is_per_upstream: false,
        doc: "Condition: the name of the Envoy route.",
    },
];
