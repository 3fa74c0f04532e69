//! How one upstream is protected.
//!
//! The top level of the document is the policy of every upstream. A rule under
//! `upstreams` starts from it and replaces the values that the rule sets. This is
//! resolved while reading: a [`Policy`] is complete, and has no parent.

use std::time::Duration;

use super::choices::{KeyBy, Mode, Stance, Until};
use super::guards::{BreakerConfig, LimitConfig};
use super::overload::OverloadConfig;
use super::reader::Section;
use super::schema;
use super::shed::ShedConfig;
use crate::ratio::Ratio;

/// Everything that one upstream's protection depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    slo: Slo,
    mode: Mode,
    enforcement: Ratio,
    stance: Stance,
    key_by: KeyBy,
    limit: LimitConfig,
    breaker: BreakerConfig,
    overload: OverloadConfig,
    shed: ShedConfig,
}

impl Policy {
    /// The service level objective.
    #[must_use]
    pub const fn slo(&self) -> &Slo {
        &self.slo
    }

    /// Whether to act or only to count.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Share of the decisions to shed that are carried out, `0..=1`. The others
    /// are only counted, as in [`Mode::Observe`].
    #[must_use]
    pub const fn enforcement(&self) -> Ratio {
        self.enforcement
    }

    /// What matters more: stability or throughput.
    #[must_use]
    pub const fn stance(&self) -> Stance {
        self.stance
    }

    /// What shares one state.
    #[must_use]
    pub const fn key_by(&self) -> KeyBy {
        self.key_by
    }

    /// Bounds of the concurrency limit.
    #[must_use]
    pub const fn limit(&self) -> &LimitConfig {
        &self.limit
    }

    /// When the breaker opens and for how long.
    #[must_use]
    pub const fn breaker(&self) -> &BreakerConfig {
        &self.breaker
    }

    /// Which answers say "too busy".
    #[must_use]
    pub const fn overload(&self) -> &OverloadConfig {
        &self.overload
    }

    /// The reply to shed requests, and how many may be shed.
    #[must_use]
    pub const fn shed(&self) -> &ShedConfig {
        &self.shed
    }

    pub(super) fn read(s: &mut Section<'_>, parent: Option<&Self>) -> Self {
        Self {
            slo: s.object("slo", |s| Slo::read(s, parent.map(Self::slo))),
            mode: s.choice_or(schema::MODE, parent.map(Self::mode)),
            enforcement: s.fraction(schema::ENFORCEMENT, parent.map(Self::enforcement)),
            stance: s.choice_or(schema::STANCE, parent.map(Self::stance)),
            key_by: s.choice_or(schema::KEY_BY, parent.map(Self::key_by)),
            limit: s.object("limit", |s| LimitConfig::read(s, parent.map(Self::limit))),
            breaker: s.object("breaker", |s| {
                BreakerConfig::read(s, parent.map(Self::breaker))
            }),
            overload: s.object("overload", |s| {
                OverloadConfig::read(s, parent.map(Self::overload))
            }),
            shed: s.object("shed", |s| ShedConfig::read(s, parent.map(Self::shed))),
        }
    }
}

/// The service level objective: what a good answer is and how many must be good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slo {
    latency_quantile: Ratio,
    latency_target: Duration,
    until: Until,
    success_rate: Ratio,
}

impl Slo {
    /// The share of requests that must be answered within
    /// [`Self::latency_target`], `0.5..=0.999`.
    #[must_use]
    pub const fn latency_quantile(&self) -> Ratio {
        self.latency_quantile
    }

    /// The latency that the quantile must keep, 1 ms to 10 min; [`Self::until`] says what it is measured to.
    #[must_use]
    pub const fn latency_target(&self) -> Duration {
        self.latency_target
    }

    /// The moment of the response at which the latency ends. The latency begins when the upstream has the whole request.
    #[must_use]
    pub const fn until(&self) -> Until {
        self.until
    }

    /// The share of requests that must not fail, `0.5..=0.99999`.
    #[must_use]
    pub const fn success_rate(&self) -> Ratio {
        self.success_rate
    }

    pub(super) fn read(s: &mut Section<'_>, parent: Option<&Self>) -> Self {
        let (latency_quantile, latency_target, until) = s.object("latency", |s| {
            (
                s.fraction(schema::LATENCY_QUANTILE, parent.map(Self::latency_quantile)),
                s.span(schema::LATENCY_TARGET, parent.map(Self::latency_target)),
                s.choice_or(schema::LATENCY_UNTIL, parent.map(Self::until)),
            )
        });
        Self {
            latency_quantile,
            latency_target,
            until,
            success_rate: s.fraction(schema::SUCCESS_RATE, parent.map(Self::success_rate)),
        }
    }
}
