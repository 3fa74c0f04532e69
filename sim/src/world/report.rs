//! Samples a run while it is played, and turns its ledger into the results at the end.

use std::time::Duration;

use tidegate_core::BreakerPhase;

use super::call::SimCall;
use super::clock::{SAMPLE_EVERY, START};
use super::event::WorldEvent;
use super::run::SimWorld;
use super::tally::RunTally;
use crate::contender::ContenderView;
use crate::decision::LimitMove;
use crate::digest::Digest;
use crate::number;
use crate::record::{Answer, Record};
use crate::run::{Noted, Run};
use crate::score::{Figures, Reached};
use crate::series::SeriesSample;

/// The results of a run that kept no requests.
#[derive(Debug)]
pub(crate) struct Tallied {
    pub(crate) tally: RunTally,
    /// As [`Run::leaked`]; 0 for contenders that do not say.
    pub(crate) leaked: u64,
    pub(crate) events: u64,
    pub(crate) digest: Digest,
}

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
            if let Some(tally) = &mut self.tally {
                let opened = notes
                    .iter()
                    .filter(|note| note.breaker == BreakerPhase::Open);
                tally.trips += opened.map(|_| 1).sum::<u64>();
                continue;
            }
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
        let pairs = pairs(&self.proxies, self.upstreams.len());
        let now = self.now;
        let views = pairs.map(|(index, proxy)| proxy.contender.view(index, now));
        if let Some(tally) = &mut self.tally {
            tally.sample(now, &sample, views);
        } else {
            self.ledger.samples.push(with_views(sample, views));
            self.explain(sample.at_s);
        }
        self.note();
        self.push_after(SAMPLE_EVERY, WorldEvent::Sample);
    }

    /// Keeps why the limits of the first proxy are what they are.
    fn explain(&mut self, at_s: f64) {
        let Some(proxy) = self.proxies.first() else {
            return;
        };
        for upstream in 0..self.upstreams.len() {
            if let Some(decision) = proxy.contender.decision(upstream, self.now) {
                self.ledger.explain(LimitMove {
                    at_s,
                    upstream,
                    decision,
                });
            }
        }
    }

    /// Requests in flight by the contenders' own counts.
    fn leaked(&self) -> Option<u64> {
        let beliefs = pairs(&self.proxies, self.upstreams.len())
            .map(|(upstream, proxy)| proxy.contender.in_flight(upstream));
        // A count that fell below zero is a leak like any other.
        beliefs.reduce(|sum, more| Some(sum?.saturating_add(more?)))?
    }

    /// The results of a run that kept a tally.
    pub(super) fn into_tallied(self) -> Tallied {
        Tallied {
            leaked: self.leaked().unwrap_or(0),
            tally: self.tally.unwrap_or_default(),
            events: self.ledger.events,
            digest: self.ledger.digest,
        }
    }

    pub(super) fn into_run(self) -> Run {
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
        let mut digest = self.ledger.digest;
        let calls = self.calls.into_values().into_iter();
        let mut roots: Vec<SimCall> = calls.filter(|call| call.parent.is_none()).collect();
        // In order already, but for those of closed loops.
        roots.sort_by_key(|call| call.arrival.at);
        let mut records = Vec::with_capacity(roots.len());
        for call in roots {
            let (answer, latency) = call.end.map_or((Answer::Broken, Duration::ZERO), |end| {
                digest.feed(end.code());
                (end.answer, end.latency)
            });
            digest.feed(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
            digest.feed(u64::from(call.attempts) << 32 | u64::from(call.sheds));
            records.push(Record {
                arrival: call.arrival,
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
        let shares = self.proxies.iter().map(|proxy| number::float(proxy.good));
        let fairness = number::fairness(shares);
        figures.proxy_fairness = fairness.filter(|_| self.proxies.len() > 1);
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

/// A sample with what proxies show of themselves.
fn with_views(
    mut sample: SeriesSample,
    views: impl Iterator<Item = ContenderView>,
) -> SeriesSample {
    let mut limit: Option<f64> = None;
    for view in views {
        if let Some(more) = view.limit {
            limit = Some(limit.unwrap_or(0.0) + more);
        }
        sample.breaker = sample.breaker.max(view.breaker.map(severity));
    }
    sample.limit = limit.map(|limit| u64::try_from(number::floor(limit)).unwrap_or(u64::MAX));
    sample
}
