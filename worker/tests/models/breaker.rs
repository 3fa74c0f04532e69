//! The breaker of one upstream: any order of what an upstream and its callers can do in a tenth of a second. From every
//! state that is not closed there is a way to closed, and a bounded one, when the upstream answers well again.
//!
//! The engine is core's own. It is played again from its birth for every state. Two states are one when what shows of them
//! is the same and their last events are: timers that do not show were set by those.

use std::time::Duration;

use tidegate_core::config::Config;
use tidegate_core::{
    BreakerPhase, Counter, Counters, Decision, Engine, Failure, GivenRequest, Instant, Outcome,
    Permit, UpstreamId,
};

use crate::explore::Model;
use crate::vm::hash_of;

const MILLI: u64 = 1_000_000;
/// Requests in a tick, and the time between them.
const REQUESTS: u64 = 4;
const GAP: u64 = 25 * MILLI;
const ANSWER: Duration = Duration::from_millis(10);
const CONFIG: &str = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"breaker":{"minOpen":"200ms","maxOpen":"1s"}}"#;

/// A tick's worth of what can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Tenth {
    /// Requests come, and are answered well.
    Good,
    /// They fail at once.
    Fails,
    /// They fail at the end of the tick.
    TimesOut,
    /// They are answered that it is too much.
    Overloaded,
    /// They are answered with an error of the caller's own.
    Refused,
    /// Their callers leave before an answer.
    Leave,
    /// They are not answered.
    Hangs,
    /// No request comes.
    Quiet,
    /// No request comes, and all that hung fail.
    HungFail,
    /// No request comes, and the callers of all that hung leave.
    HungLeave,
}

pub(crate) const TENTHS: [Tenth; 10] = [
    Tenth::Good,
    Tenth::Fails,
    Tenth::TimesOut,
    Tenth::Overloaded,
    Tenth::Refused,
    Tenth::Leave,
    Tenth::Hangs,
    Tenth::Quiet,
    Tenth::HungFail,
    Tenth::HungLeave,
];

/// The breaker after some events.
pub(crate) struct Breaker {
    /// What came before.
    pub(crate) before: Vec<Tenth>,
    /// Most events then.
    pub(crate) events: usize,
    /// Ticks of good answers after which it must be closed.
    pub(crate) bound: usize,
    /// On purpose: probes are granted and lost.
    pub(crate) loses_probes: bool,
    /// The most ticks that it took.
    pub(crate) longest: std::cell::Cell<usize>,
    /// States in which it was not closed.
    pub(crate) opened: std::cell::Cell<usize>,
}

/// Counts for the proxy.
#[derive(Default)]
struct Shared {
    in_flight: u64,
    probes: u64,
}

impl Counters for Shared {
    fn raise(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        *self.count(counter) += 1;
        self.value(upstream, counter)
    }

    fn lower(&mut self, _: UpstreamId, counter: Counter, by: u64) {
        *self.count(counter) -= by;
    }

    fn value(&mut self, _: UpstreamId, counter: Counter) -> Option<u64> {
        Some(*self.count(counter))
    }
}

impl Shared {
    const fn count(&mut self, counter: Counter) -> &mut u64 {
        match counter {
            Counter::InFlight => &mut self.in_flight,
            Counter::Grants => &mut self.probes,
        }
    }
}

/// The engine at work.
struct Play {
    engine: Engine,
    upstream: UpstreamId,
    counters: Shared,
    now: u64,
    hung: Vec<Permit>,
    loses_probes: bool,
}

impl Play {
    fn of(tenths: &[Tenth], loses_probes: bool) -> Self {
        let config = Config::from_json(CONFIG.as_bytes()).unwrap();
        let mut engine = Engine::new(config, Instant::ZERO, 1);
        let upstream = engine.upstream("web", None, Instant::ZERO);
        let mut play = Self {
            engine,
            upstream,
            counters: Shared::default(),
            now: 0,
            hung: Vec::new(),
            loses_probes,
        };
        tenths.iter().for_each(|tenth| play.pass(*tenth));
        play
    }

    fn pass(&mut self, tenth: Tenth) {
        let begin = self.now;
        let mut late = Vec::new();
        let is_quiet = matches!(tenth, Tenth::Quiet | Tenth::HungFail | Tenth::HungLeave);
        for number in (0..REQUESTS).filter(|_| !is_quiet) {
            let now = Instant::from_nanos(begin + GAP * number);
            let mut known = GivenRequest::default();
            let decision = self
                .engine
                .admit(self.upstream, &mut known, &mut self.counters, now);
            let Decision::Admit(permit) = decision else {
                continue;
            };
            let is_probe = self.phase() != BreakerPhase::Closed && self.loses_probes;
            match tenth {
                Tenth::Hangs => self.hung.push(permit),
                Tenth::TimesOut => late.push(permit),
                _ if is_probe => self.hung.push(permit),
                _ => self.end(permit, outcome_of(tenth), now + ANSWER),
            }
        }
        let end = Instant::from_nanos(begin + 99 * MILLI);
        for permit in late {
            self.end(permit, Outcome::Failure(Failure::Timeout), end);
        }
        if matches!(tenth, Tenth::HungFail | Tenth::HungLeave) {
            for permit in std::mem::take(&mut self.hung) {
                self.end(permit, outcome_of(tenth), end);
            }
        }
        self.now = begin + 100 * MILLI;
        let now = Instant::from_nanos(self.now);
        self.engine.tick(&mut self.counters, now);
    }

    fn end(&mut self, permit: Permit, outcome: Outcome, now: Instant) {
        self.engine
            .complete(permit, outcome, &mut self.counters, now);
    }

    fn phase(&self) -> BreakerPhase {
        let now = Instant::from_nanos(self.now);
        let snapshot = self.engine.snapshot(now);
        snapshot.upstreams[self.upstream.index()].breaker
    }
}

const fn outcome_of(tenth: Tenth) -> Outcome {
    match tenth {
        Tenth::Good | Tenth::Quiet | Tenth::Hangs => Outcome::Success,
        Tenth::Fails | Tenth::HungFail => Outcome::Failure(Failure::Connection),
        Tenth::TimesOut => Outcome::Failure(Failure::Timeout),
        Tenth::Overloaded => Outcome::Overload { retry_after: None },
        Tenth::Refused => Outcome::Ignored,
        Tenth::Leave | Tenth::HungLeave => Outcome::Cancelled,
    }
}

/// What happened, and what shows of it.
pub(crate) struct Moment {
    tenths: Vec<Tenth>,
    shows: u64,
}

/// Events that tell states apart which look the same.
const LAST: usize = 3;

impl Breaker {
    fn moment(&self, tenths: Vec<Tenth>) -> Moment {
        let play = Play::of(&tenths, self.loses_probes);
        let now = Instant::from_nanos(play.now);
        let snapshot = play.engine.snapshot(now);
        let upstream = &snapshot.upstreams[play.upstream.index()];
        let outage = upstream.learned.breaker.outage;
        let lasted = now.saturating_since(outage.unwrap_or_default().since);
        let since = tenths
            .iter()
            .rev()
            .take_while(|tenth| **tenth == Tenth::Quiet);
        let shows = (
            (
                upstream.breaker,
                upstream.open_interval,
                upstream.in_flight,
                upstream.open,
            ),
            (upstream.limit, play.hung.len(), play.counters.in_flight),
            (upstream.breaker != BreakerPhase::Closed).then_some(lasted),
            (since.count(), &tenths[tenths.len().saturating_sub(LAST)..]),
        );
        let shows = hash_of(&format!("{shows:?}"));
        Moment { tenths, shows }
    }
}

impl Model for Breaker {
    type State = Moment;
    type Action = Tenth;

    fn first(&self) -> Moment {
        self.moment(self.before.clone())
    }

    fn actions(&self, moment: &Moment) -> Vec<Tenth> {
        let is_over = moment.tenths.len() >= self.before.len() + self.events;
        if is_over { Vec::new() } else { TENTHS.to_vec() }
    }

    fn step(&self, moment: &Moment, tenth: &Tenth) -> Moment {
        let mut tenths = moment.tenths.clone();
        tenths.push(*tenth);
        self.moment(tenths)
    }

    fn key(&self, moment: &Moment) -> u64 {
        hash_of(&(moment.tenths.len(), moment.shows))
    }

    fn check(&self, moment: &Moment) -> Result<(), String> {
        let mut play = Play::of(&moment.tenths, self.loses_probes);
        if play.phase() != BreakerPhase::Closed {
            self.opened.set(self.opened.get() + 1);
        }
        // What hangs keeps hanging.
        for ticks in 0..=self.bound {
            if play.phase() == BreakerPhase::Closed {
                self.longest.set(self.longest.get().max(ticks));
                return Ok(());
            }
            play.pass(Tenth::Good);
        }
        Err(format!(
            "not closed after {} ticks of good answers",
            self.bound
        ))
    }
}
