//! Every metric there is: the one list that names, documents and fills them.
//!
//! Envoy's WebAssembly metrics carry no labels, so labels stand in the name: `tidegate_<metric>;upstream=<name>;` and,
//! where there is one more, `<label>=<value>;`. Envoy puts `wasmcustom.` in front, and `stats_tags` (generated from
//! this table, see `reference.rs`) turns them into labels again.

use tidegate_core::{Count, Phase, ShedReason, Tally, TripReason, UpstreamView};

use crate::api::MetricKind;
use crate::faults::Fault;

/// What every name begins with.
pub const PREFIX: &str = "tidegate_";

/// Description of one metric, for names and documents.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name without [`PREFIX`].
    pub name: &'static str,
    /// What it does.
    pub kind: MetricKind,
    /// Whether there is one for each upstream.
    pub per_upstream: bool,
    /// One more label.
    pub label: Option<Label>,
    /// What it says, in one sentence.
    pub help: &'static str,
}

/// A label and all values it can have.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// Every value.
    pub values: &'static [&'static str],
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric {
        name,
        kind: MetricKind::Counter,
        per_upstream: true,
        label: None,
        help,
    }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric {
        kind: MetricKind::Gauge,
        ..counter(name, help)
    }
}

const fn labelled(metric: Metric, name: &'static str, values: &'static [&'static str]) -> Metric {
    Metric {
        label: Some(Label { name, values }),
        ..metric
    }
}

const fn of_plugin(metric: Metric) -> Metric {
    Metric {
        per_upstream: false,
        ..metric
    }
}

const REASONS: [&str; ShedReason::ALL.len()] = {
    let mut names = [""; ShedReason::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = ShedReason::ALL[i].as_str();
        i += 1;
    }
    names
};
const TRIPS: [&str; TripReason::ALL.len()] = {
    let mut names = [""; TripReason::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = TripReason::ALL[i].as_str();
        i += 1;
    }
    names
};
const FAULTS: [&str; Fault::ALL.len()] = {
    let mut names = [""; Fault::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = Fault::ALL[i].as_str();
        i += 1;
    }
    names
};
const OUTCOMES: [&str; OUTCOME_COUNTS.len()] = [
    "success",
    "failure",
    "overload",
    "ignored",
    "cancelled",
    "stale",
];
const OUTCOME_COUNTS: [Count; 6] = [
    Count::Successes,
    Count::Failures,
    Count::Overloads,
    Count::Ignored,
    Count::Cancelled,
    Count::Stale,
];

/// Requests that asked for admission.
pub const REQUESTS: Metric = counter("requests_total", "Requests that asked for admission.");
/// Requests let in.
pub const ADMITTED: Metric = counter("requests_admitted_total", "Requests let in.");
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
        "Requests let in although they would have been shed: in mode `observe`, and beyond `enforcement`.",
    ),
    "reason",
    &REASONS,
);
/// Requests spared by the cap on the share shed.
pub const SPARED: Metric = counter(
    "requests_spared_total",
    "Requests let in only because `shed.maxShare` was reached.",
);
/// Health checks let in.
pub const EXEMPT: Metric = counter(
    "requests_exempt_total",
    "Health checks let in although others would have been shed.",
);
/// Completed requests, by outcome.
pub const OUTCOMES_TOTAL: Metric = labelled(
    counter(
        "outcomes_total",
        "Completed requests by what they say about the upstream; `stale` began before the breaker's last transition.",
    ),
    "outcome",
    &OUTCOMES,
);
/// Slow answers.
pub const SLOW: Metric = counter(
    "requests_slow_total",
    "Answers later than the objective's latency target, and callers who left after it.",
);
/// Probes sent.
pub const PROBES: Metric = counter(
    "probes_total",
    "Requests let through a half-open breaker as probes.",
);
/// In flight, exact for the proxy.
pub const IN_FLIGHT: Metric = gauge(
    "in_flight",
    "Requests admitted and not completed, in the whole proxy; without streams.",
);
/// Probes ever claimed.
pub const PROBES_CLAIMED: Metric = gauge(
    "probes_claimed",
    "Probes that workers have claimed so far; how they stay within what the breaker grants the whole proxy.",
);
/// Streams.
pub const STREAMS: Metric = gauge(
    "streams",
    "Exchanges that outlived 5 s after their response headers, and no longer count as in flight.",
);
/// The limit.
pub const LIMIT: Metric = gauge(
    "limit",
    "The concurrency limit of the whole proxy: most requests in flight.",
);
/// Baseline latency.
pub const BASELINE_RTT: Metric = gauge(
    "baseline_rtt_us",
    "Mean latency to the response headers without a queue, as learned, microseconds; 0 while unknown.",
);
/// Latency now.
pub const SAMPLE_RTT: Metric = gauge(
    "sample_rtt_us",
    "The objective's latency quantile in the last window, microseconds.",
);
/// Breaker state.
pub const BREAKER_STATE: Metric = gauge("breaker_state", "0 closed, 1 half-open, 2 open.");
/// Open interval.
pub const OPEN_INTERVAL: Metric = gauge(
    "open_interval_ms",
    "How long the breaker stays open this time, milliseconds; 0 when it is closed.",
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
/// Upstreams with state.
pub const UPSTREAMS: Metric = of_plugin(gauge("upstreams", "Upstreams with a state of their own."));
/// Requests beyond the cap on upstreams.
pub const OVERFLOW: Metric = of_plugin(counter(
    "upstreams_overflow_total",
    "Requests to upstreams beyond `maxUpstreams`, which share one state, `_overflow`.",
));
/// Workers alive.
pub const WORKERS: Metric = of_plugin(gauge(
    "workers",
    "VMs that take part in the exchange: one for each worker thread, and the main thread's.",
));
/// In-flight counts corrected.
pub const RECONCILED: Metric = counter(
    "in_flight_reconciled_total",
    "Requests in flight that were counted by a VM that is gone, and were taken off again.",
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

/// All of them, in the order of the documents.
pub static ALL: [Metric; 24] = [
    REQUESTS,
    ADMITTED,
    SHED,
    WOULD_SHED,
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
    OPEN_INTERVAL,
    PROBES,
    PROBES_CLAIMED,
    RECONCILED,
    UPSTREAMS,
    OVERFLOW,
    WORKERS,
    FAULTS_TOTAL,
];

/// One count that every worker adds to a counter, by what it grew since the last time.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The metric.
    pub metric: Metric,
    /// The value of its label.
    pub value: Option<&'static str>,
    read: Read,
}

#[derive(Clone, Copy, Debug)]
enum Read {
    Count(Count),
    Shed(ShedReason),
    WouldShed(ShedReason),
}

impl Source {
    /// The count now.
    #[must_use]
    pub fn read(&self, tally: &Tally) -> u64 {
        match self.read {
            Read::Count(count) => tally.get(count),
            Read::Shed(reason) => tally.shed(reason),
            Read::WouldShed(reason) => tally.would_shed(reason),
        }
    }
}

/// How many [`SOURCES`] there are.
pub const SOURCE_COUNT: usize = 6 + OUTCOME_COUNTS.len() + 2 * REASONS.len();

/// All counts of one upstream that workers add to counters.
pub static SOURCES: [Source; SOURCE_COUNT] = {
    const fn plain(metric: Metric, count: Count) -> Source {
        Source {
            metric,
            value: None,
            read: Read::Count(count),
        }
    }
    let mut sources = [plain(REQUESTS, Count::Arrivals); SOURCE_COUNT];
    sources[1] = plain(ADMITTED, Count::Admitted);
    sources[2] = plain(SPARED, Count::Spared);
    sources[3] = plain(EXEMPT, Count::Exempt);
    sources[4] = plain(SLOW, Count::Slow);
    sources[5] = plain(PROBES, Count::ProbesSent);
    let mut at = 6;
    let mut i = 0;
    while i < OUTCOME_COUNTS.len() {
        sources[at] = Source {
            value: Some(OUTCOMES[i]),
            ..plain(OUTCOMES_TOTAL, OUTCOME_COUNTS[i])
        };
        at += 1;
        i += 1;
    }
    i = 0;
    while i < REASONS.len() {
        let reason = ShedReason::ALL[i];
        sources[at] = Source {
            metric: SHED,
            value: Some(REASONS[i]),
            read: Read::Shed(reason),
        };
        sources[at + 1] = Source {
            metric: WOULD_SHED,
            value: Some(REASONS[i]),
            read: Read::WouldShed(reason),
        };
        at += 2;
        i += 1;
    }
    sources
};

/// A gauge of one upstream that the leader records.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The metric.
    pub metric: Metric,
    /// Its value for an upstream with so many streams in the whole proxy.
    pub read: fn(&UpstreamView<'_>, u32) -> u64,
}

/// How many [`READINGS`] there are.
pub const READING_COUNT: usize = 6;

/// All gauges of one upstream that the leader records.
pub static READINGS: [Reading; READING_COUNT] = [
    Reading {
        metric: LIMIT,
        read: |view, _| u64::from(view.limit),
    },
    Reading {
        metric: BASELINE_RTT,
        read: |view, _| micros(view.learned.baseline_mean),
    },
    Reading {
        metric: SAMPLE_RTT,
        read: |view, _| micros(view.learned.sample_tail),
    },
    Reading {
        metric: BREAKER_STATE,
        read: |view, _| match view.breaker {
            Phase::Closed => 0,
            Phase::HalfOpen => 1,
            Phase::Open => 2,
        },
    },
    Reading {
        metric: OPEN_INTERVAL,
        read: |view, _| u64::from(view.learned.open_interval_ms),
    },
    Reading {
        metric: STREAMS,
        read: |_, streams| u64::from(streams),
    },
];

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and NaN becomes 0"
)]
fn micros(seconds: f32) -> u64 {
    (f64::from(seconds) * 1e6) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_counters_end_in_total() {
        let names: BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
        for metric in &ALL {
            let counts = metric.kind == MetricKind::Counter;
            assert_eq!(metric.name.ends_with("_total"), counts, "{}", metric.name);
        }
    }

    #[test]
    fn every_source_and_reading_is_in_the_table_once() {
        let all: BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        let sources: BTreeSet<_> = SOURCES
            .iter()
            .map(|source| (source.metric.name, source.value))
            .collect();
        assert_eq!(sources.len(), SOURCE_COUNT);
        assert!(sources.iter().all(|(name, _)| all.contains(name)));
        assert!(
            READINGS
                .iter()
                .all(|reading| all.contains(reading.metric.name))
        );
    }
}
