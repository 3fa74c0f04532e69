//! Prints generated documentation: `configuration` is `docs/configuration.md`.
//!
//! ```text
//! cargo run -p tidegate-core --example reference -- configuration > docs/configuration.md
//! ```

use std::io::{self, Write as _};
use std::process::ExitCode;

use tidegate_core::config::reference;

fn main() -> ExitCode {
    let text = match std::env::args().nth(1).as_deref() {
        Some("configuration") => reference::markdown(),
        _ => {
            let _ = writeln!(io::stderr(), "usage: reference configuration");
            return ExitCode::FAILURE;
        }
    };
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
