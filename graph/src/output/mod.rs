//! The graph for people and programs.
//!
//! Names come from labels, which anyone who runs a workload may choose. Each form escapes them; see [`plain`] for the characters
//! that none of them shows as they are.

mod document;
mod dot;
mod escape;
mod mermaid;
mod table;

pub use document::{EdgeEntry, GraphDocument, VertexEntry, document, json, schema};
pub use dot::dot;
pub use escape::{plain, plain_json};
pub use mermaid::{MAX_MERMAID_EDGES, mermaid};
pub use table::{HEADINGS, SERVICE_HEADINGS, memory, rows, service_rows};
