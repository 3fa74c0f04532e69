//! Learned state, kept for later VMs.
//!
//! A leader knows the upstreams that were in use while it leads. The learned state of other upstreams, from leaders before,
//! must not be lost with the first write of a new leader. So it is read once and written along.

use std::collections::BTreeSet;

use core::time::Duration;

use tidegate_core::{Directive, Directives, Instant};

/// How often learned state is written.
const EVERY: Duration = Duration::from_secs(1);
/// Most upstreams carried along from leaders before: as many as a configuration may allow.
const MAX_INHERITED: usize = 10_000;

/// What leaders before this one had learned.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    inherited: Option<Vec<Directive>>,
    written_at: Option<Instant>,
}

impl Archive {
    /// Whether it is time to write.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.written_at
            .is_none_or(|at| now.saturating_since(at) >= EVERY)
    }

    /// Whether the inheritance has been read.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.inherited.is_some()
    }

    /// This worker leads, after a leader that left this.
    pub fn open(&mut self, inherited: Option<Directives<'_>>) {
        let inherited = inherited.unwrap_or_default();
        self.inherited = Some(inherited.entries().take(MAX_INHERITED).collect());
    }

    /// Another worker leads now.
    pub fn close(&mut self) {
        *self = Self::default();
    }

    /// What to write: what this leader learned, and what it inherited of other upstreams. `None` for nothing.
    pub fn merge(
        &mut self,
        learned: Directives<'static>,
        now: Instant,
    ) -> Option<Directives<'static>> {
        self.written_at = Some(now);
        if learned.is_empty() {
            return None;
        }
        let inherited = self.inherited.get_or_insert_default();
        if inherited.is_empty() {
            return Some(learned);
        }
        let own: BTreeSet<u64> = learned.entries().map(|entry| entry.upstream).collect();
        inherited.retain(|entry| !own.contains(&entry.upstream));
        let all = learned.entries().chain(inherited.iter().copied());
        Some(Directives::new(learned.leader, learned.at, all))
    }
}
