//! The subcommands.

pub(crate) mod check;
