//! Processes that do not outlive the program that started them.
//!
//! A [`Process`] is a program with its arguments and environment, started in its own process group. Its output goes to a
//! [`Log`], whose end is part of every error. The group is killed when the [`Process`] is dropped, when its first process
//! ends, and by [`kill_all`]; the kernel kills the first process if this program is killed.
//!
//! Each wait has a bound. Waiting for readiness is `async`; waiting for the end also works without a runtime.

mod log;
mod process;
mod running;
mod spawn;

pub use log::Log;
pub use process::{Process, ProcessError};
pub use running::kill_all;
pub use rustix::process::Signal;
