//! `list`: the scenarios and where they can be played, and the contenders.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use tidegate_sim::roster;
use tidegate_sim::scenario::{self, Scenario};

/// Lists scenarios and contenders.
#[derive(Debug, Parser)]
pub(crate) struct ListOptions {}

pub(crate) fn run(_options: &ListOptions) -> Result<ExitCode> {
    for scenario in Scenario::read_folder(&scenario::folder())? {
        let keys = scenario.only_simulated();
        let place = if keys.is_empty() {
            String::new()
        } else {
            format!("  (only here: {})", keys.join(", "))
        };
        out!("{:<28} {}{place}", scenario.name, scenario.title);
    }
    out!();
    for kind in roster::known() {
        out!("{:<28} {}", kind.name, kind.title);
    }
    Ok(ExitCode::SUCCESS)
}
