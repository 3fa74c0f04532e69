//! Protego's admission control: it admits more as long as throughput gains by it.
//!
//! Where requests wait for locks, throughput falls, but neither the CPU nor the queue at the entry shows it. So Protego
//! looks at the marginal gain: how much throughput changed, over how much load changed.
//!
//! Formula: a round waits for 2 x the mean service time, so that the last step shows, and then counts for as long.
//! `gain = relative change of throughput / relative change of load` since the round before. Where the limit was
//! reached, it grows by 1 when load and throughput both rose and the gain is at least 0.25, or both fell and the gain
//! is above 0.25; it shrinks by 1 otherwise. It begins with 40 and never falls below 4. The mean service time is an
//! exponential average with weight 1/8.
//!
//! Source: I. Cho, A. Saeed, S. J. Park, M. Alizadeh and A. Belay, "Protego: Overload Control for Applications with
//! Unpredictable Lock Contention", NSDI 2023, <https://www.usenix.org/conference/nsdi23/presentation/cho-inho>; the
//! authors' `breakwater/src/bw2_server.c` and `bw2_config.h`, branch `protego` of
//! <https://github.com/inhocho89/shenango-protego>: threshold, steps, 10 credits for each of 4 cores, one for each
//! core at least. Rounds there are 200 microseconds, twice the 99th percentile of their round trip; those that follow
//! the service time are in a comment beside it.
//!
//! Edges: Protego sits in the server. There load is what arrives, and throughput what is not aborted on the way for
//! waiting too long (its active synchronization queue management). A proxy cannot abort requests inside an upstream, so
//! arrivals equal answers, and the gain would always be 1. Here load is the mean number in flight, which is
//! what the limit moves, and both changes are relative. Latency stands for the service time. Only successes are
//! throughput. Without pressure it learns nothing, and the limit stays: in Protego, unused credits stay issued.
//! If throughput does not depend on the number admitted, the limit moves by chance, in steps of 1, and only answers that
//! come too late for their callers bring it back.

use std::time::Duration;

use tidegate_core::{Instant, Outcome};

use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made};
use crate::kind::{ContenderKind, Make};
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "protego",
    title: "Marginal throughput gain (Protego)",
    make: Make::Published(make),
};

const INITIAL_LIMIT: u32 = 40;
const MIN_LIMIT: u32 = 4;
/// Least gain for which more is admitted.
const GAIN: f64 = 0.25;
/// Each half of a round, in mean service times.
const HALF_ROUND: u32 = 2;
/// Weight of one answer in the mean service time is one over this.
const MEAN_OVER: u32 = 8;

fn make(scenario: &Scenario, _seed: u64) -> Made {
    let upstreams = scenario.upstreams.iter();
    Ok(Box::new(ProtegoLimiter {
        upstreams: upstreams.map(|_| Protego::new()).collect(),
    }))
}

/// The result of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Round {
    /// Mean number in flight.
    load: f64,
    /// Successes a second.
    throughput: f64,
}

/// What is being counted of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RoundCount {
    from: Instant,
    until: Instant,
    /// Up to when `held` is known.
    at: Instant,
    /// Time in flight of all requests together, s.
    held: f64,
    successes: f64,
    /// Whether the limit was reached.
    is_full: bool,
}

/// The stage of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
enum RoundStage {
    /// No answer has come yet.
    Unknown,
    /// Waits until the last step shows.
    Settle { until: Instant },
    /// Counts requests and time.
    Count(RoundCount),
}

/// The limit of one upstream.
struct Protego {
    limit: u32,
    in_flight: u32,
    service: Duration,
    last: Option<Round>,
    stage: RoundStage,
}

/// Whether to admit more.
fn gains(last: Round, now: Round) -> bool {
    let change = |from: f64, to: f64| (to - from) / from.max(f64::MIN_POSITIVE);
    let load = change(last.load, now.load);
    let throughput = change(last.throughput, now.throughput);
    if load >= 0.0 {
        throughput > 0.0 && throughput >= GAIN * load
    } else {
        throughput < 0.0 && throughput < GAIN * load
    }
}

impl Protego {
    const fn new() -> Self {
        Self {
            limit: INITIAL_LIMIT,
            in_flight: 0,
            service: Duration::ZERO,
            last: None,
            stage: RoundStage::Unknown,
        }
    }

    fn admit(&mut self, in_flight: u32, now: Instant) -> bool {
        self.follow(now);
        self.in_flight = in_flight;
        let is_admitted = in_flight < self.limit;
        self.in_flight += u32::from(is_admitted);
        if let RoundStage::Count(count) = &mut self.stage {
            count.is_full |= self.in_flight >= self.limit;
        }
        is_admitted
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        self.service = if self.stage == RoundStage::Unknown {
            done.latency
        } else {
            self.service - self.service / MEAN_OVER + done.latency / MEAN_OVER
        };
        self.follow(now);
        self.in_flight = done.in_flight.saturating_sub(1);
        if let RoundStage::Count(count) = &mut self.stage
            && done.outcome == Outcome::Success
        {
            count.successes += 1.0;
        }
    }

    /// Brings the round to the present, before what is in flight changes.
    fn follow(&mut self, now: Instant) {
        let half = self.service * HALF_ROUND;
        match &mut self.stage {
            RoundStage::Unknown if self.service > Duration::ZERO => {
                self.stage = RoundStage::Settle { until: now + half };
            }
            RoundStage::Settle { until } if now >= *until => {
                self.stage = RoundStage::Count(RoundCount {
                    from: now,
                    until: now + half,
                    at: now,
                    held: 0.0,
                    successes: 0.0,
                    is_full: self.in_flight >= self.limit,
                });
            }
            RoundStage::Count(count) => {
                count.held +=
                    f64::from(self.in_flight) * now.saturating_since(count.at).as_secs_f64();
                count.at = now;
                if now >= count.until && now > count.from {
                    let count = *count;
                    self.conclude(count, now);
                    self.stage = RoundStage::Settle { until: now + half };
                }
            }
            RoundStage::Unknown | RoundStage::Settle { .. } => {}
        }
    }

    fn conclude(&mut self, count: RoundCount, now: Instant) {
        let length = now.saturating_since(count.from).as_secs_f64();
        let round = Round {
            load: count.held / length,
            throughput: count.successes / length,
        };
        let last = self.last.replace(round);
        if !count.is_full {
            return;
        }
        // The first round has nothing to be compared with.
        if last.is_none_or(|last| gains(last, round)) {
            self.limit = self.limit.saturating_add(1);
        } else {
            self.limit = self.limit.saturating_sub(1).max(MIN_LIMIT);
        }
    }
}

/// One limit for each upstream, by its index.
struct ProtegoLimiter {
    upstreams: Vec<Protego>,
}

impl Contender for ProtegoLimiter {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        let upstream = self.upstreams.get_mut(ask.upstream);
        if upstream.is_none_or(|protego| protego.admit(ask.in_flight, now)) {
            Admission::Admit
        } else {
            Admission::shed("limit")
        }
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        if let Some(protego) = self.upstreams.get_mut(done.upstream) {
            protego.complete(done, now);
        }
    }

    fn view(&self, upstream: usize, _now: Instant) -> ContenderView {
        let limit = self.upstreams.get(upstream).map(|protego| protego.limit);
        ContenderView {
            limit: limit.map(f64::from),
            breaker: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{FAILURE, at, done};
    use super::*;

    fn round(load: f64, throughput: f64) -> Round {
        Round { load, throughput }
    }

    #[test]
    fn more_goes_in_while_throughput_gains_by_it() {
        let last = round(100.0, 1_000.0);
        let cases = [
            (round(110.0, 1_100.0), true, "as much more as was let in"),
            (round(110.0, 1_025.0), true, "a quarter of it"),
            (round(110.0, 1_020.0), false, "less than a quarter"),
            (round(110.0, 900.0), false, "contention"),
            (round(100.0, 1_001.0), true, "more of the same"),
            (round(100.0, 1_000.0), false, "no gain"),
            (round(90.0, 900.0), true, "fewer cost as much: go back"),
            (round(90.0, 990.0), false, "fewer cost little"),
            (round(90.0, 1_050.0), false, "fewer do more: contention"),
        ];
        for (now, expected, why) in cases {
            assert_eq!(gains(last, now), expected, "{why}");
        }
    }

    #[test]
    fn throughput_out_of_nothing_is_a_gain() {
        assert!(gains(round(10.0, 0.0), round(11.0, 5.0)));
        assert!(!gains(round(10.0, 0.0), round(11.0, 0.0)));
    }

    /// Plays a minute under full pressure; `rate` is the answers per millisecond by the number in flight.
    fn play(protego: &mut Protego, outcome: Outcome, rate: impl Fn(f64) -> f64) {
        let mut due = 0.0;
        for now in 1..=60_000 {
            while protego.admit(protego.in_flight, at(now)) {}
            due += rate(f64::from(protego.in_flight));
            while due >= 1.0 {
                due -= 1.0;
                let end = Done {
                    in_flight: protego.in_flight,
                    ..done(outcome, 40)
                };
                protego.complete(&end, at(now));
            }
        }
    }

    #[test]
    fn the_limit_follows_contention_from_both_sides() {
        // 40 ms each, for the first 20; each more costs all of them 2 %.
        let rate = |in_flight: f64| {
            let contended = 1.0 - 0.02 * (in_flight - 20.0).max(0.0);
            in_flight.min(20.0) * contended / 40.0
        };
        for initial in [8, 40] {
            let mut protego = Protego::new();
            protego.limit = initial;
            play(&mut protego, Outcome::Success, rate);
            assert!((17..=23).contains(&protego.limit), "{}", protego.limit);
        }
    }

    #[test]
    fn where_nothing_is_gained_the_limit_sinks() {
        let mut protego = Protego::new();
        play(&mut protego, Outcome::Success, |_| 0.5);
        assert!(protego.limit < 10, "{}", protego.limit);
    }

    #[test]
    fn failures_are_no_throughput() {
        let mut protego = Protego::new();
        play(&mut protego, FAILURE, |in_flight| in_flight);
        assert_eq!(protego.limit, MIN_LIMIT);
    }

    #[test]
    fn without_pressure_the_limit_stays() {
        let mut protego = Protego::new();
        for now in 0..10_000 {
            assert!(protego.admit(3, at(now)));
            protego.complete(&done(Outcome::Success, 40), at(now));
        }
        assert_eq!(protego.limit, INITIAL_LIMIT);
    }
}
