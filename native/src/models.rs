//! Models of what threads share, in every interleaving (loom). The files are those of the module, compiled with loom's atomics.

#![expect(unsafe_code, reason = "the models look behind loom's cells")]

mod sync {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
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
