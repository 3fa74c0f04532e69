//! What a proxy should run: policies and a proxy in, configuration out.
//!
//! One policy wins, and its configuration is used unchanged: policies are not
//! merged, so that one document shows what a proxy runs. The version is a hash
//! of the bytes: the same configuration has the same version on every replica
//! and after every restart, and is never pushed twice.
//!
//! Edge cases: a proxy that no policy matches gets [`UNMATCHED`], which only observes.

mod difference;
mod plugin_config;
mod renderer;
mod version;

pub use difference::{ChangedValue, PolicyDifference, differences};
pub use plugin_config::{PluginConfig, Rendered, UNMATCHED, render};
pub use renderer::{RenderChanges, Renderer};
pub use version::ConfigVersion;
