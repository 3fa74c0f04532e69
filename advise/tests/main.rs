//! Tests of recommendations, splits, checks and scores: each file tests one part.
//!
//! They are one program, because linking one for each file takes longer than the tests.

mod chain;
mod common;
mod recommend;
mod score;
mod split;
mod traces;
