//! Counts that take no room until something is counted.
//!
//! A leader keeps a window for each upstream, and most upstreams are at rest: nothing is in it. It also keeps each upstream as
//! a worker does, for which it has no requests of its own.

use core::ops::{Deref, DerefMut};

/// A value that can be blank.
pub(crate) trait Blank: Default + 'static {
    /// A blank one.
    fn blank() -> &'static Self;

    /// Whether nothing is in it.
    fn is_blank(&self) -> bool;
}

/// A value that takes room from its first change on.
#[derive(Debug)]
pub(crate) struct OnDemand<T>(Option<Box<T>>);

impl<T> Default for OnDemand<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Blank> OnDemand<T> {
    /// Makes it blank, and keeps its room.
    pub(crate) fn clear(&mut self) {
        if let Some(value) = &mut self.0 {
            **value = T::default();
        }
    }
}

/// The copy of a blank one takes no room.
impl<T: Blank + Clone> Clone for OnDemand<T> {
    fn clone(&self) -> Self {
        let value = self.0.as_ref().filter(|value| !value.is_blank());
        Self(value.cloned())
    }
}

impl<T: Blank> Deref for OnDemand<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::blank())
    }
}

impl<T: Blank> DerefMut for OnDemand<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(first)
    }
}

/// Off the request path of most requests.
#[cold]
fn first<T: Default>() -> Box<T> {
    Box::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::{Count, Counted, Tally};

    #[test]
    fn it_takes_room_with_the_first_count_and_its_copy_only_while_it_has_one() {
        let mut counts = OnDemand::<Tally>::default();
        assert_eq!(counts.get(Count::Arrivals), 0);
        assert!(counts.0.is_none());
        counts.add(Count::Arrivals, 2);
        assert_eq!(counts.clone().get(Count::Arrivals), 2);
        counts.clear();
        assert_eq!(counts.get(Count::Arrivals), 0);
        assert!(counts.0.is_some() && counts.clone().0.is_none());
    }

    #[test]
    fn blank_ones_are_like_new_ones() {
        let (window, counted): (&Tally, &Counted) = (Blank::blank(), Blank::blank());
        assert_eq!(*window, Tally::default());
        assert_eq!(*counted, Counted::default());
        assert!(window.is_blank() && counted.is_blank());
    }
}
