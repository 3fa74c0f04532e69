//! One worker's state, which its thread and the ticker take in turns.
//!
//! Envoy gives an HTTP filter no timer. A busy worker does its own upkeep in the first hook of each round. A worker without
//! requests has no hook, so the ticker does it in its place. The thread that works with the state holds its token:
//!
//! ```text
//!            hook of the worker
//!        +-------------------------> taken by the worker
//!  free -+                                  |
//!   ^    +-------------------------> taken by the ticker, only if the worker did no upkeep in this round
//!   |      ticker                           |
//!   +---------------------------------------+
//! ```
//!
//! No thread waits for the token. If a worker finds it taken, because it was idle for a tick and wakes up during its own upkeep,
//! it tries again for some microseconds. After that the request passes, and what has ended is left in a queue for the next one
//! that holds the token. The ticker passes over a state that is taken: its worker is awake.

#![expect(
    unsafe_code,
    reason = "the token, not the compiler, tells threads apart"
)]

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use crossbeam_queue::SegQueue;

use crate::upstream_hosts::LateEnd;

use super::sync::{AtomicBool, Ordering, spin_loop};

/// How often a worker looks for the token: some microseconds.
const ATTEMPTS: u32 = 200;

/// Something that one thread at a time works with.
#[derive(Debug)]
pub(crate) struct Shard<S> {
    is_taken: AtomicBool,
    state: UnsafeCell<S>,
    /// Requests that ended while the state was taken.
    pub(crate) ended: SegQueue<LateEnd>,
}

// SAFETY: the state is reached through [`Taken`] alone, of which there is one at a time; `compare_exchange` with `Acquire` and `store`
// with `Release` order its accesses. So it is moved between threads and never shared.
unsafe impl<S> Sync for Shard<S> {}
// SAFETY: as above. The state holds a stream of Envoy's only while a hook of that stream runs.
unsafe impl<S> Send for Shard<S> {}

/// The state, while the token is held.
#[derive(Debug)]
pub(crate) struct Taken<'a, S>(&'a Shard<S>);

impl<S> Shard<S> {
    pub(crate) fn new(state: S) -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            state: UnsafeCell::new(state),
            ended: SegQueue::new(),
        }
    }

    /// The state, if it is free.
    pub(crate) fn try_take(&self) -> Option<Taken<'_, S>> {
        let taken =
            self.is_taken
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        // Not `then_some`: a `Taken` that is made and dropped would give back what another thread holds.
        taken.is_ok().then(|| Taken(self))
    }

    /// The state, after some attempts.
    pub(crate) fn take(&self) -> Option<Taken<'_, S>> {
        self.try_take().or_else(|| self.take_soon())
    }

    #[cold]
    fn take_soon(&self) -> Option<Taken<'_, S>> {
        (0..ATTEMPTS).find_map(|_| {
            spin_loop();
            self.try_take()
        })
    }
}

impl<S> Deref for Taken<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        // SAFETY: this is the only `Taken`, so nothing else refers to the state.
        unsafe { &*self.0.state.get() }
    }
}

impl<S> DerefMut for Taken<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        // SAFETY: as above.
        unsafe { &mut *self.0.state.get() }
    }
}

impl<S> Drop for Taken<'_, S> {
    fn drop(&mut self) {
        self.0.is_taken.store(false, Ordering::Release);
    }
}
