//! Tests of the simulator: each file tests one part.
//!
//! They are one program, because linking one for each file takes longer than the tests.

mod adversaries;
mod chains;
mod chaos;
mod closed_loop;
mod fleet;
mod known_gaps;
mod laws;
mod rivals;
mod scenarios;
mod sweep;
mod world;
