//! What the sources of policies report to its listener, such as the metrics.

/// One thing that happened.
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
    /// The policies were put in force.
    Disabled {
        /// Whether the switch for all policies is off.
        all: bool,
        /// How many policies say `enabled: false` themselves.
        policies: usize,
    },
    /// A new error keeps a policy, or its new text, out of force.
    RenderError,
}
