//! Load tests that stand on tools which users of Envoy know: fortio and k6, and the testbed's own client.
//!
//! Published experiments with static breakers are repeated on real Envoys, with Tidegate beside them. Its rooms:
//!
//! - the results of a run: [`result`];
//! - the experiments as data: [`study`], of cells in a [`matrix`], with their [`contender`]s;
//! - how a cell is played: [`topology`] and [`tool`], by a [`runner`], into a [`journal`];
//! - how it is shown: [`report`], [`score`], [`compare`];
//! - the scenarios for k6: [`stage`], [`suite`].

pub mod compare;
pub mod contender;
pub mod journal;
pub mod matrix;
pub mod report;
pub mod result;
pub mod runner;
pub mod score;
pub mod stage;
pub mod study;
pub mod suite;
pub mod tool;
pub mod topology;
