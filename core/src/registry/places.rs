//! The places of all upstreams, found by handle.

use super::place::{Rest, UpstreamPlace};
use crate::slot::Slot;
use crate::upstream::UpstreamId;

/// All places of one worker.
#[derive(Debug)]
pub(super) struct UpstreamPlaces {
    /// Shared by the upstreams beyond the cap.
    overflow: UpstreamPlace,
    own: Vec<UpstreamPlace>,
}

impl UpstreamPlaces {
    pub(super) const fn new(overflow: UpstreamPlace) -> Self {
        Self {
            overflow,
            own: Vec::new(),
        }
    }

    /// The place of a handle; the shared one for a handle that is not in use.
    pub(super) fn get(&self, id: UpstreamId) -> &UpstreamPlace {
        position(id)
            .and_then(|position| self.own.get(position))
            .unwrap_or(&self.overflow)
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, id: UpstreamId) -> &mut UpstreamPlace {
        position(id)
            .and_then(|position| self.own.get_mut(position))
            .unwrap_or(&mut self.overflow)
    }

    /// All places, the shared one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (UpstreamId, &UpstreamPlace)> {
        let places = core::iter::once(&self.overflow).chain(&self.own);
        places.zip(0..).map(|(place, id)| (UpstreamId(id), place))
    }

    /// The same, to change them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (UpstreamId, &mut UpstreamPlace)> {
        let places = core::iter::once(&mut self.overflow).chain(&mut self.own);
        places.zip(0..).map(|(place, id)| (UpstreamId(id), place))
    }

    /// A tick: the slots that may have something to do.
    pub(super) fn tick(&mut self) -> impl Iterator<Item = (UpstreamId, &mut Slot)> {
        self.iter_mut().filter_map(|(id, place)| {
            let Rest::Awake { ticks } = &mut place.rest else {
                return None;
            };
            *ticks = ticks.saturating_add(1);
            Some((id, &mut *place.slot))
        })
    }

    /// How many upstreams have a place of their own.
    pub(super) const fn len(&self) -> usize {
        self.own.len()
    }

    /// The handle of the next upstream, if no place is freed for it.
    pub(super) fn free_id(&self) -> Option<UpstreamId> {
        u32::try_from(self.own.len())
            .ok()?
            .checked_add(1)
            .map(UpstreamId)
    }

    /// Gives a place to a new upstream.
    pub(super) fn put(&mut self, id: UpstreamId, new: UpstreamPlace) {
        match position(id).and_then(|position| self.own.get_mut(position)) {
            Some(place) => *place = new,
            None => self.own.push(new),
        }
    }
}

fn position(id: UpstreamId) -> Option<usize> {
    id.index().checked_sub(1)
}
