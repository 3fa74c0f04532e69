//! Which upstreams have metrics of their own.
//!
//! Envoy never forgets a metric, so the number of names must be bounded for the whole process, not for each worker: the set
//! is shared. It only grows, up to the configured number of upstreams. Later upstreams share the metrics of `_overflow`.
//! They have no gauge, so each worker keeps to its part of their limit. An upstream keeps its place forever: to give the
//! place to another one would not remove the old name.
//!
//! The set is shared in pages, in the order of insertion. Only the last page changes, and the next one begins when it is full. So a
//! worker reads what is new since it last looked, and writes one page: a new upstream costs the same with few as with thousands.

use crate::api::{Expect, Host, WriteResult};
use crate::exchange::keys::Keys;
use crate::faults::{Fault, Faults};

/// Attempts to add a name while other workers do the same. After them, the next request tries again.
const ATTEMPTS: usize = 4;

/// Names on a page.
const PAGE: usize = 64;

/// The upstreams, by hash, that may have names, as this VM knows them.
#[derive(Clone, Debug)]
pub struct NamedUpstreams {
    /// Where the pages are shared: their keys begin so.
    key: String,
    /// Sorted; there is one for each of a thousand upstreams in every VM.
    known: Vec<u64>,
    /// How many of the shared set were read.
    read: usize,
    is_full: bool,
}

/// Whether an upstream may have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// It may.
    Own,
    /// It counts under `_overflow`.
    Shared,
    /// Ask again.
    Undecided,
}

impl NamedUpstreams {
    /// The set under these keys.
    #[must_use]
    pub fn new(keys: &Keys) -> Self {
        Self {
            key: keys.names(),
            known: Vec::new(),
            read: 0,
            is_full: false,
        }
    }

    /// Whether an upstream may have names; at most `cap` upstreams may. Cheap once it is known.
    pub fn permit(
        &mut self,
        host: &impl Host,
        faults: &Faults,
        hash: u64,
        cap: usize,
    ) -> Permission {
        if self.knows(hash) {
            return Permission::Own;
        }
        if self.is_full {
            return Permission::Shared;
        }
        let mut beaten = 0;
        while beaten < ATTEMPTS {
            let key = format!("{}/{}", self.key, self.read / PAGE);
            let read = host.shared(&key);
            let Some(page) = faults.check(host, Fault::SharedData, read) else {
                return self.permit_alone(hash, cap);
            };
            let expect = page
                .as_ref()
                .map_or(Expect::Absent, |page| Expect::Version(page.version));
            let mut bytes = page.map_or_else(Vec::new, |page| page.bytes.to_vec());
            if self.learn(&bytes) {
                // It is full, and the next one may have begun.
                continue;
            }
            if self.knows(hash) {
                return Permission::Own;
            }
            if self.known.len() >= cap {
                self.is_full = true;
                faults.note(
                    host,
                    Fault::Names,
                    &"too many upstreams for metrics of their own",
                );
                return Permission::Shared;
            }
            // Another plugin of the process may have left half a name.
            bytes.truncate(bytes.len() / 8 * 8);
            bytes.extend_from_slice(&hash.to_le_bytes());
            let written = host.set_shared(&key, &bytes, expect);
            match faults.check(host, Fault::SharedData, written) {
                Some(WriteResult::Done) => {
                    self.learn(&bytes);
                    return Permission::Own;
                }
                Some(WriteResult::Beaten) => beaten += 1,
                None => return self.permit_alone(hash, cap),
            }
        }
        Permission::Undecided
    }

    /// A configuration with another cap is in force.
    pub const fn reconsider(&mut self) {
        self.is_full = false;
    }

    /// Without shared data each worker bounds its own names.
    fn permit_alone(&mut self, hash: u64, cap: usize) -> Permission {
        if self.known.len() >= cap {
            return Permission::Shared;
        }
        add(&mut self.known, hash);
        Permission::Own
    }

    /// Takes what is new on the page that is read. Returns whether the page is full and read to its end.
    fn learn(&mut self, page: &[u8]) -> bool {
        let (hashes, _) = page.as_chunks::<8>();
        let new = hashes.iter().take(PAGE).skip(self.read % PAGE);
        for hash in new {
            add(&mut self.known, u64::from_le_bytes(*hash));
            self.read += 1;
        }
        hashes.len() >= PAGE
    }

    fn knows(&self, hash: u64) -> bool {
        self.known.binary_search(&hash).is_ok()
    }
}

/// Inserts a hash into a sorted list, if it is missing. A sort would take 3 KB of the module.
fn add(known: &mut Vec<u64>, hash: u64) {
    if let Err(place) = known.binary_search(&hash) {
        known.insert(place, hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    #[test]
    fn the_cap_holds_over_all_vms_together() {
        let host = FakeHost::default();
        let (keys, faults) = (Keys::new("tidegate"), Faults::default());
        let (mut one, mut other) = (NamedUpstreams::new(&keys), NamedUpstreams::new(&keys));
        let ask = |names: &mut NamedUpstreams, hash| names.permit(&host, &faults, hash, 3);

        assert_eq!(ask(&mut one, 1), Permission::Own);
        assert_eq!(ask(&mut other, 2), Permission::Own);
        assert_eq!(ask(&mut other, 1), Permission::Own);
        assert_eq!(ask(&mut one, 3), Permission::Own);
        assert_eq!(ask(&mut other, 4), Permission::Shared);
        assert_eq!(ask(&mut one, 4), Permission::Shared);
        assert_eq!(ask(&mut one, 2), Permission::Own);
    }

    #[test]
    fn all_vms_agree_over_many_pages_and_the_cap_holds_exactly() {
        const CAP: usize = 3 * PAGE + 10;
        let host = FakeHost::default();
        let (keys, faults) = (Keys::new("tidegate"), Faults::default());
        let mut vms = [(); 3].map(|()| NamedUpstreams::new(&keys));
        // In an order in which neither hashes nor VMs are sorted; some are asked for by several VMs.
        let asks = (0..2_000_u64).map(|i| (i % 3, i * 7_919 % 997));
        let mut own = std::collections::BTreeSet::new();
        for (vm, hash) in asks {
            let vm = &mut vms[usize::try_from(vm).unwrap()];
            match vm.permit(&host, &faults, hash, CAP) {
                Permission::Own => drop(own.insert(hash)),
                Permission::Shared => assert_eq!(own.len(), CAP, "{hash}"),
                Permission::Undecided => panic!("no VM was beaten"),
            }
        }
        assert_eq!(own.len(), CAP);
        for vm in &mut vms {
            vm.reconsider();
            let mut has = |hash: &u64| vm.permit(&host, &faults, *hash, CAP) == Permission::Own;
            assert!(own.iter().all(&mut has));
            assert!(
                (0..997)
                    .filter(|hash| !own.contains(hash))
                    .all(|hash| !has(&hash))
            );
        }
    }

    /// Before, each new upstream read and wrote the whole set: 40 KB both ways for the five-thousandth.
    #[test]
    fn the_five_thousandth_upstream_costs_no_more_than_the_first_ones() {
        const CALLS: u64 = 3;
        const BYTES: usize = 2 * 8 * PAGE;
        let host = FakeHost::default();
        let (keys, faults) = (Keys::new("tidegate"), Faults::default());
        let mut vms = [(); 2].map(|()| NamedUpstreams::new(&keys));
        for hash in 0..5_000 {
            for vm in &mut vms {
                let calls = host.calls();
                host.take_shared_bytes();
                assert_eq!(vm.permit(&host, &faults, hash, 10_000), Permission::Own);
                let (calls, bytes) = (host.calls() - calls, host.take_shared_bytes());
                assert!(calls <= CALLS && bytes <= BYTES, "{hash}: {calls}, {bytes}");
            }
        }
    }

    #[test]
    fn without_shared_data_every_vm_bounds_itself() {
        let host = FakeHost::default();
        host.break_shared_data();
        let (keys, faults) = (Keys::new("tidegate"), Faults::default());
        let mut names = NamedUpstreams::new(&keys);
        let granted = (0..10)
            .filter(|hash| names.permit(&host, &faults, *hash, 3) == Permission::Own)
            .count();
        assert_eq!(granted, 3);
        assert!(faults.count(Fault::SharedData) > 0);
    }
}
