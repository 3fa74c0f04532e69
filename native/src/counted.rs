//! Allocations that a test counts, by thread.

#![expect(unsafe_code, reason = "an allocator is unsafe by nature")]

use core::cell::Cell;
use core::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::alloc::{GlobalAlloc, Layout, System};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The bytes of all threads, and the most since the last look.
static BYTES: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);

fn note(added: usize, freed: usize) {
    let change = added.cast_signed() - freed.cast_signed();
    let bytes = BYTES.fetch_add(change, Relaxed) + change;
    MOST.fetch_max(bytes, Relaxed);
}

/// The system's allocator, counting.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all calls are the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        note(layout.size(), 0);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note(0, layout.size());
        // SAFETY: the caller's.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        note(size, layout.size());
        // SAFETY: the caller's.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// How often this thread has allocated so far.
pub(crate) fn count() -> u64 {
    COUNT.get()
}

/// The bytes that are allocated, and the most that were since the last call.
pub(crate) fn bytes() -> (isize, isize) {
    let bytes = BYTES.load(Relaxed);
    (bytes, MOST.swap(bytes, Relaxed))
}
