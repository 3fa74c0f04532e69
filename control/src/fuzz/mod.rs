//! Fuzz targets of the control service (`docs/fuzzing.md`): as tests they run on some random inputs and on all that are
//! kept in `__fuzz__`, and `make fuzz` runs them for as long as asked. That of discovery is in `xds`.

mod destination_rules;
#[path = "../../../core/tests/fuzz/pieces.rs"]
mod pieces;
mod policies;
mod rest;
