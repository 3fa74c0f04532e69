//! Where proxies and endpoints are: their shard, their index, and the bin of a time.

use std::time::Duration;

use tidegate_core::Instant;

use crate::fleet::ledger::BIN_NS;
use crate::world::START;

/// Shards of a fleet. Digests depend on this number, so it does not depend on the machine.
pub(in crate::fleet) const SHARDS: u32 = 4;
/// Each engine's upkeep is this far apart, as in the filter.
pub(in crate::fleet) const TICK: Duration = Duration::from_millis(100);

/// The shard of a proxy or an endpoint.
pub(in crate::fleet) const fn home(index: u32) -> u32 {
    index % SHARDS
}

pub(in crate::fleet) fn at_index(index: u32) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

pub(in crate::fleet) fn bin_at(now: Instant) -> usize {
    let nanos = now.as_nanos().saturating_sub(START.as_nanos());
    usize::try_from(nanos / BIN_NS).unwrap_or(usize::MAX)
}
