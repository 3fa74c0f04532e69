//! What the filter publishes: the table of metrics, their names, and the counts behind them.

pub mod description;
pub mod exporter;
pub(crate) mod handle;
pub mod info;
mod label_values;
pub mod name;
pub mod reference;
pub mod series;
pub mod sources;
pub mod table;
