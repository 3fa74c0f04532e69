//! What is shown of policies and proxies, made once for all who look.
//!
//! A listing of thousands of proxies costs milliseconds and megabytes. It is made anew only when something has
//! changed since, and all that are sent it share its bytes.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// A listing as it was last made; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown(Arc<Mutex<Option<(u64, Bytes)>>>);

impl Shown {
    /// The listing at this revision of what it is made of, by `make` if it is not there yet.
    pub(super) fn at(&self, revision: u64, make: impl FnOnce() -> Value) -> Bytes {
        // Others wait: to make it once is the point.
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = shown.as_ref().filter(|(made, _)| *made == revision) {
            return bytes.clone();
        }
        let bytes = Bytes::from(make().to_string());
        *shown = Some((revision, bytes.clone()));
        bytes
    }
}

/// JSON that is written already.
pub(super) fn json(bytes: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_made_once_a_revision_and_shared() {
        let shown = Shown::default();
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
