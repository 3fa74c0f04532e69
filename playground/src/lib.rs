//! The laboratory in a browser.
//!
//! A run is a text, the fragment of the page's address: a story and a seed, or settings of a custom story. Everything
//! follows from it:
//!
//! - what it says: [`settings`], with the [`objective`] and, of a custom story, [`values`] of the [`table`] of every
//!   [`field`], and a [`load`]; the page shows them as [`described`];
//! - the scenario that this makes: [`stories`], [`own`];
//! - what happens to it: [`played`], and why limit and breaker moved, [`explain`].
//!
//! The page in `web/` does not contain fields, stories, rivals or reasons: it gets them from [`facts`]. All of this is
//! plain Rust and runs in tests; `browser.rs` is the only part that a browser needs.

#![cfg_attr(not(target_arch = "wasm32"), forbid(unsafe_code))]

#[cfg(target_arch = "wasm32")]
mod browser;
pub mod described;
pub mod explain;
pub mod facts;
pub mod field;
pub mod load;
pub mod objective;
pub mod own;
pub mod played;
pub mod settings;
pub mod stories;
pub mod table;
pub mod values;
