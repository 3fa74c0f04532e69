//! Looks at a run while it is played, and what is made of its ledger at the end.

use std::time::Duration;

use tidegate_core::BreakerPhase;

use super::queue::WorldEvent;
use super::run::{START, SimWorld};
use crate::decision::LimitMove;
use crate::number;
use crate::record::{Answer, Record};
use crate::run::{Noted, Run};
use crate::score::{Figures, Reached};
use crate::series::SeriesSample;

/// Interval between two samples of upstreams and contenders.
pub const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// A breaker's phase as charts show it; more is worse.
const fn severity(phase: BreakerPhase) -> u64 {
    match phase {
        BreakerPhase::Closed => 0,
        BreakerPhase::HalfOpen => 1,
        BreakerPhase::Open => 2,
    }
}

impl SimWorld<'_> {
    /// Collects the contenders' notes.
    pub(super) fn note(&mut self) {
        for (index, proxy) in self.proxies.iter_mut().enumerate() {
            let notes = proxy.contender.take_notes();
            self.ledger
                .notes
                .extend(notes.into_iter().map(|note| Noted { proxy: index, note }));
        }
    }

    pub(super) fn sample(&mut self) {
        let mut sample = SeriesSample {
            at_s: self.now.saturating_since(START).as_secs_f64(),
            in_flight: Some(self.held),
            ..SeriesSample::default()
        };
        for upstream in &self.upstreams {
            let (busy, waiting) = upstream.occupancy();
            sample.received += upstream.received;
            sample.in_service += busy;
            sample.waiting += waiting;
        }
        let mut limit = None;
        for (index, proxy) in pairs(&self.proxies, self.upstreams.len()) {
            let view = proxy.contender.view(index, self.now);
            if let Some(more) = view.limit {
                limit = Some(limit.unwrap_or(0.0) + more);
            }
            sample.breaker = sample.breaker.max(view.breaker.map(severity));
        }
        sample.limit =
            limit.map(|limit: f64| u64::try_from(number::floor(limit)).unwrap_or(u64::MAX));
        if let Some(proxy) = self.proxies.first() {
            for upstream in 0..self.upstreams.len() {
                if let Some(decision) = proxy.contender.decision(upstream, self.now) {
                    self.ledger.explain(LimitMove {
                        at_s: sample.at_s,
                        upstream,
                        decision,
                    });
                }
            }
        }
        self.ledger.samples.push(sample);
        self.note();
        self.push_after(SAMPLE_EVERY, WorldEvent::Sample);
    }

    /// Requests in flight by the contenders' own counts.
    fn leaked(&self) -> Option<u64> {
        let beliefs = pairs(&self.proxies, self.upstreams.len())
            .map(|(upstream, proxy)| proxy.contender.in_flight(upstream));
        // A count that fell below zero is a leak like any other.
        beliefs.reduce(|sum, more| Some(sum?.saturating_add(more?)))?
    }

    pub(super) fn into_run(mut self) -> Run {
        let leaked = self.leaked();
        let reached = self
            .upstreams
            .iter()
            .fold(Reached::default(), |sum, upstream| Reached {
                received: sum.received + upstream.received,
                received_while_down: sum.received_while_down + upstream.received_while_down,
            });
        let work = self.work_since(START + self.scenario.warmup);
        let has_breaker = self.ledger.samples.iter().any(|s| s.breaker.is_some());
        let arrivals = self.take_arrivals();
        let (mut digest, calls) = (self.ledger.digest, self.calls);
        let mut records = Vec::with_capacity(calls.len());
        for (arrival, call) in arrivals.into_iter().zip(calls) {
            let (answer, latency) = call.end.map_or((Answer::Broken, Duration::ZERO), |end| {
                digest.feed(end.code());
                (end.answer, end.latency)
            });
            digest.feed(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
            digest.feed(u64::from(call.attempts) << 32 | u64::from(call.sheds));
            records.push(Record {
                arrival,
                answer,
                latency,
                attempts: call.attempts,
                sheds: call.sheds,
            });
        }
        let mut notes = self.ledger.notes;
        notes.sort_by_key(|noted| noted.note.at);
        for Noted { proxy, note } in &notes {
            digest.feed(u64::try_from(*proxy).unwrap_or(u64::MAX));
            digest.feed(note.at.as_nanos());
            digest.feed_bytes(note.reason.as_bytes());
        }
        let mut figures = Figures::of(self.scenario, &records, reached);
        let opened = notes
            .iter()
            .filter(|noted| noted.note.breaker == BreakerPhase::Open);
        figures.breaker_opened = has_breaker.then(|| opened.map(|_| 1).sum());
        let shares: Vec<f64> = self.proxies.iter().map(|p| number::float(p.good)).collect();
        figures.proxy_fairness = fairness(&shares);
        figures.note_work(self.scenario, &work);
        Run {
            figures,
            records,
            samples: self.ledger.samples,
            notes,
            moves: self.ledger.moves,
            asked: self.ledger.asked,
            admitted: self.ledger.admitted,
            sheds: self.ledger.sheds,
            sheds_at: self.ledger.sheds_at,
            most_in_flight: self.ledger.most_in_flight,
            leaked,
            events: self.ledger.events,
            digest,
        }
    }
}

/// Every proxy with every upstream's index.
fn pairs(
    proxies: &[super::proxy::SimProxy],
    upstreams: usize,
) -> impl Iterator<Item = (usize, &super::proxy::SimProxy)> {
    proxies
        .iter()
        .flat_map(move |proxy| (0..upstreams).map(move |upstream| (upstream, proxy)))
}

/// How evenly something is shared: 1 when all have the same, 1/n when one has all; none for a single one. The index of
/// Jain, Chiu and Hawe (1984).
fn fairness(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = shares
        .iter()
        .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (shares.len() > 1 && squares > 0.0)
        .then(|| sum * sum / (number::float_len(shares.len()) * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_equals_and_a_share_for_one_who_has_all() {
        assert_eq!(fairness(&[3.0]), None);
        assert!((fairness(&[2.0, 2.0]).unwrap() - 1.0).abs() < 1e-12);
        assert!((fairness(&[0.0, 0.0, 5.0, 0.0]).unwrap() - 0.25).abs() < 1e-12);
    }
}
