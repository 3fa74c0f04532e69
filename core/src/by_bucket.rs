//! Values by bucket of a histogram, with room only from the first bucket to the last that was ever used.
//!
//! The latencies of one upstream fall into a few neighbouring buckets of about a hundred, and there may be a thousand upstreams.

/// The values; see the module. Those without room are the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByBucket<T> {
    first: usize,
    values: Vec<T>,
}

impl<T> ByBucket<T> {
    /// Without room for any.
    pub(crate) const EMPTY: Self = Self {
        first: 0,
        values: Vec::new(),
    };
}

impl<T: Copy + Default> ByBucket<T> {
    /// The value of a bucket, to change it.
    pub(crate) fn at(&mut self, bucket: usize) -> Option<&mut T> {
        // Below the first one, this is beyond the last one as well.
        if bucket.wrapping_sub(self.first) >= self.values.len() {
            self.widen(bucket);
        }
        self.values.get_mut(bucket - self.first)
    }

    /// The values with room, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }

    /// The buckets with room, lowest first, each with its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, T)> + Clone {
        (self.first..).zip(self.values.iter().copied())
    }

    /// Makes room up to this bucket.
    #[cold]
    fn widen(&mut self, bucket: usize) {
        if self.values.is_empty() {
            self.first = bucket;
        }
        let first = self.first.min(bucket);
        let end = (self.first + self.values.len()).max(bucket + 1);
        let mut values = vec![T::default(); end - first];
        let kept = values.iter_mut().skip(self.first - first);
        kept.zip(&self.values).for_each(|(to, from)| *to = *from);
        *self = Self { first, values };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_to_both_sides_and_keeps_what_was_there() {
        let mut values = ByBucket::EMPTY;
        for (bucket, value) in [(7, 1), (9, 2), (5, 3), (7, 4), (71, 5), (0, 6)] {
            *values.at(bucket).unwrap() = value;
        }
        let used: Vec<_> = values.iter().filter(|(_, value)| *value > 0).collect();
        assert_eq!(used, [(0, 6), (5, 3), (7, 4), (9, 2), (71, 5)]);
        assert_eq!(values.iter().count(), 72);
    }

    #[test]
    fn one_bucket_takes_room_for_one() {
        let mut values = ByBucket::EMPTY;
        assert_eq!(values.iter().count(), 0);
        *values.at(40).unwrap() = 1_u16;
        assert_eq!((values.values.len(), values.values.capacity()), (1, 1));
    }
}
