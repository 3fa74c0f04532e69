//! Allocations that a test counts by thread, and bytes that it counts in the whole process.

#![expect(unsafe_code, reason = "an allocator is unsafe by nature")]

use core::cell::Cell;
use core::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::alloc::{GlobalAlloc, Layout, System};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Of all threads.
static BYTES: AtomicIsize = AtomicIsize::new(0);

fn note(added: usize, freed: usize) {
    BYTES.fetch_add(added.cast_signed() - freed.cast_signed(), Relaxed);
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

/// The fewest allocations that one of some runs reports. The histogram of latencies grows when a request takes longer or shorter than all
/// before. The clock is real here, so that may happen now and then. A request that allocates does so in all runs.
pub(crate) fn fewest(mut run: impl FnMut() -> u64) -> u64 {
    (0..20).map(|_| run()).min().unwrap_or_default()
}

/// The bytes that the process has allocated and not freed.
pub(crate) fn bytes() -> isize {
    BYTES.load(Relaxed)
}
