//! Turns single mechanisms of the laws off, to measure what each of them is worth.
//!
//! `is_off` is called where a mechanism takes effect. Without the cargo feature `ablation` it returns a constant `false`, which
//! the compiler removes; the filter never has the feature (below, and `ci/layers.sh`). With it, `play_without` sets the
//! mechanisms that are off for its thread, so that runs on other threads are not affected.
//!
//! The set of mechanisms that the run reached comes back with the result. If a run never reached a mechanism, it is the same
//! without it, and need not be played again.

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
