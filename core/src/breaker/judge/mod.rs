//! The leader's side of the breaker: one state for the whole proxy. [`closed`] and [`half_open`] decide on transitions,
//! [`rates`] learns what is usual for the upstream, and [`checkpoint`] is what a successor starts from.

mod checkpoint;
mod closed;
mod half_open;
mod latency;
mod rates;

use core::time::Duration;

use super::evidence::OutageEvidence;
use super::interval::{History, OpenBounds, open_interval};
use super::silence::Silence;
use super::successes::Successes;
use super::window::Window;
use super::{BreakerState, LocalTrip, TripReason};
use crate::ablation::{Mechanism, is_off};
use crate::config::BreakerConfig;
use crate::limit::LimitCheckpoint;
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;
use latency::RecentLatency;
use rates::Rates;

pub use checkpoint::{BreakerCheckpoint, Outage};
pub(crate) use half_open::ramp_start;
pub use rates::RatesCheckpoint;

/// One overdue request may be a slow query; this many, with no answer to any request, are a hang.
const MIN_OVERDUE: u32 = 5;

/// The judge's input for one interval.
pub(crate) struct Findings<'a> {
    pub(crate) sample: &'a Sample,
    /// Trips that workers have newly reported.
    pub(crate) trips: &'a [LocalTrip],
    /// What is known of the limit.
    pub(crate) known: &'a LimitCheckpoint,
    /// The objective's latency target.
    pub(crate) target: Duration,
    /// A longer wait for response headers may be a hang.
    pub(crate) hang_after: Duration,
    /// The concurrency limit with a closed breaker.
    pub(crate) limit: u32,
    /// Probes ever sent.
    pub(crate) probes: u64,
    /// A random number in 0..1.
    pub(crate) uniform: f64,
    pub(crate) now: Instant,
}

/// A transition of the breaker's diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BreakerTransition {
    Trip(TripReason),
    Ramp,
    Reset,
}

/// The breaker of one upstream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judge {
    state: BreakerState,
    epoch: u32,
    evidence: OutageEvidence,
    /// The proxy's successes, with the failures beside them, and the gaps between answers of any kind.
    successes: Successes,
    answers: Silence,
    latency: RecentLatency,
    window: Window,
    rates: Rates,
    signs: Option<Box<OutageSigns>>,
}

/// What is kept from the first sign of an outage on, until the breaker has closed again. Most upstreams never have one.
#[derive(Clone, Debug, Default)]
struct OutageSigns {
    /// Since when the success rate has been low while the breaker is closed.
    low_since: Option<Instant>,
    outage_since: Option<Instant>,
    /// Whether the breaker opened after a silence, and has not closed since.
    opened_in_silence: bool,
    /// Since when a probe is under way.
    probing_since: Option<Instant>,
    /// When the last further probe was granted.
    granted_at: Option<Instant>,
    /// Probes that failed since the breaker opened.
    probe_failures: u64,
    interval: Duration,
}

impl Judge {
    fn signs(&mut self) -> &mut OutageSigns {
        self.signs.get_or_insert_default()
    }

    pub(crate) const fn state(&self) -> BreakerState {
        self.state
    }

    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// One round: at most one transition.
    pub(crate) fn update(
        &mut self,
        findings: &Findings<'_>,
        config: &BreakerConfig,
    ) -> Option<BreakerTransition> {
        self.watch(findings);
        let transition = if config.enabled() {
            self.decide(findings, config)
        } else {
            self.disarm()
        }?;
        self.enter(transition, findings, config);
        Some(transition)
    }

    /// Measures latencies, and where traffic flows the gaps between successes and between answers of any kind.
    fn watch(&mut self, findings: &Findings<'_>) {
        self.latency.learn(findings.sample);
        if matches!(self.state, BreakerState::Open { .. }) {
            return;
        }
        // The order of a round's outcomes is unknown: its failures count as those before its success.
        let failures = findings.sample.tally.get(Count::Failures);
        let failures = u32::try_from(failures).unwrap_or(u32::MAX);
        self.successes.fail(failures, findings.now);
        if findings.sample.successes() > 0.0 {
            self.successes
                .succeed_within(findings.sample.span, findings.now);
        }
        self.answers.end_at(findings.sample.last_response);
    }

    /// Whether no answer has come for so long that requests hang: longer than a request may wait, and longer than the usual
    /// gap between answers. A few requests that are answered late by design, such as long polls, are no hang.
    fn is_unanswered(&self, findings: &Findings<'_>) -> bool {
        self.is_silent(findings) && self.lacks_answers(findings)
    }

    /// Whether no answer has come for longer than the usual gap between answers.
    fn lacks_answers(&self, findings: &Findings<'_>) -> bool {
        let answered = findings.sample.last_response;
        self.answers.lacks_answers(answered, findings.now) || is_off(Mechanism::HangSilence)
    }

    /// Whether requests fill the limit, and no answer has come for much longer than a request usually takes. In an overload the limit is full,
    /// too, but answers come. Nothing but a probe can show when the upstream is back.
    fn is_full_in_silence(&self, findings: &Findings<'_>) -> bool {
        let patience = self.latency.patience_when_full(findings);
        findings.sample.in_flight >= findings.limit.max(MIN_OVERDUE)
            && patience.is_some_and(|patience| self.silent_for(findings) >= patience)
            && self.lacks_answers(findings)
            && !is_off(Mechanism::FullSilence)
    }

    /// Whether no answer has come for longer than a request may wait.
    fn is_silent(&self, findings: &Findings<'_>) -> bool {
        self.silent_for(findings) >= self.latency.patience(findings)
    }

    /// For how long no answer has come.
    fn silent_for(&self, findings: &Findings<'_>) -> Duration {
        findings.now.saturating_since(findings.sample.last_response)
    }

    fn decide(
        &mut self,
        findings: &Findings<'_>,
        config: &BreakerConfig,
    ) -> Option<BreakerTransition> {
        let reported = self.reported(findings.trips).map(BreakerTransition::Trip);
        match self.state {
            BreakerState::Closed => {
                let is_failing = self.is_failing(findings.now, config.trip_ratio().as_f64());
                self.rates.learn(findings.sample, is_failing, findings.now);
                reported.or_else(|| {
                    self.judge_closed(findings, config)
                        .map(BreakerTransition::Trip)
                })
            }
            BreakerState::Open { .. } if self.has_stale_answer(findings) => {
                Some(BreakerTransition::Ramp)
            }
            BreakerState::Open { until, probes } if findings.now < until => {
                // The policy may have changed, and clocks jump back: no wait may be longer than the policy allows now.
                let latest = findings.now + config.max_open().max(config.min_open());
                self.state = BreakerState::Open {
                    until: until.min(latest),
                    probes,
                };
                None
            }
            BreakerState::Open { until, probes } => {
                reported.or_else(|| self.judge_probe(findings, until, probes))
            }
            BreakerState::Ramp { limit } => reported.or_else(|| self.judge_ramp(findings, limit)),
        }
    }

    /// The reason of a worker's trip on evidence of this epoch, of the epoch before, or of the next one: that of a worker's own
    /// ramp that the leader does not know of.
    fn reported(&self, trips: &[LocalTrip]) -> Option<TripReason> {
        let behind_the_next =
            |trip: &LocalTrip| self.epoch.wrapping_add(1).wrapping_sub(trip.epoch);
        trips
            .iter()
            .filter(|trip| behind_the_next(trip) <= 2)
            .map(|trip| trip.reason)
            .min()
    }

    fn disarm(&self) -> Option<BreakerTransition> {
        (self.state != BreakerState::Closed).then_some(BreakerTransition::Reset)
    }

    fn enter(
        &mut self,
        transition: BreakerTransition,
        findings: &Findings<'_>,
        config: &BreakerConfig,
    ) {
        let now = findings.now;
        self.epoch = self.epoch.wrapping_add(1);
        self.evidence.forget();
        self.window.clear();
        let signs = self.signs();
        let probing_since = signs.probing_since.take();
        signs.granted_at = None;
        signs.probe_failures = 0;
        signs.low_since = None;
        self.successes.restart(now);
        self.answers.restart(now);
        self.state = match transition {
            BreakerTransition::Trip(_) => {
                self.signs().opened_in_silence =
                    self.is_silent(findings) || self.is_full_in_silence(findings);
                self.open(findings, config, probing_since)
            }
            BreakerTransition::Ramp => BreakerState::Ramp {
                limit: ramp_start(findings.limit, findings.known),
            },
            BreakerTransition::Reset => {
                self.signs = None;
                BreakerState::Closed
            }
        };
    }

    fn open(
        &mut self,
        findings: &Findings<'_>,
        config: &BreakerConfig,
        probing_since: Option<Instant>,
    ) -> BreakerState {
        let now = findings.now;
        if self.state == BreakerState::Closed {
            if !is_off(Mechanism::RatesSettle) {
                self.rates.settle();
            }
            self.signs().outage_since = None;
        }
        let since = *self.signs().outage_since.get_or_insert(now);
        let interval = open_interval(
            OpenBounds {
                min: config.min_open(),
                max: config.max_open(),
            },
            &History {
                outage: now.saturating_since(since),
                usual_rate: self.rates.outcomes(),
                retry_after: if is_off(Mechanism::RetryAfter) {
                    Duration::ZERO
                } else {
                    findings.sample.retry_after
                },
            },
            findings.uniform,
        );
        self.signs().interval = interval;
        // The time for which a probe hung is already part of the wait.
        let until = (probing_since.unwrap_or(now) + interval).max(now);
        BreakerState::Open {
            until,
            probes: findings
                .probes
                .saturating_add(u64::from(self.rates.probes())),
        }
    }
}
