//! The benchmark: every scenario on every contender, one after the other, on real sockets.
//!
//! A [`plan`] lists the runs; a [`journal`] records each run as soon as it is over, so that an interrupted benchmark
//! continues where it stopped; [`clock`] estimates how long the rest takes; [`report`] takes medians of the repetitions and
//! compares them with the targets.

pub mod clock;
pub mod journal;
pub mod plan;
pub mod report;
