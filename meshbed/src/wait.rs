//! How tests wait: they poll, with a bound.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Longest wait for anything that must happen, even on a busy machine. Failed watches are retried after up to a minute.
pub const BOUND: Duration = Duration::from_secs(180);

/// Interval between two polls.
const POLL: Duration = Duration::from_millis(50);

/// Waits until `is_so`.
///
/// # Panics
/// If it is not so within [`BOUND`].
#[track_caller]
pub fn until<F: AsyncFnMut() -> bool>(what: &str, is_so: F) -> impl Future<Output = ()> + use<F> {
    until_within(BOUND, what, is_so)
}

/// The same, for what a page promises to happen sooner.
///
/// # Panics
/// If it is not so within `bound`.
#[track_caller]
pub fn until_within<F: AsyncFnMut() -> bool>(
    bound: Duration,
    what: &str,
    mut is_so: F,
) -> impl Future<Output = ()> + use<F> {
    let place = std::panic::Location::caller();
    let look = async move || match is_so().await {
        true => Ok(()),
        false => Err(String::new()),
    };
    wait(bound, what.to_owned(), place, look)
}

/// Waits until `read` returns `wanted`.
///
/// # Panics
/// If it does not within [`BOUND`]; the message has the last value.
#[track_caller]
pub fn until_equal<F: AsyncFnMut() -> String>(
    what: &str,
    wanted: &str,
    mut read: F,
) -> impl Future<Output = ()> + use<F> {
    let place = std::panic::Location::caller();
    let wanted = wanted.to_owned();
    wait(BOUND, what.to_owned(), place, async move || {
        let is = read().await;
        match is == wanted {
            true => Ok(()),
            false => Err(format!(" is {wanted}; last: {is}")),
        }
    })
}

/// Polls until it gets `Ok`; an error describes what was found instead.
async fn wait(
    bound: Duration,
    what: String,
    place: &std::panic::Location<'_>,
    mut look: impl AsyncFnMut() -> Result<(), String>,
) {
    let deadline = Instant::now() + bound;
    let mut seen = String::from("; no answer");
    // A poll without an answer must not take longer than the bound either.
    loop {
        match timeout_at(deadline, look()).await {
            Ok(Ok(())) => return,
            Ok(Err(other)) => seen = other,
            Err(_) => {}
        }
        assert!(
            Instant::now() < deadline,
            "{place}: not within {bound:?}: {what}{seen}"
        );
        sleep(POLL).await;
    }
}
