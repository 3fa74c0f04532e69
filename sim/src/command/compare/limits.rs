//! The page on the limits: held against the list before a long run, and written after it.

use std::fs;

use anyhow::{Context, Result, bail};
use tidegate_sim::compare::{Comparison, verdict};
use tidegate_sim::limits::page;
use tidegate_sim::limits::row::{Row, Scores};
use tidegate_sim::limits::{Limits, Page, at};
use tidegate_sim::targets::Targets;

/// Refuses a page whose table does not agree with the list, before anything is played.
pub(super) fn agree(limits: &Limits, page: &Page) -> Result<()> {
    let faults = page.faults(limits);
    if faults.is_empty() {
        return Ok(());
    }
    bail!(
        "{}\n`make sim-limits ARGS=--write` writes the table anew",
        faults.join("\n")
    )
}

/// Writes the table with the figures of this run, and leaves those of scenarios that it did not play.
pub(super) fn write(
    comparison: &Comparison,
    targets: &Targets,
    limits: &Limits,
    page: &Page,
) -> Result<Page> {
    let old = page.rows();
    let mut rows = Vec::new();
    for (scenario, limit) in &limits.scenarios {
        let played = Scores::of(&verdict::gaps(comparison, scenario, targets));
        let kept = || old.iter().find(|row| row.scenario == *scenario);
        let Some(scores) = played.or_else(|| kept().map(|row| row.scores.clone())) else {
            bail!("{}: {scenario} has no row yet: play it as well", page::FILE);
        };
        rows.push(Row::new(scenario, scores, limit));
    }
    let page = page
        .with_rows(&rows)
        .with_context(|| format!("{}: there is no table of limits", page::FILE))?;
    fs::write(at(page::FILE), page.text()).with_context(|| format!("write {}", page::FILE))?;
    Ok(page)
}
