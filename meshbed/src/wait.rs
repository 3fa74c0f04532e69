//! How tests wait: they look again and again, with a bound.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Nothing that has to happen may take longer, on a machine that is busy with other things. Watches that failed are tried
/// again after up to a minute.
pub const BOUND: Duration = Duration::from_secs(180);

/// Distance between two looks.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// Waits until `is_so`.
///
/// # Panics
/// When it is not so within [`BOUND`].
#[track_caller]
pub fn until<F: AsyncFnMut() -> bool>(what: &str, is_so: F) -> impl Future<Output = ()> + use<F> {
    let place = std::panic::Location::caller();
    wait(what.to_owned(), place, is_so)
}

async fn wait(
    what: String,
    place: &std::panic::Location<'_>,
    mut is_so: impl AsyncFnMut() -> bool,
) {
    let deadline = Instant::now() + BOUND;
    // A look that gets no answer must not take longer either.
    while timeout_at(deadline, is_so()).await != Ok(true) {
        assert!(
            Instant::now() < deadline,
            "{place}: not within {BOUND:?}: {what}"
        );
        sleep(POLL).await;
    }
}
