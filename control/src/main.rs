//! `tidegate`: checks, shows, translates and serves policies.

#![forbid(unsafe_code)]

mod command;

use std::process::ExitCode;

fn main() -> ExitCode {
    command::main()
}
