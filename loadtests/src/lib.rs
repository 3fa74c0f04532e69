//! Load tests with tools that users of Envoy know, fortio and k6, and with the testbed's own client.
//!
//! They repeat published experiments with static breakers on real Envoys, beside Tidegate. The parts of this crate:
//!
//! - the results of a run: [`result`];
//! - the experiments as data: [`study`], made of cells ([`matrix`]) with their [`contender`]s;
//! - how a cell is played: [`topology`] and [`tool`], by a [`runner`], into a [`journal`];
//! - the output: [`report`], [`score`], [`compare`];
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
