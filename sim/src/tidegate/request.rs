//! A simulated request, as the engine asks about it.

use std::time::Duration;

use tidegate_core::config::Config;
use tidegate_core::{Criticality, Request, UpstreamKey};

use crate::contender::Ask;

/// The secret of the simulated proxies. Stories are shorter than the ten minutes after which the filter's changes.
const COHORT_KEY: u64 = 0x7469_6465;

/// A request whose properties are all known beforehand; its caller's identity counts only where the policy uses it.
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

    fn time_left(&mut self) -> Option<Duration> {
        let is_read = !self.config.deadline().is_empty();
        self.ask.time_left.filter(|_| is_read)
    }

    fn has_body(&self) -> bool {
        self.ask.has_body
    }

    /// As in the filter: a keyed hash of what the caller claims. No caller knows the key.
    fn cohort(&mut self) -> Option<u32> {
        self.config.criticality().cohort_header()?;
        let hash = match self.ask.caller {
            Some(caller) => UpstreamKey::hash(caller, None),
            None => UpstreamKey::hash(&format!("{:016x}", self.ask.cohort), None),
        };
        // The finalizer of splitmix64, as in the filter.
        let mixed = (hash ^ COHORT_KEY).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let [a, b, c, d, ..] = (mixed ^ (mixed >> 31)).to_le_bytes();
        Some(u32::from_le_bytes([a, b, c, d]))
    }
}
