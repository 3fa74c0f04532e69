//! What runs look like: the benchmark's tables and page.

pub mod bench;
