//! The benchmark: every scenario on every contender, one after the other, on real sockets.
//!
//! A [`plan`] lists the runs; each run is written down in a [`journal`] as soon as it is over, so that an
//! interrupted benchmark continues where it was; [`clock`] knows how long the rest takes; [`report`] makes medians
//! of the repetitions and compares them with the targets.

pub mod clock;
pub mod journal;
pub mod plan;
pub mod report;
