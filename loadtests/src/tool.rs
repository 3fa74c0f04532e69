//! The programs that make load, and what they leave behind in our own terms.
//!
//! What is known of single requests becomes figures and points over time in [`tally`].

pub mod tally;
