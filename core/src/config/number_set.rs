//! A set of numbers of a small range, with a bit for each number. A look-up costs the same for any number of members.

use super::kinds::Numbers;

/// The size of the largest range that fits.
const MOST: u32 = 256;
const BITS_IN_A_WORD: u32 = u64::BITS;
const WORDS: usize = (MOST / BITS_IN_A_WORD) as usize;

/// A set of numbers from a range of [`MOST`] numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberSet {
    min: u32,
    words: [u64; WORDS],
}

impl NumberSet {
    /// The empty set of numbers from `min` on.
    pub(super) const fn empty(min: u32) -> Self {
        Self {
            min,
            words: [0; WORDS],
        }
    }

    /// The default of a field.
    pub(super) fn of(numbers: &Numbers) -> Self {
        let mut set = Self::empty(numbers.min);
        for number in numbers.default {
            set.add(*number);
        }
        set
    }

    /// Adds a number. A number out of range is ignored.
    pub(super) fn add(&mut self, number: u32) {
        let (word, bit) = self.place(number);
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
        }
    }

    /// Whether the set has this number.
    pub(super) fn has(&self, number: u32) -> bool {
        let (word, bit) = self.place(number);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    const fn place(&self, number: u32) -> (usize, u64) {
        let offset = number.wrapping_sub(self.min);
        (
            (offset / BITS_IN_A_WORD) as usize,
            1 << (offset % BITS_IN_A_WORD),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema;

    #[test]
    fn every_range_of_the_schema_fits() {
        for numbers in [
            schema::OVERLOAD_STATUSES,
            schema::OVERLOAD_WITH_RETRY_AFTER,
            schema::OVERLOAD_GRPC,
        ] {
            assert!(numbers.max - numbers.min < MOST, "{numbers:?}");
        }
    }

    #[test]
    fn a_set_has_what_was_put_into_it_and_nothing_else() {
        let members = [400, 429, 463, 464, 503, 599];
        let mut set = NumberSet::empty(400);
        for member in members {
            set.add(member);
        }
        set.add(399);
        set.add(400 + MOST);
        for number in (0..70_000).chain([u32::MAX]) {
            assert_eq!(set.has(number), members.contains(&number), "{number}");
        }
        assert!((0..1_000).all(|number| !NumberSet::empty(0).has(number)));
    }
}
