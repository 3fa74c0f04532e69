//! What the tests of a slot share.

use core::time::Duration;
use std::sync::Arc;

use super::Slot;
use super::in_flight::AdmittedRequest;
use crate::config::{Config, Policy};
use crate::permit::{Permit, Purpose};
use crate::tally::Count;
use crate::time::Instant;
use crate::upstream::{UpstreamId, UpstreamKey};

/// The latency target of [`policy`].
pub(super) const TARGET: Duration = Duration::from_millis(300);
pub(super) const WEB: UpstreamId = UpstreamId::OVERFLOW;

pub(super) fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

pub(super) fn policy() -> Policy {
    let text = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#;
    let config = Config::from_json(text.as_bytes()).unwrap();
    config.default_policy().clone()
}

/// A slot whose in-flight requests the host counts for the whole proxy.
pub(super) fn slot() -> Slot {
    let key = UpstreamKey {
        cluster: "web".to_owned(),
        route: None,
    };
    let mut slot = Slot::new(Arc::new(key), 1, &policy(), at(0));
    slot.shared = true;
    slot
}

impl Slot {
    pub(super) fn admit(&mut self, purpose: Purpose, has_body: bool, now: Instant) -> Permit {
        let load = self.held() + 1;
        let entry = AdmittedRequest {
            load,
            purpose,
            explored: None,
            has_body,
        };
        self.enter(WEB, entry, now)
    }

    pub(super) fn count(&self, count: Count) -> u64 {
        self.tally.get(count)
    }
}
