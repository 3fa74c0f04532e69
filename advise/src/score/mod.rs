//! The composite score: benefit and cost of protection.
//!
//! [`composite`] and the scales are the formula, which load tests use as well. [`scored_upstreams`] scores upstreams in operation, from
//! [`ScoreReadings`] of a Prometheus, by [`ScoreTerms`].

mod formula;
mod queries;
mod readings;
mod terms;
mod upstream;

pub use formula::{Benefit, Cost, ScaleFault, composite};
pub use queries::{ScoreMeasure, ScoreQueriesError, ScoreQuery, score_queries};
pub use readings::{ReadingsError, ScoreReadings};
pub use terms::{ScoreTerms, TermsError};
pub use upstream::{ScoreGroup, ScoreObjective, ScorePart, ScoredUpstream, scored_upstreams};
