//! Values by index, whose places are used again.

/// Values by index. A place that is released is used again, under another generation; where none is released, values have
/// the indexes of a list.
#[derive(Debug)]
pub(super) struct Pool<T> {
    values: Vec<T>,
    generations: Vec<u32>,
    free: Vec<usize>,
}

impl<T> Pool<T> {
    /// Keeps these values, and has room for more.
    pub(super) fn of(values: Vec<T>) -> Self {
        Self {
            generations: vec![0; values.len()],
            values,
            free: Vec::new(),
        }
    }

    /// Keeps a value; returns its index.
    pub(super) fn insert(&mut self, value: T) -> usize {
        let place = self.free.pop();
        if let Some(place) = place
            && let Some(old) = self.values.get_mut(place)
        {
            *old = value;
            return place;
        }
        self.values.push(value);
        self.generations.push(0);
        self.values.len() - 1
    }

    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.values.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.values.get_mut(index)
    }

    /// Distinguishes the values that had an index one after the other.
    pub(super) fn generation(&self, index: usize) -> u32 {
        self.generations.get(index).copied().unwrap_or(0)
    }

    /// Frees an index for another value. The caller must no longer use it.
    pub(super) fn release(&mut self, index: usize) {
        if let Some(generation) = self.generations.get_mut(index) {
            *generation = generation.wrapping_add(1);
            self.free.push(index);
        }
    }

    /// All values, those that were released included.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    pub(super) fn into_values(self) -> Vec<T> {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_used_again_under_another_generation() {
        let mut pool = Pool::of(vec!['a']);
        let first = pool.insert('b');
        let before = pool.generation(first);
        pool.release(first);
        let second = pool.insert('c');
        assert_eq!((first, second), (1, 1));
        assert_eq!(pool.get(second), Some(&'c'));
        assert_ne!(pool.generation(second), before);
        assert_eq!(pool.insert('d'), 2);
    }
}
