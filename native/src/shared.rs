//! Values that the workers of one plugin share, as the exchange wants them: bytes with a version, replaced by compare and
//! swap. One mutex, taken on ticks and by the first request to an upstream, never by others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_worker::api::{Expect, SharedValue, WriteResult};

/// A value that needs less than this part of its room gets other room: a slice is long while many upstreams are in use, and short after.
const LEAST_FILLED: usize = 2;

/// The values by key. There are few, and a hash of a key takes longer than to compare some.
#[derive(Debug, Default)]
pub(crate) struct SharedValues(Mutex<BTreeMap<String, SharedValue>>);

impl SharedValues {
    /// The value at `key`, if there is one.
    pub(crate) fn get(&self, key: &str) -> Option<SharedValue> {
        self.lock().get(key).cloned()
    }

    /// Replaces the value at `key` if its version is the expected one.
    pub(crate) fn set(&self, key: &str, bytes: &[u8], expect: Expect) -> WriteResult {
        let mut values = self.lock();
        let found = values.get_mut(key);
        let is_expected = match (&found, expect) {
            (_, Expect::Anything) | (None, Expect::Absent) => true,
            (Some(value), Expect::Version(version)) => value.version == version,
            (Some(_), Expect::Absent) | (None, Expect::Version(_)) => false,
        };
        if !is_expected {
            return WriteResult::Beaten;
        }
        match found {
            Some(value) => {
                match Arc::get_mut(&mut value.bytes) {
                    Some(place) => replace(place, bytes),
                    // Somebody still reads it.
                    None => value.bytes = Arc::new(bytes.to_vec()),
                }
                value.version = value.version.wrapping_add(1);
            }
            None => {
                let value = SharedValue {
                    bytes: Arc::new(bytes.to_vec()),
                    version: 1,
                };
                values.insert(key.to_owned(), value);
            }
        }
        WriteResult::Done
    }

    /// A panic while the mutex was held leaves a value half written, which its checksum tells.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SharedValue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces bytes in their room, or in new room that is just as large as they need.
fn replace(place: &mut Vec<u8>, bytes: &[u8]) {
    place.clear();
    let room = place.capacity();
    if bytes.len() > room || bytes.len() < room / LEAST_FILLED {
        // The old room is free before the new one is asked for.
        place.shrink_to_fit();
        place.reserve_exact(bytes.len());
    }
    place.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_at_most_twice_the_room_that_it_needs() {
        let values = SharedValues::default();
        for (length, room) in [(100, 100), (60, 100), (49, 49), (98, 98), (99, 99), (0, 0)] {
            values.set("a", &vec![7; length], Expect::Anything);
            let bytes = values.get("a").unwrap().bytes;
            assert_eq!((bytes.len(), bytes.capacity()), (length, room));
        }
    }

    #[test]
    fn a_value_is_replaced_only_if_it_is_the_expected_one() {
        let values = SharedValues::default();
        assert_eq!(values.get("a"), None);
        assert_eq!(
            values.set("a", b"1", Expect::Version(7)),
            WriteResult::Beaten
        );
        assert_eq!(values.set("a", b"1", Expect::Absent), WriteResult::Done);
        assert_eq!(values.set("a", b"2", Expect::Absent), WriteResult::Beaten);
        let first = values.get("a").unwrap();
        assert_eq!(*first.bytes, b"1");
        assert_eq!(
            values.set("a", b"2", Expect::Version(first.version)),
            WriteResult::Done
        );
        assert_eq!(
            values.set("a", b"3", Expect::Version(first.version)),
            WriteResult::Beaten
        );
        assert_eq!(values.set("a", b"4", Expect::Anything), WriteResult::Done);
        assert_eq!(*values.get("a").unwrap().bytes, b"4");
        assert_eq!(*first.bytes, b"1", "who reads one keeps it");
    }
}
