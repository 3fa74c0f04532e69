//! The places of all upstreams, found by handle.

use std::sync::Arc;

use super::led::LedUpstream;
use super::place::{Rest, UpstreamPlace};
use crate::config::RuleIndex;
use crate::slot::Slot;
use crate::upstream::{UpstreamId, UpstreamKey};

/// All places of one worker.
#[derive(Debug)]
pub(super) struct UpstreamPlaces {
    /// Shared by the upstreams beyond the cap.
    overflow: UpstreamPlace,
    others: Vec<KnownUpstream>,
}

/// The place of one upstream.
#[derive(Debug)]
pub(super) enum KnownUpstream {
    /// Requests of this worker asked for it.
    Served(UpstreamPlace),
    /// This worker leads, and requests of other workers alone asked for it.
    Led(LedUpstream),
}

impl UpstreamPlaces {
    pub(super) const fn new(overflow: UpstreamPlace) -> Self {
        Self {
            overflow,
            others: Vec::new(),
        }
    }

    /// The place of a handle; the shared one for a handle without requests of this worker.
    pub(super) fn get(&self, id: UpstreamId) -> &UpstreamPlace {
        match position(id).and_then(|position| self.others.get(position)) {
            Some(KnownUpstream::Served(place)) => place,
            Some(KnownUpstream::Led(_)) | None => &self.overflow,
        }
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, id: UpstreamId) -> &mut UpstreamPlace {
        match position(id).and_then(|position| self.others.get_mut(position)) {
            Some(KnownUpstream::Served(place)) => place,
            Some(KnownUpstream::Led(_)) | None => &mut self.overflow,
        }
    }

    /// All places that requests of this worker asked for, the shared one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (UpstreamId, &UpstreamPlace)> {
        let served = self
            .others
            .iter()
            .zip(1..)
            .filter_map(|(place, id)| match place {
                KnownUpstream::Served(place) => Some((UpstreamId(id), place)),
                KnownUpstream::Led(_) => None,
            });
        core::iter::once((UpstreamId::OVERFLOW, &self.overflow)).chain(served)
    }

    /// The same, to change them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (UpstreamId, &mut UpstreamPlace)> {
        let others = self.others.iter_mut().zip(1..);
        let served = others.filter_map(|(place, id)| match place {
            KnownUpstream::Served(place) => Some((UpstreamId(id), place)),
            KnownUpstream::Led(_) => None,
        });
        core::iter::once((UpstreamId::OVERFLOW, &mut self.overflow)).chain(served)
    }

    /// The place of a handle with requests of this worker; not the shared one.
    pub(super) fn served(&self, id: UpstreamId) -> Option<&UpstreamPlace> {
        match self.others.get(position(id)?)? {
            KnownUpstream::Served(place) => Some(place),
            KnownUpstream::Led(_) => None,
        }
    }

    /// The place of a handle with requests of this worker, or the shared one for its own handle, to change it.
    pub(super) fn served_mut(&mut self, id: UpstreamId) -> Option<&mut UpstreamPlace> {
        let Some(position) = position(id) else {
            return Some(&mut self.overflow);
        };
        match self.others.get_mut(position)? {
            KnownUpstream::Served(place) => Some(place),
            KnownUpstream::Led(_) => None,
        }
    }

    /// The upstream of a handle, if this worker only leads it.
    pub(super) fn led(&self, id: UpstreamId) -> Option<&LedUpstream> {
        match self.others.get(position(id)?)? {
            KnownUpstream::Led(led) => Some(led),
            KnownUpstream::Served(_) => None,
        }
    }

    /// The same, to change it.
    pub(super) fn led_mut(&mut self, id: UpstreamId) -> Option<&mut LedUpstream> {
        match self.others.get_mut(position(id)?)? {
            KnownUpstream::Led(led) => Some(led),
            KnownUpstream::Served(_) => None,
        }
    }

    /// All of these.
    pub(super) fn all_led(&self) -> impl Iterator<Item = (UpstreamId, &LedUpstream)> {
        self.others
            .iter()
            .zip(1..)
            .filter_map(|(place, id)| match place {
                KnownUpstream::Led(led) => Some((UpstreamId(id), led)),
                KnownUpstream::Served(_) => None,
            })
    }

    /// The same, to change them.
    pub(super) fn all_led_mut(&mut self) -> impl Iterator<Item = &mut LedUpstream> {
        self.others.iter_mut().filter_map(|place| match place {
            KnownUpstream::Led(led) => Some(led),
            KnownUpstream::Served(_) => None,
        })
    }

    /// The name of an upstream, its hash, and the rule that applies.
    pub(super) fn name(&self, id: UpstreamId) -> (&Arc<UpstreamKey>, u64, RuleIndex) {
        let place = match position(id).and_then(|position| self.others.get(position)) {
            Some(KnownUpstream::Led(led)) => return (&led.key, led.hash, led.rule),
            Some(KnownUpstream::Served(place)) => place,
            None => &self.overflow,
        };
        (&place.slot.key, place.slot.hash, place.rule)
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
        self.others.len()
    }

    /// The handle of the next upstream, if no place is freed for it.
    pub(super) fn free_id(&self) -> Option<UpstreamId> {
        u32::try_from(self.others.len())
            .ok()?
            .checked_add(1)
            .map(UpstreamId)
    }

    /// Gives a place to a new upstream.
    pub(super) fn put(&mut self, id: UpstreamId, new: KnownUpstream) {
        match position(id).and_then(|position| self.others.get_mut(position)) {
            Some(place) => *place = new,
            None => self.others.push(new),
        }
    }
}

fn position(id: UpstreamId) -> Option<usize> {
    id.index().checked_sub(1)
}
