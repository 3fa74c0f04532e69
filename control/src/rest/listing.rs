//! Listings of policies and proxies, rendered once for all clients.
//!
//! A listing of thousands of proxies costs milliseconds and megabytes. It is rendered again only after a change, and
//! all responses share its bytes.

use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
/// The last rendered listing; cheap to clone. Its data has revisions of type `R`.
#[derive(Debug, Clone)]
pub(super) struct CachedListing<R = u64>(Arc<Mutex<Option<(R, Bytes)>>>);

impl<R> Default for CachedListing<R> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<R: PartialEq> CachedListing<R> {
    /// The listing at this revision of its data; `make` renders it, as JSON, if it is not cached.
    pub(super) fn at<T: Display>(&self, revision: R, make: impl FnOnce() -> T) -> Bytes {
        // Other requests wait for the lock, so that the listing is rendered only once.
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = shown.as_ref().filter(|(made, _)| *made == revision) {
            return bytes.clone();
        }
        let bytes = Bytes::from(make().to_string());
        *shown = Some((revision, bytes.clone()));
        bytes
    }
}

/// A response with rendered JSON.
pub(super) fn json(bytes: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::Value;

    #[test]
    fn a_listing_is_rendered_once_per_revision_and_shared() {
        let shown = CachedListing::default();
        let mut made = 0;
        let mut at = |revision| {
            shown.at(revision, || {
                made += 1;
                Value::from(revision)
            })
        };

        let (first, again, next) = (at(1), at(1), at(2));

        assert_eq!((&first[..], &next[..]), (&b"1"[..], &b"2"[..]));
        assert_eq!(first.as_ptr(), again.as_ptr());
        assert_eq!(made, 2);
    }
}
