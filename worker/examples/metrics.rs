//! Prints generated documents: `reference` is `docs/metrics.md`, the others are `dashboards/stats-tags/<name>.yaml`.
//!
//! ```text
//! cargo run -p tidegate-worker --example metrics -- reference > docs/metrics.md
//! ```

use std::io::{self, Write as _};
use std::process::ExitCode;

use tidegate_worker::metrics::reference::{self, TagsFile};

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let file = TagsFile::ALL.into_iter().find(|file| file.name() == wanted);
    let text = match (wanted.as_str(), file) {
        ("reference", _) => reference::markdown(),
        (_, Some(file)) => file.text(),
        (_, None) => {
            let _ = writeln!(
                io::stderr(),
                "usage: metrics reference|envoy|istio-mesh|istio-pod"
            );
            return ExitCode::FAILURE;
        }
    };
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
