//! What was learned, kept for VMs to come.
//!
//! A leader knows the upstreams that were in use since it leads. What a leader before it knew of others must not be
//! lost with the first write of the new one, so that is read once and carried along.

use core::time::Duration;

use tidegate_core::{Directive, Directives, Instant};

/// How often what was learned is written.
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

    /// This worker leads, after a leader who left this.
    pub fn open(&mut self, inherited: Option<Directives>) {
        let mut entries = inherited.unwrap_or_default().entries;
        entries.truncate(MAX_INHERITED);
        self.inherited = Some(entries);
    }

    /// Another worker leads.
    pub fn close(&mut self) {
        *self = Self::default();
    }

    /// What to write: what this leader learned, and what it inherited of other upstreams. `None` for nothing.
    pub fn merge(&mut self, mut learned: Directives, now: Instant) -> Option<Directives> {
        self.written_at = Some(now);
        let inherited = self.inherited.get_or_insert_default();
        // Own entries come sorted by upstream.
        let own = learned.entries.len();
        inherited.retain(|entry| {
            learned
                .entries
                .binary_search_by_key(&entry.upstream, |entry| entry.upstream)
                .is_err()
        });
        learned.entries.extend_from_slice(inherited);
        (own > 0).then_some(learned)
    }
}
