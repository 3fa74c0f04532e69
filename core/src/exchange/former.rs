//! What an earlier version of the module left for VMs to come.
//!
//! A module is replaced while traffic flows, and what was learned is not to be lost by that. So the directives of earlier
//! wire versions are read in the form that they had, and what they do not say counts as not learned. Slices are not:
//! who writes them is led by its own version.

use serde::Deserialize;

use super::{Directive, Directives, WireError, plausible};
use crate::breaker::BreakerState;
use crate::ladder::Margin;
use crate::limit::Learned;
use crate::time::Instant;

/// Earlier versions whose directives are read, the newest first. They are alike, but for slices.
pub const FORMER_VERSIONS: [u8; 2] = [3, 2];

/// A [`Directive`] of these versions.
#[derive(Deserialize)]
struct Former {
    #[serde(with = "postcard::fixint::le")]
    upstream: u64,
    epoch: u32,
    breaker: BreakerState,
    limit: u32,
    reserve: u32,
    margin: Margin,
    workers: u16,
    learned: FormerLearned,
}

/// What was [`Learned`] then.
#[derive(Deserialize)]
struct FormerLearned {
    baseline_low: f32,
    baseline_mean: f32,
    baseline_tail: f32,
    sample_low: f32,
    sample_tail: f32,
    capacity: f32,
    knee: f32,
    burst: f32,
    congested: bool,
    endpoints: u32,
    failure_rate: f32,
    rate: f32,
    recovery: f32,
    outage_since: Instant,
    open_interval_ms: u32,
}

/// Reads what stands behind the version: all of it or nothing.
pub(super) fn read(bytes: &[u8]) -> Result<Directives<'static>, WireError> {
    let malformed = |_| WireError::Malformed;
    let ((leader, at), mut rest) =
        postcard::take_from_bytes::<(u64, Instant)>(bytes).map_err(malformed)?;
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let (former, behind) = postcard::take_from_bytes::<Former>(rest).map_err(malformed)?;
        let entry = Directive::from(former);
        plausible::check(&entry)?;
        entries.push(entry);
        rest = behind;
    }
    Ok(Directives::new(leader, at, entries))
}

impl From<Former> for Directive {
    fn from(former: Former) -> Self {
        Self {
            upstream: former.upstream,
            epoch: former.epoch,
            breaker: former.breaker,
            limit: former.limit,
            reserve: former.reserve,
            margin: former.margin,
            workers: former.workers,
            unended: 0,
            learned: former.learned.into(),
        }
    }
}

impl From<FormerLearned> for Learned {
    fn from(former: FormerLearned) -> Self {
        Self {
            baseline_low: former.baseline_low,
            baseline_mean: former.baseline_mean,
            baseline_tail: former.baseline_tail,
            sample_low: former.sample_low,
            sample_tail: former.sample_tail,
            capacity: former.capacity,
            knee: former.knee,
            burst: former.burst,
            congested: former.congested,
            endpoints: former.endpoints,
            failure_rate: former.failure_rate,
            rate: former.rate,
            recovery: former.recovery,
            outage_since: former.outage_since,
            open_interval_ms: former.open_interval_ms,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As version 3 of the module wrote it: two directives of worker 11.
    #[rustfmt::skip]
    const WRITTEN: [u8; 151] = [
        0x03, 0x0b, 0x80, 0x8c, 0xee, 0x89, 0x1a, 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 0x07,
        0x01, 0x80, 0xc2, 0xb8, 0x9b, 0x18, 0x0c, 0x14, 0x1d, 0x00, 0x00, 0x00, 0x80, 0x3e, 0x04, 0x6f,
        0x12, 0x03, 0x3c, 0x0a, 0xd7, 0x23, 0x3c, 0x0a, 0xd7, 0xa3, 0x3c, 0xbc, 0x74, 0x13, 0x3c, 0x8f,
        0xc2, 0xf5, 0x3c, 0x00, 0x00, 0xc8, 0x43, 0x00, 0x00, 0xc0, 0x40, 0x00, 0x00, 0xb4, 0x42, 0x01,
        0x03, 0x0a, 0xd7, 0x23, 0x3c, 0x00, 0x00, 0xbe, 0x43, 0x00, 0x00, 0x20, 0x41, 0x80, 0xe4, 0x97,
        0xd0, 0x12, 0xdc, 0x0b, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x05, 0x14,
        0x1d, 0x00, 0x00, 0x00, 0x80, 0x3e, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    ];

    #[test]
    fn what_an_earlier_version_wrote_is_read_and_nothing_more_is_known() {
        for version in FORMER_VERSIONS {
            let mut bytes = WRITTEN.to_vec();
            bytes[0] = version;
            let read = Directives::decode(bytes).unwrap();
            assert_eq!((read.leader, read.at), (11, at(7_000)));
            let first = Directive {
                upstream: 0x0123_4567_89ab_cdef,
                epoch: 7,
                breaker: BreakerState::Open {
                    until: at(6_500),
                    probes: 12,
                },
                limit: 20,
                reserve: 29,
                margin: Margin {
                    share: 0.25,
                    ..Margin::NONE
                },
                workers: 4,
                unended: 0,
                learned: LEARNED,
            };
            let second = Directive {
                upstream: 9,
                epoch: 2,
                breaker: BreakerState::Ramp { limit: 5 },
                learned: Learned::default(),
                ..first
            };
            assert_eq!(read.entries().collect::<Vec<_>>(), [first, second]);
        }
    }

    #[test]
    fn what_is_damaged_is_refused_whole() {
        let cut = &WRITTEN[..WRITTEN.len() - 1];
        assert_eq!(Directives::decode(cut), Err(WireError::Malformed));
        let mut odd = WRITTEN;
        // The sign of the first float that was learned.
        odd[34] |= 0x80;
        assert!(matches!(
            Directives::decode(&odd[..]),
            Err(WireError::OutOfRange { .. })
        ));
        let mut later = WRITTEN;
        later[0] = super::super::WIRE_VERSION + 1;
        assert!(matches!(
            Directives::decode(&later[..]),
            Err(WireError::Version { .. })
        ));
    }

    const LEARNED: Learned = Learned {
        baseline_low: 0.008,
        baseline_mean: 0.01,
        baseline_tail: 0.02,
        sample_low: 0.009,
        sample_tail: 0.03,
        capacity: 400.0,
        knee: 6.0,
        burst: 90.0,
        congested: true,
        endpoints: 3,
        failure_rate: 0.01,
        rate: 380.0,
        recovery: 10.0,
        outage_since: at(5_000),
        open_interval_ms: 1500,
        ceiling: 0.0,
        ceiling_proven: false,
        guard: 0.0,
        nerve: 0.0,
    };

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }
}
