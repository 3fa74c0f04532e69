//! A callback for each request that was answered.

use std::fmt;
use std::sync::Arc;

use hyper::header::HeaderMap;

type WitnessFn = dyn Fn(&HeaderMap) + Send + Sync;

/// Called for every answer without a failure, as it is handed to the connection.
#[derive(Clone)]
pub(super) struct Witness(Arc<WitnessFn>);

impl Witness {
    pub(super) fn new(witness: impl Fn(&HeaderMap) + Send + Sync + 'static) -> Self {
        Self(Arc::new(witness))
    }

    pub(super) fn tell(&self, headers: &HeaderMap) {
        (self.0)(headers);
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}
