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
    /// A new error keeps a policy, or its new text, out of force.
    RenderError,
}
