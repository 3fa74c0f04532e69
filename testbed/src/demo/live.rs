//! The last second of one side, for the display.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_sim::number;
use tidegate_sim::record::{Answer, Record};

/// Figures of one side over the last second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct View {
    /// Good answers a second.
    pub good: u64,
    /// Sheds a second.
    pub shed: u64,
    /// Other failures a second, including abandoned requests.
    pub failed: u64,
    /// 99th percentile of all answers 200 and of abandoned requests, in milliseconds; `None` without any.
    pub p99_ms: Option<f64>,
}

/// Keeps the requests that ended within the last second.
#[derive(Debug, Default)]
pub struct Live {
    ended: VecDeque<RecentlyEnded>,
}

#[derive(Debug, Clone, Copy)]
struct RecentlyEnded {
    at: Duration,
    kind: RecentEndKind,
    latency: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecentEndKind {
    Good,
    Late,
    Shed,
    Failed,
    GaveUp,
}

const SPAN: Duration = Duration::from_secs(1);

impl Live {
    /// Records a request that ended; `objective` is the latency target of its time.
    pub fn note(&mut self, record: &Record, objective: Duration) {
        let kind = match record.answer {
            Answer::Ok if record.is_good(objective) => RecentEndKind::Good,
            Answer::Ok => RecentEndKind::Late,
            Answer::Shed(_) => RecentEndKind::Shed,
            Answer::GaveUp => RecentEndKind::GaveUp,
            Answer::Failed(_) | Answer::Broken => RecentEndKind::Failed,
        };
        let at = record.arrival.at + record.latency;
        self.ended.push_back(RecentlyEnded {
            at,
            kind,
            latency: record.latency,
        });
    }

    /// Figures of the second before `now`; drops older requests.
    pub fn view(&mut self, now: Duration) -> View {
        let since = now.saturating_sub(SPAN);
        self.ended.retain(|ended| ended.at >= since);
        let count = |wanted: &[RecentEndKind]| {
            let count = self
                .ended
                .iter()
                .filter(|ended| wanted.contains(&ended.kind))
                .count();
            u64::try_from(count).unwrap_or(u64::MAX)
        };
        let waited = [
            RecentEndKind::Good,
            RecentEndKind::Late,
            RecentEndKind::GaveUp,
        ];
        let mut latencies: Vec<Duration> = self
            .ended
            .iter()
            .filter(|ended| waited.contains(&ended.kind))
            .map(|ended| ended.latency)
            .collect();
        latencies.sort_unstable();
        View {
            good: count(&[RecentEndKind::Good]),
            shed: count(&[RecentEndKind::Shed]),
            failed: count(&[
                RecentEndKind::Late,
                RecentEndKind::Failed,
                RecentEndKind::GaveUp,
            ]),
            p99_ms: number::quantile(&latencies, 0.99).map(number::millis),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::arrivals::Arrival;

    fn record(at_ms: u64, latency_ms: u64, answer: Answer) -> Record {
        let at = Duration::from_millis(at_ms);
        let arrival = Arrival {
            at,
            client: 0,
            path: "/".into(),
            criticality: None,
            upload: None,
            reads_for: None,
        };
        Record {
            arrival,
            answer,
            latency: Duration::from_millis(latency_ms),
            attempts: 1,
            sheds: 0,
        }
    }

    #[test]
    fn what_ended_more_than_a_second_ago_is_forgotten() {
        let mut live = Live::default();
        let objective = Duration::from_millis(300);
        live.note(&record(0, 100, Answer::Ok), objective);
        live.note(&record(900, 100, Answer::Ok), objective);
        live.note(&record(900, 400, Answer::Ok), objective);
        let view = live.view(Duration::from_millis(1_500));
        assert_eq!((view.good, view.failed), (1, 1));
    }
}
