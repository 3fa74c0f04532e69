//! Fuzz targets of core (`docs/fuzzing.md`): as tests they run on some random inputs and on all that are kept in
//! `__fuzz__`, and `make fuzz` runs them for as long as asked.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a target that panics has found something"
)]

mod configuration;
mod durations;
#[path = "../envelope/mod.rs"]
mod envelope;
mod headers;
mod names;
mod pieces;
mod saved_state;
mod shared_data;
mod trees;
