//! Memory of requests that have ended, for the next ones of the same thread.
//!
//! Envoy makes and destroys a filter for each request, on one thread. An allocation and its end cost some 200 instructions, a
//! list of free places thirty. The list holds some places only, so that a flood leaves no memory behind for good. It is never
//! freed: worker threads live as long as the process.

#![expect(unsafe_code, reason = "a place holds a request or the next free place")]

use core::cell::Cell;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::{self, NonNull};

use crate::stream::NativeStream;

/// Most places that a thread keeps: as many as a busy worker has requests at a time.
const MOST_FREE: usize = 256;

/// Room for a request. A free one holds the next free one.
union Place {
    next: *mut Self,
    _request: ManuallyDrop<MaybeUninit<NativeStream>>,
}

struct FreePlaces {
    first: Cell<*mut Place>,
    count: Cell<usize>,
}

thread_local! {
    static FREE: FreePlaces = const {
        FreePlaces { first: Cell::new(ptr::null_mut()), count: Cell::new(0) }
    };
}

/// Puts a request into a place.
pub(crate) fn put(request: NativeStream) -> NonNull<NativeStream> {
    let place = FREE.with(|free| {
        let first = NonNull::new(free.first.get())?;
        // SAFETY: a place in the list is free, and holds the next one.
        free.first.set(unsafe { first.as_ref().next });
        free.count.set(free.count.get().saturating_sub(1));
        Some(first)
    });
    let place = place.unwrap_or_else(|| {
        let next = ptr::null_mut();
        NonNull::from(Box::leak(Box::new(Place { next })))
    });
    let request_place = place.cast::<NativeStream>();
    // SAFETY: the place has room for a request, and nothing else refers to it.
    unsafe { request_place.write(request) };
    request_place
}

/// Ends a request, and keeps its place for another one.
///
/// # Safety
/// The pointer is one of [`put`], and is not used afterwards.
pub(crate) unsafe fn free(request: NonNull<NativeStream>) {
    // SAFETY: the caller's.
    unsafe { request.drop_in_place() };
    let place = request.cast::<Place>();
    FREE.with(|free| {
        if free.count.get() < MOST_FREE {
            // SAFETY: nothing else refers to the place.
            unsafe {
                place.write(Place {
                    next: free.first.get(),
                })
            };
            free.first.set(place.as_ptr());
            free.count.set(free.count.get() + 1);
        } else {
            // SAFETY: the place came from a box.
            drop(unsafe { Box::from_raw(place.as_ptr()) });
        }
    });
}
