//! Memory of what has ended, for the next one of the same thread.
//!
//! Envoy makes and destroys a filter for each request, on one thread. An allocation and its end cost some 200 instructions, a
//! list of free places thirty. The list holds some places only, so that a flood leaves no memory behind for good. They are never
//! freed: worker threads live as long as the process.

#![expect(unsafe_code, reason = "a place holds a value or the next free place")]

use core::cell::Cell;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::{self, NonNull};

/// Most places that a thread keeps: as many as a busy worker has requests at a time.
const MOST_FREE: usize = 256;

/// Room for a value. A free one holds the next free one.
union Place<T> {
    next: *mut Self,
    _value: ManuallyDrop<MaybeUninit<T>>,
}

/// The free places of one thread.
pub(crate) struct FreePlaces<T> {
    first: Cell<*mut Place<T>>,
    count: Cell<usize>,
}

impl<T> FreePlaces<T> {
    pub(crate) const fn new() -> Self {
        Self {
            first: Cell::new(ptr::null_mut()),
            count: Cell::new(0),
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    /// Puts a value into a place.
    pub(crate) fn put(&self, value: T) -> NonNull<T> {
        let place = match NonNull::new(self.first.get()) {
            Some(first) => {
                // SAFETY: a place in the list is free, and holds the next one.
                self.first.set(unsafe { first.as_ref().next });
                self.count.set(self.count.get().saturating_sub(1));
                first
            }
            None => {
                let next = ptr::null_mut();
                NonNull::from(Box::leak(Box::new(Place { next })))
            }
        };
        let place = place.cast::<T>();
        // SAFETY: the place has room for a value, and nothing else refers to it.
        unsafe { place.write(value) };
        place
    }

    /// Ends a value, and keeps its place for another one.
    ///
    /// # Safety
    /// The pointer is one of [`FreePlaces::put`], of any thread, and is not used afterwards.
    pub(crate) unsafe fn free(&self, value: NonNull<T>) {
        // SAFETY: the caller's.
        unsafe { value.drop_in_place() };
        let place = value.cast::<Place<T>>();
        if self.count.get() < MOST_FREE {
            let next = self.first.get();
            // SAFETY: nothing else refers to the place.
            unsafe { place.write(Place { next }) };
            self.first.set(place.as_ptr());
            self.count.set(self.count.get() + 1);
        } else {
            // SAFETY: the place came from a box.
            drop(unsafe { Box::from_raw(place.as_ptr()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn a_place_is_used_again_and_a_flood_leaves_few() {
        let (places, alive) = (FreePlaces::new(), Rc::new(()));
        let first = places.put(Rc::clone(&alive));
        // SAFETY: each pointer is freed once.
        unsafe { places.free(first) };
        assert_eq!(Rc::strong_count(&alive), 1, "the value was dropped");
        assert_eq!(places.put(Rc::clone(&alive)), first);
        let flood: Vec<_> = (0..3 * MOST_FREE)
            .map(|_| places.put(Rc::clone(&alive)))
            .collect();
        assert_eq!(Rc::strong_count(&alive), 2 + 3 * MOST_FREE);
        for value in flood.into_iter().chain([first]) {
            // SAFETY: as above.
            unsafe { places.free(value) };
        }
        assert_eq!(Rc::strong_count(&alive), 1);
        assert_eq!(places.count.get(), MOST_FREE);
    }
}
