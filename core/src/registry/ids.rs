//! Handles of upstreams, found by hash.

use core::iter::Peekable;
use std::collections::{BTreeMap, btree_map};

use crate::upstream::UpstreamId;

/// Handles by hash. Hashes in ascending order are found by walking along, others by search.
pub(super) struct Ids<'a> {
    by_hash: &'a BTreeMap<u64, UpstreamId>,
    ahead: Peekable<btree_map::Iter<'a, u64, UpstreamId>>,
    last: u64,
}

impl<'a> Ids<'a> {
    pub(super) fn new(by_hash: &'a BTreeMap<u64, UpstreamId>) -> Self {
        Self {
            by_hash,
            ahead: by_hash.iter().peekable(),
            last: 0,
        }
    }

    pub(super) fn find(&mut self, hash: u64) -> Option<UpstreamId> {
        if hash < self.last {
            return self.by_hash.get(&hash).copied();
        }
        self.last = hash;
        while self.ahead.next_if(|(known, _)| **known < hash).is_some() {}
        let (known, id) = self.ahead.peek()?;
        (**known == hash).then_some(**id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_found_in_any_order() {
        let by_hash = (0..50).map(|it| (7 * it, UpstreamId(u32::try_from(it).unwrap())));
        let by_hash = BTreeMap::from_iter(by_hash);
        for step in [1, 3, 7, 50, 101] {
            let mut ids = Ids::new(&by_hash);
            for index in 0..700 {
                let hash = index * step % 400;
                assert_eq!(ids.find(hash), by_hash.get(&hash).copied(), "{step} {hash}");
            }
        }
    }
}
