//! Handles of upstreams, found by hash.

use crate::by_hash::ByHash;
use crate::upstream::UpstreamId;

/// Handles by hash. Hashes in ascending order are found by walking along, others by search.
pub(super) struct Ids<'a> {
    by_hash: &'a ByHash<UpstreamId>,
    ahead: &'a [(u64, UpstreamId)],
    last: u64,
}

impl<'a> Ids<'a> {
    pub(super) fn new(by_hash: &'a ByHash<UpstreamId>) -> Self {
        Self {
            by_hash,
            ahead: by_hash.as_slice(),
            last: 0,
        }
    }

    pub(super) fn find(&mut self, hash: u64) -> Option<UpstreamId> {
        if hash < self.last {
            return self.by_hash.get(hash).copied();
        }
        self.last = hash;
        while let Some(((known, id), rest)) = self.ahead.split_first() {
            if *known >= hash {
                return (*known == hash).then_some(*id);
            }
            self.ahead = rest;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_found_in_any_order() {
        let mut by_hash = ByHash::new();
        for it in 0..50 {
            by_hash.insert(7 * it, UpstreamId(u32::try_from(it).unwrap()));
        }
        for step in [1, 3, 7, 50, 101] {
            let mut ids = Ids::new(&by_hash);
            for index in 0..700 {
                let hash = index * step % 400;
                assert_eq!(ids.find(hash), by_hash.get(hash).copied(), "{step} {hash}");
            }
        }
    }
}
