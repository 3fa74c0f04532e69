//! A request of the laboratory, as the engine asks about it.

use tidegate_core::config::Config;
use tidegate_core::{Criticality, Request, UpstreamKey};

use crate::contender::Ask;

/// Everything is known beforehand; who a caller is matters where the policy says so.
pub(super) struct Asking<'a> {
    pub(super) ask: &'a Ask<'a>,
    pub(super) config: &'a Config,
}

impl Request for Asking<'_> {
    fn criticality(&mut self) -> Criticality {
        self.ask.criticality
    }

    fn is_retry(&mut self) -> bool {
        self.ask.attempt > 1
    }

    fn is_health_check(&mut self) -> bool {
        self.config.ignore().matches(None, self.ask.agent)
    }

    fn has_body(&self) -> bool {
        self.ask.has_body
    }

    /// By the filter's hash of what the caller says.
    fn cohort(&mut self) -> Option<u32> {
        self.config.criticality().cohort_header()?;
        let hash = match self.ask.caller {
            Some(caller) => UpstreamKey::hash(caller, None),
            None => UpstreamKey::hash(&format!("{:016x}", self.ask.cohort), None),
        };
        let [a, b, c, d, ..] = hash.to_le_bytes();
        Some(u32::from_le_bytes([a, b, c, d]))
    }
}
