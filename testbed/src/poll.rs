//! Waiting in tests: by polling, with a bound.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Longer than anything that a test waits for, even on a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// Polls until `is_so`, and fails with `what` when that takes too long.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(timeout(BOUND, wait).await.is_ok(), "{what}");
}
