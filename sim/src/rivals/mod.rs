//! What Tidegate is compared with: algorithms from their published descriptions, one in each file.
//!
//! Each file names its source, its formula and its parameters, which are the published defaults, except
//! where [`ContenderKind::is_tuned`] is true. Shared code is beside them: concurrency limits
//! (`limiter`, `windowed`), trailing windows of outcomes (`rolling`), priorities (`priority`). Bounds are not rivals:
//! they know the story, and only show what could be reached.

mod adaptive_concurrency;
mod admission_control;
mod admission_control_upstream;
mod aimd;
mod bbr;
mod best_moving;
mod best_static;
mod both;
mod cinnamon;
mod dagor;
mod gradient2;
mod hystrix;
mod limiter;
mod linkerd;
mod none;
mod outlier;
mod priority;
mod protego;
mod rajomon;
mod rolling;
mod static_limit;
mod topfull;
#[cfg(test)]
mod trial;
mod vegas;
mod windowed;

use crate::kind::ContenderKind;

/// Every rival, in the order of tables.
pub const RIVALS: &[ContenderKind] = &[
    none::KIND,
    static_limit::DEFAULT,
    static_limit::TUNED,
    static_limit::TUNED_HTTP1,
    outlier::KIND,
    adaptive_concurrency::KIND,
    admission_control::KIND,
    admission_control_upstream::KIND,
    both::KIND,
    aimd::KIND,
    vegas::KIND,
    vegas::WINDOWED,
    gradient2::KIND,
    bbr::KIND,
    protego::KIND,
    cinnamon::KIND,
    dagor::KIND,
    rajomon::KIND,
    topfull::KIND,
    topfull::MIMD,
    hystrix::KIND,
    linkerd::KIND,
];

/// Bounds, which know the story.
pub const BOUNDS: &[ContenderKind] = &[best_static::KIND, best_moving::KIND];
