//! A request of the laboratory, as the engine asks about it.

use tidegate_core::{Criticality, Request};

use crate::contender::Ask;

/// Everything is known beforehand, and callers are not told apart.
pub(super) struct Asking<'a>(pub(super) &'a Ask<'a>);

impl Request for Asking<'_> {
    fn criticality(&mut self) -> Criticality {
        self.0.criticality
    }

    fn is_retry(&mut self) -> bool {
        self.0.attempt > 1
    }

    fn is_health_check(&mut self) -> bool {
        false
    }

    fn has_body(&self) -> bool {
        self.0.has_body
    }

    fn cohort(&mut self) -> Option<u32> {
        None
    }
}
