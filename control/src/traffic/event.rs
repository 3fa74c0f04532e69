//! The events that the reader of the graph reports to its listeners, such as the metrics.

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficEvent {
    /// The graph was read.
    Read {
        /// When, in seconds since 1970.
        at: i64,
        /// How many edges it has.
        edges: usize,
    },
    /// It could not be read; the last one stays.
    Failed,
}
