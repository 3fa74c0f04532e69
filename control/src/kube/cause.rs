//! What an error says, with what is behind it: that a connection failed is the least of it. And whether it is for the
//! one who asked to tell.

use std::error::Error;

use kube::runtime::watcher;

/// The words of an error and of all that caused it.
pub(super) fn words(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        // Many repeat their cause in their own words.
        if !said.contains(&words) {
            said = format!("{said}: {words}");
        }
        cause = error.source();
    }
    said
}

/// Whether the cause is that nobody answered, or no longer: [`super::contact`] tells that, once for all who asked.
pub(super) const fn is_unanswered(error: &kube::Error) -> bool {
    use kube::Error::{HyperError, ReadEvents, Service};
    matches!(error, HyperError(_) | ReadEvents(_) | Service(_))
}

/// The same of a watch.
pub(super) const fn is_watch_unanswered(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => {
            is_unanswered(error)
        }
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}
