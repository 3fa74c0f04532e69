//! Where the values of metrics come from.
//!
//! Counters take what the workers counted ([`SOURCES`]), gauges what the leader decided ([`READINGS`]).

use tidegate_core::units::Seconds;
use tidegate_core::{BreakerPhase, Count, Counted, Criticality, ShedReason, UpstreamView};

use super::description::{Metric, without_help};
use super::table::{
    ADMITTED, BASELINE_RTT, BREAKER_STATE, CLASS_SAMPLED, CLASS_SHED, CLASS_WOULD_SHED, EXEMPT,
    LIMIT, OPEN_INTERVAL, OUTCOMES_TOTAL, PROBES, RANKED, REQUESTS, SAMPLE_RTT, SHED, SLOW, SPARED,
    STREAMS, WOULD_SHED,
};

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
    Ranked(Criticality),
    ShedOf(Criticality),
    WouldShedOf(Criticality),
    SampledOf(Criticality),
}

impl Source {
    /// The count now.
    #[must_use]
    pub fn read(&self, tally: &Counted) -> u64 {
        match self.read {
            Read::Count(count) => tally.get(count),
            Read::Shed(reason) => tally.shed(reason),
            Read::WouldShed(reason) => tally.would_shed(reason),
            Read::Ranked(class) => tally.demand_of(class),
            Read::ShedOf(class) => tally.shed_of(class),
            Read::WouldShedOf(class) => tally.would_shed_of(class),
            Read::SampledOf(class) => tally.sampled_of(class),
        }
    }
}

/// How many [`SOURCES`] there are, and how many, the first, that count without pressure.
pub const SOURCE_COUNT: usize = 42;
const ORDINARY_COUNT: usize = 12;

/// Those of [`SOURCES`] that may be more than zero.
#[must_use]
pub fn sources_of(tally: &Counted) -> &'static [Source] {
    if tally.knows_pressure() {
        &SOURCES
    } else {
        SOURCES.get(..ORDINARY_COUNT).unwrap_or(&SOURCES)
    }
}

/// All counts of one upstream that workers add to counters.
pub static SOURCES: [Source; SOURCE_COUNT] = [
    plain(REQUESTS, Count::Arrivals),
    plain(ADMITTED, Count::Admitted),
    plain(SPARED, Count::Spared),
    plain(EXEMPT, Count::Exempt),
    plain(SLOW, Count::Slow),
    plain(PROBES, Count::ProbesSent),
    outcome("success", Count::Successes),
    outcome("failure", Count::Failures),
    outcome("overload", Count::Overloads),
    outcome("ignored", Count::Ignored),
    outcome("cancelled", Count::Cancelled),
    outcome("stale", Count::Stale),
    shed(ShedReason::Limit),
    shed(ShedReason::Criticality),
    shed(ShedReason::Retry),
    shed(ShedReason::Deadline),
    shed(ShedReason::MaxOpen),
    shed(ShedReason::BreakerOpen),
    shed(ShedReason::BreakerHalfOpen),
    would_shed(ShedReason::Limit),
    would_shed(ShedReason::Criticality),
    would_shed(ShedReason::Retry),
    would_shed(ShedReason::Deadline),
    would_shed(ShedReason::MaxOpen),
    would_shed(ShedReason::BreakerOpen),
    would_shed(ShedReason::BreakerHalfOpen),
    ranked(Criticality::Sheddable),
    ranked(Criticality::SheddablePlus),
    ranked(Criticality::Critical),
    ranked(Criticality::CriticalPlus),
    shed_of(Criticality::Sheddable),
    shed_of(Criticality::SheddablePlus),
    shed_of(Criticality::Critical),
    shed_of(Criticality::CriticalPlus),
    would_shed_of(Criticality::Sheddable),
    would_shed_of(Criticality::SheddablePlus),
    would_shed_of(Criticality::Critical),
    would_shed_of(Criticality::CriticalPlus),
    sampled_of(Criticality::Sheddable),
    sampled_of(Criticality::SheddablePlus),
    sampled_of(Criticality::Critical),
    sampled_of(Criticality::CriticalPlus),
];

const fn plain(metric: Metric, count: Count) -> Source {
    Source {
        metric: without_help(metric),
        value: None,
        read: Read::Count(count),
    }
}

const fn outcome(value: &'static str, count: Count) -> Source {
    Source {
        value: Some(value),
        ..plain(OUTCOMES_TOTAL, count)
    }
}

const fn shed(reason: ShedReason) -> Source {
    Source {
        metric: without_help(SHED),
        value: Some(reason.as_str()),
        read: Read::Shed(reason),
    }
}

const fn would_shed(reason: ShedReason) -> Source {
    Source {
        metric: without_help(WOULD_SHED),
        value: Some(reason.as_str()),
        read: Read::WouldShed(reason),
    }
}

const fn ranked(class: Criticality) -> Source {
    Source {
        metric: without_help(RANKED),
        value: Some(class.name()),
        read: Read::Ranked(class),
    }
}

const fn shed_of(class: Criticality) -> Source {
    Source {
        metric: without_help(CLASS_SHED),
        value: Some(class.name()),
        read: Read::ShedOf(class),
    }
}

const fn would_shed_of(class: Criticality) -> Source {
    Source {
        metric: without_help(CLASS_WOULD_SHED),
        value: Some(class.name()),
        read: Read::WouldShedOf(class),
    }
}

const fn sampled_of(class: Criticality) -> Source {
    Source {
        metric: without_help(CLASS_SAMPLED),
        value: Some(class.name()),
        read: Read::SampledOf(class),
    }
}

/// A gauge of one upstream that the leader records.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The metric.
    pub metric: Metric,
    /// Its value for an upstream with so many streams in the whole proxy.
    pub read: fn(&UpstreamView<'_>, u64) -> u64,
}

/// How many [`READINGS`] there are.
pub const READING_COUNT: usize = 6;

/// All gauges of one upstream that the leader records.
pub static READINGS: [Reading; READING_COUNT] = [
    Reading {
        metric: without_help(LIMIT),
        read: |view, _| u64::from(view.limit),
    },
    Reading {
        metric: without_help(BASELINE_RTT),
        read: |view, _| micros(view.learned.limit.floor.mean),
    },
    Reading {
        metric: without_help(SAMPLE_RTT),
        read: |view, _| micros(view.learned.limit.latest.tail),
    },
    Reading {
        metric: without_help(BREAKER_STATE),
        read: |view, _| match view.breaker {
            BreakerPhase::Closed => 0,
            BreakerPhase::HalfOpen => 1,
            BreakerPhase::Open => 2,
        },
    },
    Reading {
        metric: without_help(OPEN_INTERVAL),
        read: |view, _| u64::from(view.learned.breaker.open_interval_ms()),
    },
    Reading {
        metric: without_help(STREAMS),
        read: |_, streams| streams,
    },
];

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and NaN becomes 0"
)]
fn micros(time: Seconds) -> u64 {
    (time.get() * 1e6) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::table::ALL;
    use std::collections::BTreeSet;

    #[test]
    fn ordinary_sources_come_first_and_all_others_count_under_pressure() {
        let is_ordinary = |source: &Source| matches!(source.read, Read::Count(_));
        let (ordinary, others) = SOURCES.split_at(ORDINARY_COUNT);
        assert!(ordinary.iter().all(is_ordinary) && !others.iter().any(is_ordinary));
    }

    #[test]
    fn every_source_and_reading_is_in_the_table_with_every_value() {
        let sources: BTreeSet<_> = SOURCES
            .iter()
            .map(|source| (source.metric.name, source.value))
            .collect();
        assert_eq!(sources.len(), SOURCE_COUNT, "each once");
        for source in &SOURCES {
            let metric = ALL.iter().find(|metric| metric.name == source.metric.name);
            let Some(label) = metric.unwrap().label else {
                assert_eq!(source.value, None);
                continue;
            };
            for value in label.values {
                assert!(sources.contains(&(source.metric.name, Some(value))));
            }
        }
        let all: BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        assert!(
            READINGS
                .iter()
                .all(|reading| all.contains(reading.metric.name))
        );
    }
}
