//! Tables for a terminal, charts, and pages that need nothing else.
//!
//! The simulator, the testbed's benchmark and demo, and the load tests show the same kind of data, so they share one
//! look. A [`page::Page`] holds tables and [`chart::Chart`]s. Each chart is inline SVG. Pages and charts are readable on
//! a light and on a dark ground. A page loads nothing from elsewhere and has no script.

pub mod chart;
pub mod colour;
pub mod page;
pub mod table;
