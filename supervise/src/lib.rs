//! Processes that do not outlive the program that started them.
//!
//! A [`Process`] is a program with its arguments and environment, started in a process group of its own. Its output goes
//! to a [`Log`], whose end is in every error. The group is killed when the [`Process`] is dropped, when its first process
//! ends, and by [`kill_all`]; the first process is killed by the kernel if this program is killed.
//!
//! Each wait has a bound. Readiness is waited for with `await`; the end of a process also without a runtime.

mod log;
mod process;
mod running;
mod spawn;

pub use log::Log;
pub use process::{Process, ProcessError};
pub use running::kill_all;
pub use rustix::process::Signal;
