//! Tables, charts and pages that show runs to people.
//!
//! The simulator, the demo, the benchmark, the cost measurement and the load tests show the same kind of data, so they
//! share one look:
//!
//! - [`table::Table`]: columns for a terminal, for Markdown and for a page;
//! - [`chart::Chart`] and [`chart::bars::Bars`]: SVG, readable on a light and on a dark ground;
//! - [`page::Page`]: headings, tables and charts as one HTML file that loads nothing and has no script, as Markdown, and
//!   as JSON.
//!
//! The crate knows figures and names. What they mean, and where they come from, is the caller's business.

pub mod chart;
pub mod color;
pub mod page;
pub mod table;
