//! The subcommands.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod k6;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod stage;
