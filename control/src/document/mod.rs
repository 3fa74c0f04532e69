//! Documents as people write them: YAML, of which JSON is a part.
//!
//! Each becomes the tree that core's reader works on, which keeps a key that
//! stands twice, and remembers the line of every value, so that an error can
//! point at it.

mod build;
mod emit;
mod marks;
mod scalar;
mod value;
mod yaml;

pub use emit::yaml;
pub use marks::Place;
pub use value::{node_of, value_of};
pub use yaml::{Document, Malformed, documents};
