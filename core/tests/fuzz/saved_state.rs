//! What is found where learned state was saved: by a leader at any time, read at any time, and perhaps damaged.

use bolero::TypeGenerator;
use tidegate_core::units::{PerSecond, Requests, Seconds, Share};
use tidegate_core::{
    BreakerCheckpoint, BreakerState, CeilingCheckpoint, Clocks, Directive, Directives, Instant,
    Learned, LimitCheckpoint, Margin, Outage, RatesCheckpoint, SavedState, UpstreamKey,
};

use crate::shared_data::{SECOND, check_engine, engine};

const PLUGIN: &str = "tidegate";

#[derive(Debug, TypeGenerator)]
struct Found {
    learned: Upstream,
    learned_at: u64,
    /// The clocks of the process that saved it.
    monotonic: u64,
    wall: u64,
    /// How much later it is read, nanoseconds, or how much earlier.
    later: u64,
    is_before: bool,
    /// Whether all times are near each other.
    is_near: bool,
    /// What is written over it, and where; and how much of its end is gone.
    damage: Option<(u16, u8)>,
    #[generator(0..4_u8)]
    cut: u8,
}

#[derive(Debug, TypeGenerator)]
struct Upstream {
    breaker: Breaker,
    outage: Option<(u64, u32)>,
    epoch: u32,
    limit: u32,
    reserve: u32,
    unended: u32,
    answered_up_to: u64,
    workers: u16,
    hold: Option<u16>,
    ceiling: Option<u16>,
    failures: u8,
    outcomes: u16,
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
enum Breaker {
    Closed,
    Open { until: u64, probes: u64 },
    Ramp { limit: u32 },
}

impl Upstream {
    fn directive(&self, time: impl Fn(u64) -> Instant) -> Directive {
        let limit = self.limit.max(1);
        let requests = |number: u16| Requests::new(number.into());
        Directive {
            grants: None,
            upstream: UpstreamKey::hash("web", None),
            epoch: self.epoch,
            breaker: match self.breaker {
                Breaker::Closed => BreakerState::Closed,
                Breaker::Open { until, probes } => BreakerState::Open {
                    until: time(until),
                    probes,
                },
                Breaker::Ramp { limit } => BreakerState::Ramp {
                    limit: limit.max(1),
                },
            },
            limit,
            reserve: self.reserve.max(limit),
            margin: Margin::NONE,
            workers: self.workers.max(1),
            unended: self.unended,
            answered_up_to: time(self.answered_up_to),
            learned: Learned {
                limit: LimitCheckpoint {
                    hold: self.hold.map(requests),
                    ceiling: self.ceiling.map(|limit| CeilingCheckpoint {
                        limit: requests(limit),
                        is_proven: true,
                    }),
                    ..LimitCheckpoint::default()
                },
                breaker: BreakerCheckpoint {
                    rates: RatesCheckpoint {
                        failures: Share::new(f64::from(self.failures) / 255.0),
                        outcomes: PerSecond::new(self.outcomes.into()),
                    },
                    latency: Seconds::new(f64::from(self.failures)),
                    outage: self.outage.map(|(since, open_interval_ms)| Outage {
                        since: time(since),
                        open_interval_ms,
                    }),
                },
            },
        }
    }
}

#[test]
fn what_is_restored_is_plausible_and_no_breaker_is_open_whose_interval_is_over() {
    bolero::check!(name = "saved_state")
        .with_type::<Found>()
        .with_iterations(20_000)
        .for_each(check);
}

fn check(found: &Found) {
    let time = |nanos: u64| {
        let near = 1_000 * SECOND + nanos % (100 * SECOND);
        Instant::from_nanos(if found.is_near { near } else { nanos })
    };
    let directive = found.learned.directive(time);
    let learned = Directives::new(1, time(found.learned_at), [directive]);
    let clocks = Clocks {
        monotonic: time(found.monotonic),
        wall: time(found.wall),
    };
    let mut bytes = SavedState::encode(PLUGIN, clocks, &learned.clone().encode());
    let whole = bytes.clone();
    if let Some((at, value)) = found.damage {
        let place = usize::from(at) % bytes.len();
        bytes[place] = value;
    }
    bytes.truncate(bytes.len() - usize::from(found.cut));
    let Ok(saved) = SavedState::decode(&bytes) else {
        assert_ne!(bytes, whole, "it is as it was written");
        return;
    };
    assert_eq!((&saved.learned, saved.clocks), (&learned, clocks));
    let wall = match (found.is_near, found.is_before) {
        (true, _) => clocks.wall + std::time::Duration::from_nanos(found.later % (100 * SECOND)),
        (false, false) => clocks.wall + std::time::Duration::from_nanos(found.later),
        (false, true) => clocks.wall - std::time::Duration::from_nanos(found.later),
    };
    check_restored(&saved, wall);
}

fn check_restored(saved: &SavedState, wall: Instant) {
    let now = Clocks {
        monotonic: Instant::from_nanos(2 * SECOND),
        wall,
    };
    assert!(saved.restore("another", now).is_err());
    let Ok(directives) = saved.restore(PLUGIN, now) else {
        return;
    };
    assert_eq!(
        Directives::decode(directives.clone().encode()).as_ref(),
        Ok(&directives),
        "plausible"
    );
    assert_eq!(directives.entries().count(), 1);
    for entry in directives.entries() {
        match entry.breaker {
            BreakerState::Closed => assert_eq!(entry.learned.breaker.outage, None),
            BreakerState::Open { until, probes } => {
                assert!(until > now.monotonic && (1..=5).contains(&probes));
            }
            BreakerState::Ramp { .. } => panic!("a ramp ends with its process"),
        }
        assert_eq!((entry.unended, entry.workers), (0, 1));
    }
    let (mut engine, web) = engine();
    engine.adopt(&directives, now.monotonic);
    check_engine(&mut engine, web, now.monotonic);
}
