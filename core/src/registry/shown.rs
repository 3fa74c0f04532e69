//! The upstreams whose state metrics do not show yet.
//!
//! A leader records what holds for each upstream in every tick. Most upstreams are at rest, and nothing holds for them but what
//! was recorded before. So a place knows whether it was shown, and its slot, which is likely in no cache, is not read again.

use super::{LedUpstream, Registry};
use crate::slot::Slot;
use crate::upstream::UpstreamId;

/// An upstream whose state metrics may not show.
pub(crate) enum Unshown<'a> {
    /// This worker has requests to it.
    Served(&'a Slot),
    /// It only leads.
    Led(&'a LedUpstream),
}

impl Registry {
    /// The upstreams that may have changed since they were shown, in the order of their hashes.
    pub(crate) fn unshown(&self) -> impl Iterator<Item = (UpstreamId, Unshown<'_>)> {
        let ids = self.by_hash.as_slice().iter().map(|(_, id)| *id);
        ids.filter_map(|id| {
            let unshown = match self.places.led(id) {
                Some(led) => (!led.is_shown.get()).then_some(Unshown::Led(led)),
                None => {
                    let place = self.places.get(id);
                    (!place.is_settled_and_shown()).then_some(Unshown::Served(&place.slot))
                }
            };
            Some((id, unshown?))
        })
    }

    /// Metrics show an upstream from now on, or do not.
    pub(crate) fn set_shown(&self, id: UpstreamId, is_shown: bool) {
        let place = match self.places.led(id) {
            Some(led) => &led.is_shown,
            None => &self.places.get(id).is_shown,
        };
        place.set(is_shown);
    }

    /// All upstreams are to be shown again.
    pub(crate) fn show_all_again(&self) {
        let served = self.places.iter().map(|(_, place)| &place.is_shown);
        let led = self.places.all_led().map(|(_, led)| &led.is_shown);
        for is_shown in served.chain(led) {
            is_shown.set(false);
        }
    }
}
