//! The exchange between the workers of a proxy, over shared data.
//!
//! Each VM publishes a slice on every tick; the one that holds the lease gathers them, decides, and publishes
//! directives, which the others follow. Shared data is one mutex for the whole process, so it is used per tick and
//! never per request. Core defines the payloads; this module transports them:
//!
//! | key | what | written by |
//! |---|---|---|
//! | `workers` | which worker has which place | a new worker, and the leader when one is gone; compare and swap |
//! | `lease` | which worker leads, and until when | the leader and its candidates; compare and swap |
//! | `slice/<place>` | that worker's reports | that worker |
//! | `directives` | directives of upstreams in use | the leader, every round |
//! | `learned` | learned state of all upstreams | the leader, once a second |
//! | `names` | upstreams with metrics of their own | see [`crate::names`] |
//! | `serial` | how many VMs there have been | every VM once |
//! | `versions` | which versions of the module run | every VM once, and leaders once a second; compare and swap |
//!
//! | `info` | what ran in this process | the leader, when something else runs; see [`crate::metrics::info`] |
//!
//! All keys carry the plugin's name, because plugins may share a VM id, and all but the last two the wire version, because
//! versions of the module may run side by side.

pub mod archive;
pub mod keys;
pub mod lease;
pub mod places;
pub mod versions;

use core::time::Duration;
use std::sync::Arc;

use tidegate_core::{Directives, Instant, Slice, WIRE_VERSION};

use crate::api::{Expect, Host};
use crate::faults::{Fault, Faults};
use archive::Archive;
use keys::{Keys, SliceKeys};
use lease::{Duty, LeaseClaim};
use places::Places;
use versions::Versions;

/// The leader keeps the lease for this long after each tick; some ticks may be late.
pub const LEASE: Duration = Duration::from_millis(500);
/// A worker that has not reported for this long has lost its place.
pub const GONE_AFTER: Duration = Duration::from_secs(3);

/// Whether this worker decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It does.
    Leader,
    /// Another one does.
    Follower,
    /// Shared data does not work: it decides for itself.
    Alone,
}

/// What a worker has published.
#[derive(Debug)]
pub struct PublishedSlice {
    worker: u64,
    bytes: Arc<Vec<u8>>,
}

/// One worker's end of the exchange.
#[derive(Debug)]
pub struct Exchange {
    keys: Keys,
    slice_keys: SliceKeys,
    worker: u64,
    claim: LeaseClaim,
    place: Option<usize>,
    places: Places,
    /// The version of the directives that were followed last.
    followed: Option<u32>,
    archive: Archive,
    versions: Versions,
}

impl Exchange {
    /// The exchange of the plugin whose keys these are, for the worker with this number.
    #[must_use]
    pub fn new(keys: Keys, worker: u64) -> Self {
        Self {
            claim: LeaseClaim::new(keys.lease(), worker, LEASE),
            versions: Versions::new(keys.versions(), WIRE_VERSION),
            keys,
            slice_keys: SliceKeys::default(),
            worker,
            place: None,
            places: Places::default(),
            followed: None,
            archive: Archive::default(),
        }
    }

    /// How many workers have a place.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.places.taken()
    }

    /// Learned state of earlier VMs, to start from: first that of all upstreams, then the present directives.
    pub fn restore(&self, host: &impl Host, faults: &Faults) -> Vec<Directives<'static>> {
        [self.keys.learned(), self.keys.directives()]
            .into_iter()
            .filter_map(|key| read_directives(host, faults, key))
            .collect()
    }

    /// Publishes this worker's slice, encoded; takes a place first if it has none.
    pub fn publish(&mut self, host: &impl Host, faults: &Faults, slice: &[u8]) {
        self.join(host, faults);
        if let Some(place) = self.place {
            let key = self.slice_keys.at(&self.keys, place);
            let written = host.set_shared(key, slice, Expect::Anything);
            faults.check(host, Fault::SharedData, written);
        }
    }

    /// Takes, renews or gives up the lease.
    pub fn lead(&mut self, host: &impl Host, faults: &Faults, duty: Duty, now: Instant) -> Role {
        // A single VM has no other to hand over to.
        let duty = if self.places.taken() > 1 {
            duty
        } else {
            Duty::Idle
        };
        let leads = self.claim.press(host, duty, now);
        match faults.check(host, Fault::SharedData, leads) {
            Some(true) => Role::Leader,
            Some(false) => {
                self.archive.close();
                Role::Follower
            }
            None => Role::Alone,
        }
    }

    /// Leads: what the other workers have published, each with the worker whose place it is.
    pub fn read_slices(&mut self, host: &impl Host, faults: &Faults) -> Vec<PublishedSlice> {
        let mut published = Vec::with_capacity(self.places.taken());
        for (place, worker) in self.places.others(self.worker) {
            let read = host.shared(self.slice_keys.at(&self.keys, place));
            let Some(Some(value)) = faults.check(host, Fault::SharedData, read) else {
                continue;
            };
            let bytes = value.bytes;
            published.push(PublishedSlice { worker, bytes });
        }
        published
    }

    /// Leads: the slices of all workers, this one's (`own`, as it was published) included. Workers that are gone lose
    /// their place.
    pub fn gather<'a>(
        &mut self,
        (host, faults): (&impl Host, &Faults),
        published: &'a [PublishedSlice],
        own: &'a [u8],
        now: Instant,
    ) -> Vec<Slice<'a>> {
        let mut slices = Vec::with_capacity(published.len() + 1);
        for PublishedSlice { worker, bytes } in published {
            match Slice::decode(bytes.as_slice()) {
                // Another worker's slice is what the place's last owner left.
                Ok(slice) if slice.worker == *worker => slices.push(slice),
                Ok(_) => {}
                Err(error) => faults.note(host, Fault::Payload, &error),
            }
        }
        match Slice::decode(own) {
            Ok(slice) => slices.push(slice),
            Err(error) => faults.note(host, Fault::Payload, &error),
        }
        for slice in &slices {
            self.places.see(slice.worker, slice.at);
        }
        if self.places.forget_gone(now, GONE_AFTER) {
            self.store_places(host, faults);
        }
        slices
    }

    /// Leads: publishes the directives.
    pub fn publish_directives(
        &mut self,
        host: &impl Host,
        faults: &Faults,
        directives: Directives<'_>,
    ) {
        let written = host.set_shared(
            self.keys.directives(),
            &directives.encode(),
            Expect::Anything,
        );
        faults.check(host, Fault::SharedData, written);
    }

    /// Leads: publishes learned state, about once a second. `learned` is called only when it is time.
    pub fn save(
        &mut self,
        host: &impl Host,
        faults: &Faults,
        learned: impl FnOnce() -> Directives<'static>,
        now: Instant,
    ) {
        if !self.archive.is_due(now) {
            return;
        }
        let key = self.keys.learned();
        if !self.archive.is_open() {
            self.archive.open(read_directives(host, faults, key));
        }
        if let Some(all) = self.archive.merge(learned(), now) {
            let written = host.set_shared(key, &all.encode(), Expect::Anything);
            faults.check(host, Fault::SharedData, written);
        }
    }

    /// Says that this version of the module runs; answers whether another one does, whose workers count in the same gauges
    /// and whose slices are not gathered.
    pub fn is_accompanied(&self, host: &impl Host, faults: &Faults, now: Instant) -> bool {
        let told = self.versions.tell(host, now);
        faults.check(host, Fault::SharedData, told) == Some(true)
    }

    /// Follows: directives that are newer than those followed last, as they were published.
    pub fn poll(&mut self, host: &impl Host, faults: &Faults) -> Option<Arc<Vec<u8>>> {
        let read = host.shared(self.keys.directives());
        let value = faults.check(host, Fault::SharedData, read)??;
        if self.followed == Some(value.version) {
            return None;
        }
        self.followed = Some(value.version);
        Some(value.bytes)
    }

    fn join(&mut self, host: &impl Host, faults: &Faults) {
        let read = host.shared(self.keys.workers());
        let Some(value) = faults.check(host, Fault::SharedData, read) else {
            return;
        };
        let version = value.as_ref().map(|value| value.version);
        let bytes = value.as_ref().map(|value| value.bytes.as_slice());
        self.places.load(bytes);
        self.place = self.places.place_of(self.worker);
        if self.place.is_some() {
            return;
        }
        // Another new worker was faster: the next tick tries again.
        let Some(place) = self.places.claim(self.worker) else {
            faults.note(
                host,
                Fault::SharedData,
                &"no place is left for another worker",
            );
            return;
        };
        let expect = version.map_or(Expect::Absent, Expect::Version);
        let written = host.set_shared(self.keys.workers(), &self.places.encode(), expect);
        if faults.check(host, Fault::SharedData, written) == Some(crate::api::WriteResult::Done) {
            self.place = Some(place);
        }
    }

    /// Writes places that were freed, if no worker joined in between; else a later round does it.
    fn store_places(&self, host: &impl Host, faults: &Faults) {
        let read = host.shared(self.keys.workers());
        let Some(Some(value)) = faults.check(host, Fault::SharedData, read) else {
            return;
        };
        if self.places.came_from(&value.bytes) {
            let written = host.set_shared(
                self.keys.workers(),
                &self.places.encode(),
                Expect::Version(value.version),
            );
            faults.check(host, Fault::SharedData, written);
        }
    }
}

fn read_directives(host: &impl Host, faults: &Faults, key: &str) -> Option<Directives<'static>> {
    let value = faults.check(host, Fault::SharedData, host.shared(key))??;
    match Directives::decode(Arc::unwrap_or_clone(value.bytes)) {
        Ok(directives) => Some(directives),
        Err(error) => {
            faults.note(host, Fault::Payload, &error);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;
    use tidegate_core::Directive;

    #[test]
    fn a_fresh_vm_starts_from_learned_state_and_then_from_directives() {
        let host = FakeHost::default();
        let keys = Keys::new("tidegate");
        let exchange = Exchange::new(keys.clone(), 1);
        let leaders = || -> Vec<u64> {
            let restored = exchange.restore(&host, &Faults::default());
            restored.iter().map(|left| left.leader).collect()
        };
        assert!(leaders().is_empty(), "a first start");
        for (key, leader) in [(keys.directives(), 20), (keys.learned(), 30)] {
            let written = Directives::new(leader, Instant::ZERO, [] as [Directive; 0]).encode();
            host.set_shared(key, &written, Expect::Anything).unwrap();
        }
        assert_eq!(leaders(), [30, 20]);
    }

    #[test]
    fn data_of_another_version_is_not_read() {
        let host = FakeHost::default();
        let (keys, faults) = (Keys::new("tidegate"), Faults::default());
        let later = keys.learned().replace(
            &format!("/{}/", WIRE_VERSION),
            &format!("/{}/", WIRE_VERSION + 1),
        );
        host.set_shared(&later, &[9, 9, 9], Expect::Anything)
            .unwrap();
        assert!(Exchange::new(keys, 1).restore(&host, &faults).is_empty());
        assert!(host.log_lines().is_empty());
    }
}
