//! Which test may use the machine.
//!
//! Scored runs need the machine alone: on two cores the start of a second Envoy costs them goodput. Tests that count single
//! requests can share it. Runs take one lock as writers, all other tests as readers.
//!
//! A test may have only one turn at a time. A second one would wait for a run that waits for the first to end: the lock is
//! fair, so a reader queues behind a writer. So a second turn always fails at once, instead of hanging now and then.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::const_new(());

/// The tests that have a turn or wait for one.
static TESTS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The right to use the machine, until dropped.
pub(crate) struct Turn {
    _guard: Guard,
    _entry: Entry,
}

#[expect(dead_code, reason = "the guards are held, not read")]
enum Guard {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// A turn shared with other tests that count single requests.
///
/// # Panics
///
/// If the calling test has a turn already.
pub(crate) async fn shared() -> Turn {
    let entry = Entry::of_this_test();
    Turn {
        _guard: Guard::Shared(MACHINE.read().await),
        _entry: entry,
    }
}

/// A turn alone on the machine.
///
/// # Panics
///
/// If the calling test has a turn already.
pub(crate) async fn alone() -> Turn {
    let entry = Entry::of_this_test();
    Turn {
        _guard: Guard::Alone(MACHINE.write().await),
        _entry: entry,
    }
}

/// A test in the list; dropping this removes it.
struct Entry(String);

impl Entry {
    /// The harness names the thread of every test after it.
    fn of_this_test() -> Self {
        let test = thread::current().name().unwrap_or_default().to_owned();
        let is_new = TESTS.lock().unwrap().insert(test.clone());
        assert!(
            is_new,
            "{test} asks for a second turn before its first has ended: drop its stage first"
        );
        Self(test)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        TESTS.lock().unwrap().remove(&self.0);
    }
}
