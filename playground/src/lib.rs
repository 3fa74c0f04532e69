//! The laboratory in a browser.
//!
//! A run is a text, the fragment of the page's address: a story and a seed, or settings of one's own. Everything follows from it:
//! the [`settings`] that it says, the scenario that they make ([`stories`], [`own`]), what a contender does in it ([`played`]),
//! why limit and breaker moved ([`explain`]), and the file with which the command line plays the same run.
//!
//! The page in `web/` knows no field, story, rival or reason by itself: it asks for the [`facts`]. All of this is plain Rust and
//! runs in tests; [`browser`] is the only part that a browser needs.

#![cfg_attr(not(target_arch = "wasm32"), forbid(unsafe_code))]

#[cfg(target_arch = "wasm32")]
mod browser;
pub mod described;
pub mod explain;
pub mod facts;
pub mod field;
pub mod load;
pub mod own;
pub mod played;
pub mod settings;
pub mod stories;
