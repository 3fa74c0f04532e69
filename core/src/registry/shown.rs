//! The upstreams whose state metrics do not show yet.
//!
//! A leader records what holds for each upstream in every tick. Most upstreams are at rest, and nothing holds for them but what
//! was recorded before. So a place knows whether it was shown, and its slot, which is likely in no cache, is not read again.

use super::Registry;
use crate::slot::Slot;
use crate::upstream::UpstreamId;

impl Registry {
    /// The upstreams that may have changed since they were shown, in the order of their hashes.
    pub(crate) fn slots_to_show(&self) -> impl Iterator<Item = (UpstreamId, &Slot)> {
        let places = self.by_hash.as_slice().iter();
        let places = places.map(|(_, id)| (*id, self.places.get(*id)));
        places
            .filter(|(_, place)| !place.is_settled_and_shown())
            .map(|(id, place)| (id, &*place.slot))
    }

    /// Metrics show an upstream from now on, or do not.
    pub(crate) fn set_shown(&self, id: UpstreamId, is_shown: bool) {
        self.places.get(id).is_shown.set(is_shown);
    }

    /// All upstreams are to be shown again.
    pub(crate) fn show_all_again(&self) {
        for (_, place) in self.places.iter() {
            place.is_shown.set(false);
        }
    }
}
