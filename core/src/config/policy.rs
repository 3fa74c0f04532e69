//! How one upstream is protected.
//!
//! The top level of the document is the policy of every upstream; a rule under
//! `upstreams` starts from it and replaces what it sets. That is resolved here,
//! while reading: a [`Policy`] is complete, nobody has to look up a parent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::duration::Readable;
use super::reader::Section;
use super::schema::{self, Choice};
use crate::ratio::Ratio;

/// Everything that one upstream's protection depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    slo: Slo,
    mode: Mode,
    enforcement: Ratio,
    stance: Stance,
    limit: LimitConfig,
    breaker: BreakerConfig,
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

    /// Share of the decisions to shed that are carried out, `0..=1`; the
    /// others are counted as in [`Mode::Observe`].
    #[must_use]
    pub const fn enforcement(&self) -> Ratio {
        self.enforcement
    }

    /// Stability or throughput first.
    #[must_use]
    pub const fn stance(&self) -> Stance {
        self.stance
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

    /// What a shed request is answered.
    #[must_use]
    pub const fn shed(&self) -> &ShedConfig {
        &self.shed
    }

    pub(super) fn read(s: &mut Section<'_>, parent: Option<&Self>) -> Self {
        Self {
            slo: s.object("slo", |s| Slo::read(s, parent.map(Self::slo))),
            mode: read_choice(s, schema::MODE, parent.map(Self::mode)),
            enforcement: s.fraction(schema::ENFORCEMENT, parent.map(Self::enforcement)),
            stance: read_choice(s, schema::STANCE, parent.map(Self::stance)),
            limit: s.object("limit", |s| LimitConfig::read(s, parent.map(Self::limit))),
            breaker: s.object("breaker", |s| {
                BreakerConfig::read(s, parent.map(Self::breaker))
            }),
            shed: s.object("shed", |s| ShedConfig::read(s, parent.map(Self::shed))),
        }
    }
}

fn read_choice<T: Choice>(
    s: &mut Section<'_>,
    (key, default): (&'static str, T),
    inherited: Option<T>,
) -> T {
    s.choice(key).or(inherited).unwrap_or(default)
}

/// The service level objective: what a good answer is and how many must be good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slo {
    latency_quantile: Ratio,
    latency_target: Duration,
    success_rate: Ratio,
}

impl Slo {
    /// The share of requests that must be answered within
    /// [`Self::latency_target`], `0.5..=0.999`.
    #[must_use]
    pub const fn latency_quantile(&self) -> Ratio {
        self.latency_quantile
    }

    /// Time to the response headers that the quantile must keep, 1 ms to 10 min.
    #[must_use]
    pub const fn latency_target(&self) -> Duration {
        self.latency_target
    }

    /// The share of requests that must not fail, `0.5..=0.99999`.
    #[must_use]
    pub const fn success_rate(&self) -> Ratio {
        self.success_rate
    }

    fn read(s: &mut Section<'_>, parent: Option<&Self>) -> Self {
        let (latency_quantile, latency_target) = s.object("latency", |s| {
            (
                s.fraction(schema::LATENCY_QUANTILE, parent.map(Self::latency_quantile)),
                s.span(schema::LATENCY_TARGET, parent.map(Self::latency_target)),
            )
        });
        Self {
            latency_quantile,
            latency_target,
            success_rate: s.fraction(schema::SUCCESS_RATE, parent.map(Self::success_rate)),
        }
    }
}

/// Bounds of the concurrency limit, in requests in flight per endpoint:
/// `1 <= min <= initial <= max <= 100_000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitConfig {
    min: u32,
    max: u32,
    initial: u32,
}

impl LimitConfig {
    /// Least, at least 1.
    #[must_use]
    pub const fn min(&self) -> u32 {
        self.min
    }

    /// Greatest, at most 100,000.
    #[must_use]
    pub const fn max(&self) -> u32 {
        self.max
    }

    /// Where learning starts, within [`Self::min`] and [`Self::max`].
    #[must_use]
    pub const fn initial(&self) -> u32 {
        self.initial
    }

    fn read(s: &mut Section<'_>, parent: Option<&Self>) -> Self {
        let errors = s.error_count();
        let min = s.count(schema::LIMIT_MIN, parent.map(Self::min));
        let max = s.count(schema::LIMIT_MAX, parent.map(Self::max));
        let initial = s.count(schema::LIMIT_INITIAL, parent.map(Self::initial));
        // A bound that is itself wrong, or was never written here, is no
        // ground for a second complaint.
        let is_comparable = errors == s.error_count();
        if is_comparable && min > max {
            if s.has("max") {
                s.refuse("max", format!("at least limit.min ({min})"));
            } else if s.has("min") {
                s.refuse("min", format!("at most limit.max ({max})"));
            }
        } else if is_comparable && s.has("initial") && !(min..=max).contains(&initial) {
            let expected = format!("a number from limit.min to limit.max ({min} to {max})");
            s.refuse("initial", expected);
        }
        Self {
            min,
            max,
            // An initial value that was not written here follows the bounds.
            initial: initial.min(max).max(min),
        }
    }
}

/// When the breaker opens and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    enabled: bool,
    trip_ratio: Ratio,
    min_open: Duration,
    max_open: Duration,
}

impl BreakerConfig {
    /// Whether there is a breaker at all; the concurrency limit stays.
    #[must_use]
    pub const fn enabled(&self) -> bool {
        self.enabled
    }

    /// Share of failures from which requests are better refused than sent,
    /// `0.05..=1`.
    #[must_use]
    pub const fn trip_ratio(&self) -> Ratio {
        self.trip_ratio
    }

    /// Shortest open interval, 50 ms to 10 min.
    #[must_use]
    pub const fn min_open(&self) -> Duration {
        self.min_open
    }

    /// Longest open interval, from [`Self::min_open`] to 1 h.
    #[must_use]
    pub const fn max_open(&self) -> Duration {
        self.max_open
    }

    fn read(s: &mut Section<'_>, parent: Option<&Self>) -> Self {
        let errors = s.error_count();
        let read = Self {
            enabled: s.flag(schema::BREAKER_ENABLED, parent.map(Self::enabled)),
            trip_ratio: s.fraction(schema::TRIP_RATIO, parent.map(Self::trip_ratio)),
            min_open: s.span(schema::MIN_OPEN, parent.map(Self::min_open)),
            max_open: s.span(schema::MAX_OPEN, parent.map(Self::max_open)),
        };
        if errors == s.error_count() && read.min_open > read.max_open {
            if s.has("maxOpen") {
                let expected = format!("at least breaker.minOpen ({})", Readable(read.min_open));
                s.refuse("maxOpen", expected);
            } else if s.has("minOpen") {
                let expected = format!("at most breaker.maxOpen ({})", Readable(read.max_open));
                s.refuse("minOpen", expected);
            }
        }
        read
    }
}

/// What a shed request is answered, and how many may be shed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShedConfig {
    reply: Reply,
    status: u16,
    /// Shared, because a thousand rules may inherit it.
    body: Arc<str>,
    max_share: Ratio,
}

impl ShedConfig {
    /// Whether the caller should try another endpoint.
    #[must_use]
    pub const fn reply(&self) -> Reply {
        self.reply
    }

    /// HTTP status of the reply, `400..=599`.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Body of the reply, at most 4096 bytes.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Greatest share of an upstream's requests that may be shed, `0..=1`.
    #[must_use]
    pub const fn max_share(&self) -> Ratio {
        self.max_share
    }

    fn read(s: &mut Section<'_>, parent: Option<&Self>) -> Self {
        let reply = read_choice(s, schema::SHED_REPLY, parent.map(Self::reply));
        let status = s.count(schema::SHED_STATUS, parent.map(|shed| shed.status.into()));
        Self {
            reply,
            // The range of the schema ends at 599.
            status: u16::try_from(status).unwrap_or(u16::MAX),
            body: s
                .text("body", &schema::BODY_EXPECTED, |text| {
                    (text.len() <= schema::MAX_BODY_BYTES).then(|| Arc::from(text))
                })
                .or_else(|| parent.map(|shed| Arc::clone(&shed.body)))
                .unwrap_or_default(),
            max_share: s.fraction(schema::MAX_SHARE, parent.map(Self::max_share)),
        }
    }
}

/// Whether decisions are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Count what would have been shed, admit everything.
    Observe,
    /// Shed.
    Enforce,
}

/// What wins when stability and throughput are at odds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stance {
    /// Stability: the smallest limit that carries the throughput, early trips.
    FailFast,
    /// Throughput: up to the edge of the objective's latency.
    Throughput,
}

/// What the caller is told to do about a shed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    /// The whole service is overloaded: do not retry.
    Stop,
    /// This endpoint is: another may answer.
    RetryElsewhere,
}

impl Mode {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Observe, Self::Enforce];

    /// As written in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Enforce => "enforce",
        }
    }
}

impl Choice for Mode {
    const ALL: &'static [Self] = &Self::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

impl Stance {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::FailFast, Self::Throughput];

    /// As written in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FailFast => "failFast",
            Self::Throughput => "throughput",
        }
    }
}

impl Choice for Stance {
    const ALL: &'static [Self] = &Self::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

impl Reply {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Stop, Self::RetryElsewhere];

    /// As written in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::RetryElsewhere => "retryElsewhere",
        }
    }
}

impl Choice for Reply {
    const ALL: &'static [Self] = &Self::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Stance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
