//! The events that the sources of policies report to their listeners, such as the metrics.

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceEvent {
    /// The contents of a source were counted.
    Counted {
        /// `files`, `rest` or `kubernetes`.
        source: &'static str,
        /// Its valid policies.
        policies: usize,
        /// Its errors.
        problems: usize,
    },
    /// The number of disabled policies was counted, each time policies are put in force.
    Disabled {
        /// Whether all policies are off.
        all: bool,
        /// How many policies have `enabled: false` themselves.
        policies: usize,
    },
    /// A new error keeps a policy, or its new text, out of force.
    RenderError,
}
