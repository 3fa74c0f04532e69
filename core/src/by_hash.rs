//! Values by the hash of their upstream, sorted.
//!
//! Each round walks all upstreams in this order, some times, and new ones come rarely. A walk along a vector costs a tenth of
//! one through the nodes of a tree, and leaves no room unused. A look-up begins where the last one ended, because those of a walk
//! come in this order as well.

use core::cell::Cell;

/// The values; see the module.
#[derive(Debug)]
pub(crate) struct ByHash<T> {
    values: Vec<(u64, T)>,
    /// Where the last one was found.
    found: Cell<usize>,
}

impl<T> ByHash<T> {
    pub(crate) const fn new() -> Self {
        Self {
            values: Vec::new(),
            found: Cell::new(0),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.position(hash).is_ok()
    }

    pub(crate) fn get(&self, hash: u64) -> Option<&T> {
        let position = self.position(hash).ok()?;
        self.values.get(position).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, hash: u64) -> Option<&mut T> {
        let position = self.position(hash).ok()?;
        self.values.get_mut(position).map(|(_, value)| value)
    }

    /// The value of a hash, made if there is none.
    pub(crate) fn get_or_insert_with(
        &mut self,
        hash: u64,
        new: impl FnOnce() -> T,
    ) -> Option<&mut T> {
        let position = match self.position(hash) {
            Ok(position) => position,
            Err(position) => {
                self.values.insert(position, (hash, new()));
                position
            }
        };
        self.values.get_mut(position).map(|(_, value)| value)
    }

    pub(crate) fn insert(&mut self, hash: u64, value: T) {
        match self.position(hash) {
            Ok(position) => {
                if let Some((_, old)) = self.values.get_mut(position) {
                    *old = value;
                }
            }
            Err(position) => self.values.insert(position, (hash, value)),
        }
    }

    pub(crate) fn remove(&mut self, hash: u64) -> Option<T> {
        let position = self.position(hash).ok()?;
        Some(self.values.remove(position).1)
    }

    /// All of them, in the order of hashes.
    pub(crate) fn as_slice(&self) -> &[(u64, T)] {
        &self.values
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().map(|(_, value)| value)
    }

    /// The position of a hash, or where it belongs.
    fn position(&self, hash: u64) -> Result<usize, usize> {
        let last = self.found.get();
        let near = [last, last.wrapping_add(1)].into_iter().find(|near| {
            let value = self.values.get(*near);
            value.is_some_and(|(known, _)| *known == hash)
        });
        let found = match near {
            Some(near) => Ok(near),
            None => self.values.binary_search_by_key(&hash, |(known, _)| *known),
        };
        if let Ok(position) = found {
            self.found.set(position);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_and_stay_sorted_whatever_order_they_come_in() {
        let mut values = ByHash::new();
        for hash in [5, 1, 9, 3, 7, 3] {
            values.insert(hash, 10 * hash);
        }
        assert!(values.as_slice().iter().map(|(hash, _)| hash).is_sorted());
        assert_eq!(values.len(), 5);
        assert_eq!((values.get(3), values.get(4)), (Some(&30), None));
        assert_eq!(values.get_or_insert_with(4, || 1), Some(&mut 1));
        assert_eq!(values.get_or_insert_with(4, || 2), Some(&mut 1));
        if let Some(value) = values.get_mut(9) {
            *value = 8;
        }
        assert_eq!(values.remove(9), Some(8));
        assert!(!values.contains(9) && values.contains(4));
        for (walked, expected) in [
            (1, true),
            (2, false),
            (3, true),
            (4, true),
            (5, true),
            (1, true),
        ] {
            assert_eq!(values.contains(walked), expected, "{walked}");
        }
        values.values_mut().for_each(|value| *value = 0);
        assert_eq!(values.get(1), Some(&0));
    }
}
