//! Which upstreams have metrics of their own.
//!
//! Envoy never forgets a metric, so the number of names must be bounded for the whole process, not for each worker: the set
//! is shared. It only grows, up to the configured number of upstreams. Later upstreams share the metrics of `_overflow`.
//! They have no gauge, so each worker keeps to its part of their limit. An upstream keeps its place forever: to give the
//! place to another one would not remove the old name.

use std::sync::Arc;

use crate::api::{Expect, Host, WriteResult};
use crate::exchange::keys::Keys;
use crate::faults::{Fault, Faults};

/// Attempts to add a name while other workers do the same. After them, the next request tries again.
const ATTEMPTS: usize = 4;

/// The upstreams, by hash, that may have names, as this VM knows them.
#[derive(Clone, Debug)]
pub struct NamedUpstreams {
    /// Where the set is shared.
    key: String,
    /// Sorted; there is one for each of a thousand upstreams in every VM.
    known: Vec<u64>,
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
        for _ in 0..ATTEMPTS {
            let read = host.shared(&self.key);
            let Some(value) = faults.check(host, Fault::SharedData, read) else {
                return self.permit_alone(hash, cap);
            };
            let expect = value
                .as_ref()
                .map_or(Expect::Absent, |value| Expect::Version(value.version));
            let bytes = value.map(|value| value.bytes).unwrap_or_default();
            let mut bytes = Arc::unwrap_or_clone(bytes);
            self.known = decode(&bytes);
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
            bytes.extend_from_slice(&hash.to_le_bytes());
            let written = host.set_shared(&self.key, &bytes, expect);
            match faults.check(host, Fault::SharedData, written) {
                Some(WriteResult::Done) => {
                    add(&mut self.known, hash);
                    return Permission::Own;
                }
                Some(WriteResult::Beaten) => {}
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

/// Reads the shared set, which is in the order of insertion, and sorts it.
fn decode(bytes: &[u8]) -> Vec<u64> {
    let mut known = Vec::new();
    for chunk in bytes.as_chunks::<8>().0 {
        add(&mut known, u64::from_le_bytes(*chunk));
    }
    known
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
