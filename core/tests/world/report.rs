//! What came of a run.

use tidegate_core::Event;

use super::Sheds;

/// Series are by tenth of a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) good: Vec<u32>,
    pub(crate) offered: Vec<u32>,
    pub(crate) received: Vec<u32>,
    pub(crate) critical_good: u32,
    pub(crate) critical_offered: u32,
    /// By second.
    pub(crate) critical_shed: Vec<f64>,
    pub(crate) sheds: Sheds,
    /// By second.
    pub(crate) events: Vec<(f64, Event)>,
    /// Second and the leader's limit.
    pub(crate) limits: Vec<(f64, u32)>,
    /// Second of the end and latency in seconds, of all answers.
    pub(crate) latencies: Vec<(f64, f64)>,
    /// The most in flight together.
    pub(crate) most_in_flight: i64,
    /// Permits held at the end less what the engines say is in flight; and less the shared count, where there is one.
    pub(crate) leaked: i64,
    pub(crate) miscounted: i64,
    /// Good answers as a share of the oracle's.
    pub(crate) score: f64,
}

impl Report {
    /// The sum of a series from one second to another.
    pub(crate) fn sum(series: &[u32], from: f64, to: f64) -> u32 {
        let index = |seconds: f64| (seconds * 10.0).round() as usize;
        series[index(from)..index(to)].iter().sum()
    }

    /// The latency quantile of answers that ended in this stretch, seconds.
    pub(crate) fn p99(&self, from: f64, to: f64) -> f64 {
        let mut all: Vec<f64> = self
            .latencies
            .iter()
            .filter(|(now, _)| (from..to).contains(now))
            .map(|(_, latency)| *latency)
            .collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() * 99 / 100).copied().unwrap_or_default()
    }

    /// Good answers in a stretch, as a share of what was offered.
    pub(crate) fn good_share(&self, from: f64, to: f64) -> f64 {
        f64::from(Self::sum(&self.good, from, to)) / f64::from(Self::sum(&self.offered, from, to))
    }

    /// Good answers a second in a stretch.
    pub(crate) fn goodput(&self, from: f64, to: f64) -> f64 {
        f64::from(Self::sum(&self.good, from, to)) / (to - from)
    }

    pub(crate) fn shed(&self) -> u32 {
        self.sheds.values().sum()
    }

    pub(crate) fn trips(&self) -> impl Iterator<Item = f64> + '_ {
        self.events
            .iter()
            .filter(|(_, event)| matches!(event, Event::Tripped { .. }))
            .map(|(now, _)| *now)
    }

    /// The leader's limit at a second.
    pub(crate) fn limit(&self, at: f64) -> u32 {
        let current = self.limits.iter().find(|(now, _)| *now >= at);
        current.or_else(|| self.limits.last()).unwrap().1
    }
}
