//! Why queries could not be planned.

use thiserror::Error;

/// Why queries could not be planned.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The caller label is not a label.
    #[error("caller label: found {0:?}, expected the name of a label such as \"job\" or \"node\"")]
    Label(String),
    /// The window or its step is out of range.
    #[error(
        "window {window}s, step {step}s: expected a step of at least 1s and a window that is no shorter"
    )]
    Window {
        /// Seconds of the window.
        window: u32,
        /// Seconds of a step.
        step: u32,
    },
    /// The file of the queries is wrong, which a test of this crate excludes.
    #[error("queries.toml: {0}")]
    Data(#[from] toml::de::Error),
}
