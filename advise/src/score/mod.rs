//! The composite score: what protection gives, and what it costs.

mod formula;

pub use formula::{Benefit, Cost, ScaleFault, composite};
