//! Prints generated files: `reference` prints `docs/policy.md`, `crd` prints `manifests/crd.yaml`, and `metrics` prints
//! `docs/control-metrics.md`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use tidegate_control::document::yaml;
use tidegate_control::metrics;
use tidegate_control::resource::{definition, reference};

fn main() -> ExitCode {
    let text = match std::env::args().nth(1).as_deref() {
        Some("reference") => reference::markdown(),
        Some("crd") => definition().map(|definition| {
            let head = "# Generated from control/src/resource by `make docs`. Do not edit.\n";
            format!("{head}{}", yaml(&definition))
        }),
        Some("metrics") => Ok(metrics::reference::markdown()),
        _ => {
            let _ = writeln!(io::stderr(), "usage: policies reference|crd|metrics");
            return ExitCode::FAILURE;
        }
    };
    match text.map(|text| io::stdout().write_all(text.as_bytes())) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
