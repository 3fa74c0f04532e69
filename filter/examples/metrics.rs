//! Prints generated documents: `reference` is `docs/metrics.md`, `stats-tags` is `examples/envoy/stats-tags.yaml`.
//!
//! ```text
//! cargo run -p tidegate-filter --example metrics -- reference > docs/metrics.md
//! ```

use std::io::{self, Write as _};
use std::process::ExitCode;

use tidegate_filter::metrics::reference;

fn main() -> ExitCode {
    let text = match std::env::args().nth(1).as_deref() {
        Some("reference") => reference::markdown(),
        Some("stats-tags") => reference::stats_tags(),
        _ => {
            let _ = writeln!(io::stderr(), "usage: metrics reference|stats-tags");
            return ExitCode::FAILURE;
        }
    };
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
