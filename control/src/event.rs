//! How a part of the service reports what happened without knowing who listens.
//!
//! Each part has its own event type. [`crate::serve`] connects the parts with
//! the metrics; events of a part without a listener are ignored.

use std::fmt;
use std::sync::Arc;

/// Receives events of type `E`; cheap to clone. The default ignores them.
pub struct EventSink<E>(Option<Arc<dyn Fn(E) + Send + Sync>>);

impl<E> EventSink<E> {
    /// Calls `listener` with each event, in the task that reports it.
    pub fn new(listener: impl Fn(E) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Reports one event.
    pub fn send(&self, event: E) {
        if let Some(listener) = &self.0 {
            listener(event);
        }
    }
}

impl<E> Clone for EventSink<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E> Default for EventSink<E> {
    fn default() -> Self {
        Self(None)
    }
}

impl<E> fmt::Debug for EventSink<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.0.is_some() {
            "connected"
        } else {
            "idle"
        };
        write!(f, "EventSink({state})")
    }
}
