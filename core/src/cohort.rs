//! Which callers are served together while a part of a class must be shed.
//!
//! A caller's cohort is a hash with a key, which changes every [`PERIOD`]: callers cannot compute it, and not always the
//! same ones are shed.

use core::time::Duration;

use crate::mix::mix;
use crate::upstream::UpstreamKey;

/// How long the same callers are served. With a shorter period more callers see refusals within a session; with a longer one
/// the same callers see only refusals.
const PERIOD: Duration = Duration::from_secs(600);

/// The key of the cohorts at a time since the start of the clock.
#[must_use]
pub const fn cohort_key(secret: u64, now: Duration) -> u64 {
    mix(secret ^ mix(now.as_secs() / PERIOD.as_secs()))
}

/// The secret that a configuration gives to all proxies.
#[must_use]
pub fn cohort_secret(name: &str) -> u64 {
    UpstreamKey::hash(name, None)
}

/// The cohort of a caller: callers are served from 0 upwards.
#[must_use]
pub fn cohort_of(caller: &str, key: u64) -> u32 {
    let hash = mix(UpstreamKey::hash(caller, None) ^ key);
    let [a, b, c, d, ..] = hash.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
