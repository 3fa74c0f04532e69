//! Models of what threads share, in every interleaving (loom). The files are those of the module, compiled with loom's atomics.

#![expect(unsafe_code, reason = "the models look behind loom's cells")]

mod sync {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
}

/// Loom takes an atomic operation that is `SeqCst` for one that only acquires and releases. With a fence on each side it is in one
/// order with all others, as it is in the language.
mod ordered {
    use loom::sync::atomic::{AtomicU64 as Inner, Ordering, fence};

    #[derive(Debug, Default)]
    pub(crate) struct AtomicU64(Inner);

    impl AtomicU64 {
        fn between<T>(&self, act: impl FnOnce(&Inner) -> T) -> T {
            fence(Ordering::SeqCst);
            let result = act(&self.0);
            fence(Ordering::SeqCst);
            result
        }

        pub(crate) fn load(&self, order: Ordering) -> u64 {
            self.between(|inner| inner.load(order))
        }

        pub(crate) fn store(&self, value: u64, order: Ordering) {
            self.between(|inner| inner.store(value, order));
        }

        pub(crate) fn swap(&self, value: u64, order: Ordering) -> u64 {
            self.between(|inner| inner.swap(value, order))
        }

        pub(crate) fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
            self.between(|inner| inner.fetch_or(value, order))
        }

        pub(crate) fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            self.between(|inner| inner.fetch_add(value, order))
        }
    }
}

#[path = "metrics"]
mod metrics {
    mod sync {
        pub(crate) use super::super::ordered::AtomicU64;
        pub(crate) use loom::sync::atomic::Ordering;
    }

    #[path = "cell.rs"]
    #[expect(dead_code, reason = "a model has one cell")]
    mod cell;

    use loom::sync::Arc;
    use loom::thread;

    use cell::{ChangedBits, MetricCell};
    use sync::Ordering;

    const BIT: u64 = 1 << 3;

    fn count_one(shared: &(MetricCell, ChangedBits)) {
        shared.0.value.fetch_add(1, Ordering::SeqCst);
        shared.1.mark(BIT);
    }

    /// Returns whether there was something to tell.
    fn tell(shared: &(MetricCell, ChangedBits)) -> bool {
        let has_changed = shared.1.take() & BIT != 0;
        if has_changed {
            let value = shared.0.value.load(Ordering::SeqCst);
            shared.0.published.store(value, Ordering::Relaxed);
        }
        has_changed
    }

    #[test]
    fn no_change_of_a_metric_is_missed() {
        loom::model(|| {
            let shared = Arc::new((MetricCell::default(), ChangedBits::default()));
            let workers = [(); 2].map(|()| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || count_one(&shared))
            });
            tell(&shared);
            for worker in workers {
                worker.join().unwrap();
            }
            tell(&shared);
            assert_eq!(shared.0.published.load(Ordering::Relaxed), 2);
            assert!(!tell(&shared));
        });
    }
}

#[path = "notice.rs"]
mod notice;
#[path = "published.rs"]
mod published;
#[path = "shard.rs"]
#[expect(dead_code, reason = "models do not wait for the token")]
mod shard;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use notice::Notice;
use published::PublishedText;
use shard::Shard;

/// Counts one in a state; loom fails the model if another thread is at it, or if what that wrote is not seen.
fn count_one(state: &UnsafeCell<u64>) {
    // SAFETY: loom checks it.
    state.with_mut(|count| unsafe { *count += 1 });
}

#[test]
fn one_thread_at_a_time_works_with_a_state_and_sees_all_before() {
    loom::model(|| {
        let shard = Arc::new(Shard::new(UnsafeCell::new(0_u64)));
        let work = |shard: &Shard<UnsafeCell<u64>>| {
            let mut done = 0;
            for _ in 0..2 {
                if let Some(state) = shard.try_take() {
                    count_one(&state);
                    done += 1;
                }
            }
            done
        };
        let other = Arc::clone(&shard);
        let other = thread::spawn(move || work(&other));
        let done = work(&shard) + other.join().unwrap();
        let state = shard.try_take().unwrap();
        // SAFETY: loom checks it.
        assert_eq!(state.with(|count| unsafe { *count }), done);
    });
}

/// A worker that finds its state taken leaves a note, as for a request that has ended; a new configuration or round leaves one
/// too. The thread that takes the note sees what it is about, and no note is lost.
#[test]
fn what_a_note_is_about_is_seen_by_the_thread_that_takes_it() {
    loom::model(|| {
        let shard = Arc::new(Shard::new(UnsafeCell::new(0_u64)));
        let shared = Arc::new((Notice::left(), AtomicU64::new(0)));
        // The numbers only grow: a hook follows the newest that it sees.
        let hook = |shard: &Shard<UnsafeCell<u64>>, shared: &(Notice, AtomicU64)| {
            let (notice, newest) = shared;
            if let Some(state) = shard.try_take()
                && notice.is_left()
            {
                notice.take();
                let seen = newest.load(Ordering::Relaxed);
                // SAFETY: loom checks it.
                state.with_mut(|followed| unsafe { *followed = (*followed).max(seen) });
            }
        };
        let main = Arc::clone(&shared);
        let main = thread::spawn(move || {
            for number in 1..=2 {
                main.1.store(number, Ordering::Relaxed);
                main.0.leave();
            }
        });
        let ticker = (Arc::clone(&shard), Arc::clone(&shared));
        let ticker = thread::spawn(move || hook(&ticker.0, &ticker.1));
        hook(&shard, &shared);
        main.join().unwrap();
        ticker.join().unwrap();
        hook(&shard, &shared);
        let state = shard.try_take().unwrap();
        // SAFETY: loom checks it.
        assert_eq!(state.with(|followed| unsafe { *followed }), 2);
        assert!(!shared.0.is_left());
    });
}

#[test]
fn a_text_that_is_read_while_it_is_replaced_is_one_or_the_other() {
    loom::model(|| {
        let text = Arc::new(PublishedText::<2>::empty());
        text.write(b"first");
        let writer = Arc::clone(&text);
        let writer = thread::spawn(move || writer.write(b"another text"));
        if let Some(read) = text.read() {
            assert!([&b"first"[..], b"another text"].contains(&read.as_bytes()));
        }
        writer.join().unwrap();
        assert_eq!(text.read().unwrap().as_bytes(), b"another text");
    });
}
