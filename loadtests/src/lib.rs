//! Load tests that stand on tools which users of Envoy know: fortio and k6, and the testbed's own client.
//!
//! Published experiments with static breakers are repeated on real Envoys, with Tidegate beside them. Its rooms:
//!
//! - what a run leaves behind, for whoever makes or shows it: [`result`];
//! - how it is shown: [`report`], [`score`], [`compare`];
//! - the scenarios for k6: [`stage`], [`suite`]; what tools leave behind: [`tool`].

pub mod compare;
pub mod report;
pub mod result;
pub mod score;
pub mod stage;
pub mod suite;
pub mod tool;
