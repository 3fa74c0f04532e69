//! Fuzz targets of the control service (`docs/fuzzing.md`): as tests they run on some random inputs and on all inputs in
//! `__fuzz__`, and `make fuzz` runs them for as long as asked. The target for discovery is in `discovery`.

mod destination_rules;
#[path = "../../../core/tests/fuzz/pieces.rs"]
mod pieces;
mod policies;
mod rest;
