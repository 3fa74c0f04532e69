//! Runs for people: tables for a terminal, charts over time, pages that need nothing else.
//!
//! The comparison of the laboratory and the testbed's benchmark and demo show the same kind of data, so that
//! they share one look: a [`page::Page`] holds tables and [`chart::Chart`]s, each chart is inline SVG, and both
//! are readable on light and on dark ground. Nothing is loaded from elsewhere, and there is no script.

pub mod chart;
pub mod colour;
pub mod page;
pub mod story;
pub mod table;
