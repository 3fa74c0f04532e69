//! The queries: read from `queries.toml`, and planned for a window.
//!
//! Placeholders are replaced as text. All inserted texts are made or checked here: numbers, and a label's name.

mod error;
mod families;
mod measure;
mod plan;

pub use error::QueryError;
pub(crate) use families::{EndKind, EndLabels, Family, families};
pub use measure::{HistogramForm, QueryMeasure};
pub use plan::{ObservationWindow, PlannedQuery, planned};
