//! Documents as people write them: YAML, which includes JSON.
//!
//! Each becomes the tree that core's reader works on. The tree keeps duplicate
//! keys, and the position of every value, so that an error can point at it.

mod build;
mod canonical;
mod emit;
mod marks;
mod scalar;
mod tree;
mod value;
mod yaml;

pub use canonical::canonical;
pub use emit::yaml;
pub use marks::TextPosition;
pub use tree::{Malformed, YamlDocument};
pub use value::{node_of, value_of};
pub use yaml::documents;
