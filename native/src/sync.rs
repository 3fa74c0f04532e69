//! What threads agree by. `models` replaces it by loom's, which tries all interleavings.

pub(crate) use core::hint::spin_loop;
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
