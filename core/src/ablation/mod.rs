//! Turns single mechanisms of the laws off, to measure what each of them is worth.
//!
//! The question `is_off` is asked where a mechanism takes effect. Without the cargo feature `ablation` the answer is a constant
//! `false`, which the compiler removes; the filter never has the feature (below, and `ci/layers.sh`). With it, `play_without` answers
//! from a set that belongs to the thread, so that runs on other threads are not affected.
//!
//! The set of mechanisms that were asked about comes back with the result. A run that never asked about a mechanism is the
//! same run without it, and need not be played.

#[cfg(all(feature = "ablation", target_family = "wasm"))]
compile_error!("the feature ablation is for the laboratory alone, and never in a module");

mod mechanism;
#[cfg(feature = "ablation")]
mod switch;

pub use mechanism::Mechanism;
#[cfg(feature = "ablation")]
pub(crate) use switch::is_off;
#[cfg(feature = "ablation")]
pub use switch::{Mechanisms, play_without};

/// Whether a mechanism is turned off: never, without the feature.
#[cfg(not(feature = "ablation"))]
pub(crate) const fn is_off(_: Mechanism) -> bool {
    false
}
