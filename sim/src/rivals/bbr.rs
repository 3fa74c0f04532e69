//! A BBR-like limiter: no more in flight than a gain times the greatest delivery rate times the least latency.
//!
//! Formula: time is cut into buckets of 100 ms. `rate` is the most answers of a finished bucket of the last 10 s, per
//! second; `floor` is the least mean latency of a bucket, kept for 10 s. A request that finds more than
//! `round(2 x rate x floor)` in flight is refused, but never the first two. A floor that has not been seen again for 10 s is
//! out of date: then a request that finds more than 4 in flight is refused, for 200 ms or one floor, whichever is longer.
//! This drains the queue, so that the next buckets show the floor.
//!
//! Source: go-kratos/aegis, `ratelimit/bbr` (buckets, window, the rule), <https://github.com/go-kratos/aegis>, after
//! Sentinel's adaptive protection, <https://sentinelguard.io/en-us/docs/system-adaptive-protection.html>. Both apply
//! the rule with a gain of 1, and only while the CPU of their own machine is busy, which a proxy cannot see of an
//! upstream. Without that a gain of 1 would refuse healthy traffic that comes unevenly, and a standing queue would
//! soon be the floor. BBR's own mechanisms replace the CPU: the gain of 2 and the phase `ProbeRTT`. N. Cardwell
//! and others, "BBR: Congestion-Based Congestion Control", ACM Queue, 2016, and `draft-cardwell-iccrg-bbr-congestion-control`.
//!
//! Edges: failures and callers that went away count as answers, as in the source. If nothing was refused since the floor
//! was seen, this limit causes no queue, and nothing is drained.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_core::Instant;

use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made};
use crate::kind::{ContenderKind, Make};
use crate::number;
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "bbr",
    title: "BBR-like (Kratos and Sentinel without their CPU)",
    make: Make::Published(make),
};

const BUCKET: Duration = Duration::from_millis(100);
const BUCKETS_A_SECOND: f64 = 10.0;
/// How long a rate and a floor hold.
const WINDOW: Duration = Duration::from_secs(10);
/// The bound, as a multiple of what just fills the upstream.
const GAIN: f64 = 2.0;
/// Greatest bound while the queue is drained, in requests ...
const DRAINED: f64 = 4.0;
/// ... for at least this long.
const DRAIN: Duration = Duration::from_millis(200);

fn make(scenario: &Scenario, _seed: u64) -> Made {
    let upstreams = scenario.upstreams.iter();
    Ok(Box::new(BbrLimiter {
        upstreams: upstreams.map(|_| Bbr::new()).collect(),
    }))
}

/// What was answered in a stretch of time.
#[derive(Debug, Clone, Copy)]
struct BbrBucket {
    from: Instant,
    answers: u32,
    latency: Duration,
}

impl BbrBucket {
    const fn new(from: Instant) -> Self {
        Self {
            from,
            answers: 0,
            latency: Duration::ZERO,
        }
    }
}

/// The least latency, and when it was last seen.
#[derive(Debug, Clone, Copy)]
struct BbrFloor {
    latency: Duration,
    seen: Instant,
}

/// Whether the floor is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BbrPhase {
    /// It is; `has_refused` is whether a request was refused since the floor was seen.
    Cruise { has_refused: bool },
    /// The queue is drained to see the floor again.
    Drain { until: Instant },
}

/// The limit of one upstream.
struct Bbr {
    current: BbrBucket,
    finished: VecDeque<BbrBucket>,
    floor: Option<BbrFloor>,
    phase: BbrPhase,
    /// Nothing is known before the first bucket has ended.
    bound: Option<f64>,
}

impl Bbr {
    const fn new() -> Self {
        Self {
            current: BbrBucket::new(Instant::ZERO),
            finished: VecDeque::new(),
            floor: None,
            phase: BbrPhase::Cruise { has_refused: false },
            bound: None,
        }
    }

    /// A request that finds more than this in flight is refused.
    fn bound(&self) -> Option<f64> {
        let drained = matches!(self.phase, BbrPhase::Drain { .. });
        let most = self.bound?;
        Some(if drained { most.min(DRAINED) } else { most })
    }

    fn admit(&mut self, in_flight: u32, now: Instant) -> bool {
        self.follow(now);
        let in_flight = f64::from(in_flight);
        let is_over = in_flight > 1.0 && self.bound().is_some_and(|bound| in_flight > bound);
        if let (true, BbrPhase::Cruise { has_refused }) = (is_over, &mut self.phase) {
            *has_refused = true;
        }
        !is_over
    }

    fn complete(&mut self, latency: Duration, now: Instant) {
        self.follow(now);
        self.current.answers += 1;
        self.current.latency += latency;
    }

    fn follow(&mut self, now: Instant) {
        if now.saturating_since(self.current.from) >= BUCKET {
            self.finish(now);
        }
        if let BbrPhase::Drain { until } = self.phase
            && now >= until
        {
            self.phase = BbrPhase::Cruise { has_refused: false };
            if let Some(floor) = &mut self.floor {
                floor.seen = now;
            }
        }
    }

    /// Ends the bucket.
    fn finish(&mut self, now: Instant) {
        let bucket = std::mem::replace(&mut self.current, BbrBucket::new(now));
        let is_old = |old: &BbrBucket| now.saturating_since(old.from) >= WINDOW;
        while self.finished.front().is_some_and(is_old) {
            self.finished.pop_front();
        }
        if bucket.answers > 0 {
            self.finished.push_back(bucket);
            self.sink(bucket.latency / bucket.answers, now);
        }
        let most = self.finished.iter().map(|bucket| bucket.answers).max();
        self.bound = most.zip(self.floor).map(|(most, floor)| {
            let rate = f64::from(most) * BUCKETS_A_SECOND;
            (GAIN * rate * floor.latency.as_secs_f64()).round()
        });
    }

    /// Makes a bucket's mean latency the floor if it is lower, or if the floor is out of date.
    fn sink(&mut self, latency: Duration, now: Instant) {
        let is_old = |floor: BbrFloor| now.saturating_since(floor.seen) >= WINDOW;
        let has_expired = self.floor.is_some_and(is_old);
        if self.floor.is_some_and(|floor| latency > floor.latency) && !has_expired {
            return;
        }
        let has_refused = self.phase == BbrPhase::Cruise { has_refused: true };
        self.floor = Some(BbrFloor { latency, seen: now });
        if has_expired && has_refused {
            let until = now + DRAIN.max(latency);
            self.phase = BbrPhase::Drain { until };
        } else if has_refused {
            self.phase = BbrPhase::Cruise { has_refused: false };
        }
    }
}

/// One limit for each upstream, by its index.
struct BbrLimiter {
    upstreams: Vec<Bbr>,
}

impl Contender for BbrLimiter {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        let upstream = self.upstreams.get_mut(ask.upstream);
        if upstream.is_none_or(|bbr| bbr.admit(ask.in_flight, now)) {
            Admission::Admit
        } else {
            Admission::shed("limit")
        }
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        if let Some(bbr) = self.upstreams.get_mut(done.upstream) {
            bbr.complete(done.latency, now);
        }
    }

    fn view(&self, upstream: usize, _now: Instant) -> ContenderView {
        let bound = self.upstreams.get(upstream).and_then(Bbr::bound);
        ContenderView {
            // A request that finds exactly the bound in flight is still admitted.
            limit: bound.map(|bound| number::float_len(number::floor(bound) + 1).max(2.0)),
            breaker: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::at;
    use super::*;

    /// Completes `answers` requests of one latency in the bucket that begins at `from_ms`.
    fn bucket(bbr: &mut Bbr, from_ms: u64, answers: u32, latency_ms: u64) {
        for _ in 0..answers {
            bbr.complete(Duration::from_millis(latency_ms), at(from_ms));
        }
    }

    /// A second of 10 answers of 40 ms in each bucket: 100 a second.
    fn known() -> Bbr {
        let mut bbr = Bbr::new();
        for index in 0..10 {
            bucket(&mut bbr, index * 100, 10, 40);
        }
        bbr.follow(at(1_000));
        bbr
    }

    #[test]
    fn nothing_is_refused_before_anything_is_known() {
        let mut bbr = Bbr::new();
        assert!(bbr.admit(10_000, at(0)));
    }

    #[test]
    fn twice_the_rate_times_the_floor_may_be_in_flight() {
        let mut bbr = known();
        // 2 x 100 a second x 40 ms = 8.
        assert!(bbr.admit(8, at(1_000)));
        assert!(!bbr.admit(9, at(1_000)));
        // The best bucket counts for the rate, and the lowest mean for the floor.
        bucket(&mut bbr, 1_000, 20, 80);
        bbr.follow(at(1_100));
        assert_eq!(bbr.bound(), Some(16.0));
    }

    #[test]
    fn the_first_two_always_go() {
        let mut bbr = Bbr::new();
        bucket(&mut bbr, 0, 1, 1);
        bbr.follow(at(100));
        assert_eq!(bbr.bound(), Some(0.0));
        assert!(bbr.admit(1, at(100)));
        assert!(!bbr.admit(2, at(100)));
    }

    #[test]
    fn a_rate_is_forgotten_after_ten_seconds() {
        let mut bbr = known();
        bucket(&mut bbr, 10_950, 5, 40);
        bbr.follow(at(11_050));
        // 2 x 50 a second x 40 ms.
        assert_eq!(bbr.bound(), Some(4.0));
    }

    #[test]
    fn a_floor_out_of_date_is_looked_for_with_four_in_flight_where_something_was_refused() {
        let with = |has_refused: bool| {
            let mut bbr = known();
            if has_refused {
                assert!(!bbr.admit(100, at(1_000)));
            }
            for index in 10..120 {
                bucket(&mut bbr, index * 100, 10, 80);
            }
            bbr
        };
        // The floor of 40 ms was last seen at 1.0 s; the bucket that ends at 11.0 s finds it out of date.
        assert_eq!(with(false).bound(), Some(16.0));
        let mut bbr = with(true);
        assert_eq!(
            bbr.bound(),
            Some(16.0),
            "the drain of 200 ms has ended by 11.9 s"
        );
        let mut draining = known();
        assert!(!draining.admit(100, at(1_000)));
        for index in 10..111 {
            bucket(&mut draining, index * 100, 10, 80);
        }
        assert_eq!(draining.bound(), Some(4.0));
        assert!(!draining.admit(5, at(11_050)));
        bucket(&mut bbr, 12_000, 10, 40);
        bbr.follow(at(12_100));
        assert_eq!(bbr.bound(), Some(8.0), "what the drain shows is the floor");
    }
}
