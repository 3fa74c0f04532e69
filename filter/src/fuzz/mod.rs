//! Fuzz targets of the filter (`docs/fuzzing.md`): as tests they run on some random inputs and on all that are kept in
//! `__fuzz__`, and `make fuzz` runs them for as long as asked.

mod callbacks;
mod hostile;
mod metric_names;
mod pairs;
mod script;
mod world;
