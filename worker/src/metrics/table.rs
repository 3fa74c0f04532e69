//! All metrics: the one list that names and documents them. Their values come from `sources.rs`.
//!
//! Envoy's WebAssembly metrics carry no labels, so labels are part of the name: `tidegate_upstream=.=<name>;.;`, then
//! `tidegate_<label>=.=<value>;.;` if there is one more, then `tidegate_<metric>`. Envoy puts `wasmcustom.` in front, and
//! `stats_tags` (generated from this table, see `reference.rs`) turn them into labels again.

use super::description::{Metric, counter, gauge, labelled, of_plugin};
use super::label_values::{CLASSES, FAULTS, LAWS, REASONS, TRIPS};

/// What every name begins with.
pub const PREFIX: &str = "tidegate_";

/// Requests that asked for admission.
pub const REQUESTS: Metric = counter(
    "requests_total",
    "Requests for which admission was decided.",
);
/// Requests admitted.
pub const ADMITTED: Metric = counter("requests_admitted_total", "Requests admitted.");
/// Requests shed, by reason.
pub const SHED: Metric = labelled(
    counter(
        "requests_shed_total",
        "Requests answered by the filter instead of the upstream, by reason.",
    ),
    "reason",
    &REASONS,
);
/// Requests that would have been shed, by reason.
pub const WOULD_SHED: Metric = labelled(
    counter(
        "requests_would_shed_total",
        "Requests that the laws would have shed and that were admitted: in mode `observe`, and beyond `enforcement`.",
    ),
    "reason",
    &REASONS,
);
/// Requests whose class was asked for, by class.
pub const RANKED: Metric = labelled(
    counter(
        "requests_ranked_total",
        "Requests whose class was read because the upstream was near its limit, by class.",
    ),
    "criticality",
    &CLASSES,
);
/// Requests shed because of load, by class.
pub const CLASS_SHED: Metric = labelled(
    counter(
        "class_shed_total",
        "Ranked requests that were shed (reasons `limit`, `criticality`, `retry`), by class. The breaker does not read the class, so its sheds are not among them.",
    ),
    "criticality",
    &CLASSES,
);
/// Requests that would have been shed because of load, by class.
pub const CLASS_WOULD_SHED: Metric = labelled(
    counter(
        "class_would_shed_total",
        "Ranked requests that the laws would have shed and that were admitted, by class.",
    ),
    "criticality",
    &CLASSES,
);
/// Requests whose class was sampled, by class.
pub const CLASS_SAMPLED: Metric = labelled(
    counter(
        "class_sampled_total",
        "Requests whose class was read as a sample, by class: one in 64 of each worker's, in mode `observe`, where `criticality` has a header or rules.",
    ),
    "criticality",
    &CLASSES,
);
/// Requests spared by the cap on the share shed.
pub const SPARED: Metric = counter(
    "requests_spared_total",
    "Requests admitted only because `shed.maxShare` was reached.",
);
/// Health checks admitted.
pub const EXEMPT: Metric = counter(
    "requests_exempt_total",
    "Health checks admitted although other requests would have been shed.",
);
/// Completed requests, by outcome.
pub const OUTCOMES_TOTAL: Metric = labelled(
    counter(
        "outcomes_total",
        "Requests by outcome. A success is counted with its headers. If the response breaks off later, or gRPC's trailers say otherwise, a `failure`, `overload`, `ignored` or `cancelled` is counted too, so the sum may exceed the requests admitted. `stale` requests began before the breaker's last transition.",
    ),
    "outcome",
    &[
        "success",
        "failure",
        "overload",
        "ignored",
        "cancelled",
        "stale",
    ],
);
/// Slow answers.
pub const SLOW: Metric = counter(
    "requests_slow_total",
    "Answers later than the objective's latency target, and callers who left after it.",
);
/// Probes sent.
pub const PROBES: Metric = counter(
    "probes_total",
    "Requests admitted by a half-open breaker as probes.",
);
/// In flight, exact for the proxy.
pub const IN_FLIGHT: Metric = gauge(
    "in_flight",
    "Requests admitted whose latency is not measured yet, in the whole proxy.",
);
/// Grants ever claimed.
pub const GRANTS_CLAIMED: Metric = gauge(
    "grants_claimed",
    "Requests that workers have claimed so far of those that are granted one by one: probes of an open breaker, and requests under a limit below one. It keeps all workers within the number that is granted to the proxy.",
);
/// Streams.
pub const STREAMS: Metric = gauge(
    "streams",
    "Requests that have not ended and no longer count as in flight: open responses, stalled uploads, requests that hang.",
);
/// The limit.
pub const LIMIT: Metric = gauge(
    "limit",
    "The concurrency limit of the whole proxy: most requests in flight.",
);
/// Baseline latency.
pub const BASELINE_RTT: Metric = gauge(
    "baseline_rtt_us",
    "Learned mean latency without a queue, to the moment that the objective measures, in microseconds; 0 while unknown.",
);
/// Latency now.
pub const SAMPLE_RTT: Metric = gauge(
    "sample_rtt_us",
    "The objective's latency quantile in the last window, in microseconds.",
);
/// Breaker state.
pub const BREAKER_STATE: Metric = gauge("breaker_state", "0 closed, 1 half-open, 2 open.");
/// Open interval.
pub const OPEN_INTERVAL: Metric = gauge(
    "open_interval_ms",
    "How long the breaker stays open this time, in milliseconds; 0 when it is closed.",
);
/// Breaker transitions.
pub const TRANSITIONS: Metric = labelled(
    counter(
        "breaker_transitions_total",
        "Transitions of the breaker, by the state it entered; `half_open` when a probe succeeded.",
    ),
    "to",
    &["closed", "half_open", "open"],
);
/// Trips by reason.
pub const TRIP_REASONS: Metric = labelled(
    counter("breaker_trips_total", "Trips of the breaker, by reason."),
    "reason",
    &TRIPS,
);
/// Changes of the reason for the limit.
pub const LIMIT_REASONS: Metric = labelled(
    counter(
        "limit_changes_total",
        "Changes of the law that sets the concurrency limit, by the new one: `cruise` (no queue stands), `hold` (a queue stands), `below_one` (a queue stands, and this proxy's share is less than one request in flight), `load_failures` (failures that load causes), `bounds` (those of the policy), `objective_unreachable` (no limit can make most answers meet the objective, so late answers do not lower the limit), `warm_up`.",
    ),
    "reason",
    &LAWS,
);
/// What runs; it has the labels [`INFO_LABELS`] too.
pub const INFO: Metric = of_plugin(labelled(
    gauge(
        "info",
        "1 for what runs now, 0 for what ran before: the module's version (in a release with the commit, such as `0.1.0+1a2b3c4`), the digest of the configuration in force, and the mode of its top level. After some 100 configurations in the life of a process, further ones are called `_other`.",
    ),
    "mode",
    &["enforce", "observe", "disabled"],
));
/// Labels of [`INFO`] whose values are no closed set.
pub const INFO_LABELS: [&str; 2] = ["version", "config"];
/// Upstreams with state.
pub const UPSTREAMS: Metric = of_plugin(gauge("upstreams", "Upstreams with their own state."));
/// Requests beyond the cap on upstreams.
pub const OVERFLOW: Metric = of_plugin(counter(
    "upstreams_overflow_total",
    "Requests to upstreams beyond `maxUpstreams`, which share one state, `_overflow`.",
));
/// Requests beyond the cap on destinations.
pub const DESTINATIONS_OVERFLOW: Metric = of_plugin(counter(
    "destinations_overflow_total",
    "Requests that the filter did not handle because their destination is beyond `maxDestinations`.",
));
/// Workers alive.
pub const WORKERS: Metric = of_plugin(gauge(
    "workers",
    "VMs that take part in the exchange: one for each worker thread, and the main thread's.",
));
/// In-flight counts corrected.
pub const RECONCILED: Metric = counter(
    "in_flight_reconciled_total",
    "Requests that a VM had counted as in flight when it ended, removed from the count.",
);
/// Faults by kind.
pub const FAULTS_TOTAL: Metric = of_plugin(labelled(
    counter(
        "faults_total",
        "Faults of the filter itself, by kind; the requests passed.",
    ),
    "kind",
    &FAULTS,
));

/// The label of [`OF_HOSTS`]; its values are addresses.
const fn by_host(metric: Metric) -> Metric {
    labelled(metric, "host", &[])
}

/// Requests by upstream host.
pub const HOST_REQUESTS: Metric = by_host(counter(
    "host_requests_total",
    "Requests for which Envoy had chosen this upstream host, counted when they end.",
));
/// Failures by upstream host.
pub const HOST_FAILURES: Metric = by_host(counter(
    "host_failures_total",
    "Failures among them: a 5xx or a failing gRPC status of its own, a timeout, a connection that was refused or reset.",
));
/// Overload signals by upstream host.
pub const HOST_OVERLOADS: Metric = by_host(counter(
    "host_overloads_total",
    "Overload signals among them.",
));
/// Late answers by upstream host.
pub const HOST_SLOW: Metric = by_host(counter(
    "host_slow_total",
    "Requests among them that were answered after the objective's latency target, or that the caller gave up after it.",
));

/// Those of the native module alone, with its option `native.hosts`.
pub static OF_HOSTS: [Metric; 4] = [HOST_REQUESTS, HOST_FAILURES, HOST_OVERLOADS, HOST_SLOW];

/// All others, in the order of the documents.
pub static ALL: [Metric; 31] = [
    REQUESTS,
    ADMITTED,
    SHED,
    WOULD_SHED,
    RANKED,
    CLASS_SHED,
    CLASS_WOULD_SHED,
    CLASS_SAMPLED,
    SPARED,
    EXEMPT,
    OUTCOMES_TOTAL,
    SLOW,
    IN_FLIGHT,
    STREAMS,
    LIMIT,
    BASELINE_RTT,
    SAMPLE_RTT,
    BREAKER_STATE,
    TRANSITIONS,
    TRIP_REASONS,
    LIMIT_REASONS,
    OPEN_INTERVAL,
    PROBES,
    GRANTS_CLAIMED,
    RECONCILED,
    INFO,
    UPSTREAMS,
    OVERFLOW,
    DESTINATIONS_OVERFLOW,
    WORKERS,
    FAULTS_TOTAL,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::MetricKind;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_counters_end_in_total() {
        let all = || ALL.iter().chain(&OF_HOSTS);
        let names: BTreeSet<_> = all().map(|metric| metric.name).collect();
        assert_eq!(names.len(), all().count());
        for metric in all() {
            let counts = metric.kind == MetricKind::Counter;
            assert_eq!(metric.name.ends_with("_total"), counts, "{}", metric.name);
        }
    }
}
