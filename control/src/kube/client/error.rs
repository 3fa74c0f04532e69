//! Describes errors of the client with their causes, and tells whether the server answered at all.

use std::error::Error;

use kube::runtime::watcher;

/// The messages of an error and of all its causes.
pub(in crate::kube) fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        // Many errors repeat the message of their cause.
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}

/// Whether the server did not answer. [`super::connectivity`] logs that once for all requests.
pub(in crate::kube) const fn is_unanswered(error: &kube::Error) -> bool {
    use kube::Error::{HyperError, ReadEvents, Service};
    matches!(error, HyperError(_) | ReadEvents(_) | Service(_))
}

/// Like [`is_unanswered`], for a watch.
pub(in crate::kube) const fn is_watch_unanswered(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => {
            is_unanswered(error)
        }
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}
