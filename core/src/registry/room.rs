//! Room for a new upstream: a free place, or that of the upstream that was idle longest.

use core::time::Duration;

use super::Registry;
use crate::time::Instant;
use crate::upstream::{EVICTABLE_AFTER, UpstreamId};

/// After a new upstream found no room, the next search for room waits this long: a search goes through all places.
const CROWDED_FOR: Duration = Duration::from_millis(100);

impl Registry {
    /// A handle for a new upstream, of which there may be `cap`. `None`, and counted, if there is no room.
    pub(super) fn room(&mut self, cap: u32, now: Instant) -> Option<UpstreamId> {
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        let id = if self.places.len() < cap {
            self.places.free_id()
        } else if now < self.crowded_until {
            None
        } else {
            self.evict(now)
        };
        if id.is_none() {
            self.overflowed = self.overflowed.wrapping_add(1);
            // New upstreams in the meantime do not postpone the next search.
            if now >= self.crowded_until {
                self.crowded_until = now + CROWDED_FOR;
            }
        }
        id
    }

    /// Frees the place of the upstream that was idle longest, if it was idle long enough.
    fn evict(&mut self, now: Instant) -> Option<UpstreamId> {
        let served = self.slots().skip(1).filter(|(_, slot)| slot.is_idle());
        let served = served.map(|(id, slot)| (id, slot.hash, slot.last_wanted()));
        let led = self.places.all_led();
        let led = led.map(|(id, led)| (id, led.hash, led.last_led));
        let (id, hash, _) = served
            .chain(led)
            .filter(|(_, _, wanted)| now.saturating_since(*wanted) >= EVICTABLE_AFTER)
            .min_by_key(|(id, _, wanted)| (*wanted, *id))?;
        self.by_hash.remove(hash);
        Some(id)
    }
}
