//! What is found where learned state was saved.

use std::sync::LazyLock;

use bolero::TypeGenerator;
use tidegate_core::{BreakerState, Clocks, Directives, Instant, SavedState};

use crate::shared_data::{Payload, SECOND, check_engine, engine};

#[derive(Debug, TypeGenerator)]
struct Found {
    learned: Payload,
    /// Whether it was saved as it is.
    is_saved: bool,
    /// The clocks of the process that saved it, and the wall clock of the one that reads.
    saved_at: (u64, u64),
    wall: u64,
    /// Whether the two are near each other.
    is_near: bool,
}

static PLUGIN: &str = "tidegate";
/// What a file begins with, in front of the envelope.
static MARK: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let zero = Instant::ZERO;
    let clocks = Clocks {
        monotonic: zero,
        wall: zero,
    };
    let bytes = SavedState::encode(PLUGIN, clocks, &[]);
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    bytes[..=end].to_vec()
});

#[test]
fn what_is_restored_is_plausible_and_no_breaker_is_open_whose_interval_is_over() {
    bolero::check!(name = "saved_state")
        .with_type::<Found>()
        .with_iterations(2_000)
        .for_each(|found: &Found| {
            let learned = found.learned.bytes();
            let (monotonic, wall) = found.saved_at;
            let clocks = Clocks {
                monotonic: Instant::from_nanos(monotonic),
                wall: Instant::from_nanos(wall),
            };
            let bytes = if found.is_saved {
                SavedState::encode(PLUGIN, clocks, &learned)
            } else {
                [MARK.as_slice(), &learned].concat()
            };
            let Ok(saved) = SavedState::decode(&bytes) else {
                assert!(!found.is_saved || Directives::decode(learned).is_err());
                return;
            };
            if found.is_saved {
                assert_eq!(saved.clocks, clocks);
                assert_eq!(Directives::decode(learned).as_ref(), Ok(&saved.learned));
            }
            let later = if found.is_near {
                wall.saturating_add(found.wall % (100 * SECOND))
            } else {
                found.wall
            };
            check_restored(&saved, Instant::from_nanos(later));
        });
}

fn check_restored(saved: &SavedState, wall: Instant) {
    let now = Clocks {
        monotonic: Instant::from_nanos(2 * SECOND),
        wall,
    };
    assert!(saved.restore("another", now).is_err() || saved.plugin == "another");
    let Ok(directives) = saved.restore(&saved.plugin, now) else {
        return;
    };
    assert_eq!(
        Directives::decode(directives.clone().encode()).as_ref(),
        Ok(&directives),
        "plausible"
    );
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
