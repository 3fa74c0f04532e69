//! Runs for people: tables for the terminal, charts, HTML pages that need nothing else.

pub mod bench;
pub mod chart;
pub mod page;
pub mod table;
