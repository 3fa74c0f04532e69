//! The token of a worker's state, with real threads. `models` has all their interleavings.

use crate::shard::Shard;

#[test]
fn one_at_a_time_and_nothing_is_lost() {
    let shard = Shard::new(0_u64);
    let taken = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut taken = 0_u64;
                    for _ in 0..20_000 {
                        if let Some(mut state) = shard.take() {
                            *state += 1;
                            taken += 1;
                        }
                    }
                    taken
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|it| it.join().unwrap())
            .sum::<u64>()
    });
    assert_eq!(*shard.take().unwrap(), taken);
}

#[test]
fn a_state_that_is_taken_is_passed_over() {
    let shard = Shard::new(());
    let held = shard.try_take();
    assert!(held.is_some());
    assert!(shard.try_take().is_none());
    assert!(shard.take().is_none());
    drop(held);
    assert!(shard.take().is_some());
}

#[test]
fn a_panic_gives_the_token_back() {
    let shard = Shard::new(());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _held = shard.take();
        panic!("a test's own");
    }));
    assert!(panicked.is_err());
    assert!(shard.take().is_some());
}
