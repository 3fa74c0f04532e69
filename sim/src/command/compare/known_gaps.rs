//! The page on known gaps: checked against the list before a long run, and written after it.

use std::fs;

use anyhow::{Context, Result, bail};
use tidegate_sim::compare::{Comparison, verdict};
use tidegate_sim::known_gaps::row::{GapRow, Scores};
use tidegate_sim::known_gaps::{GapsPage, KnownGaps, PAGE, at};
use tidegate_sim::targets::Targets;

/// Rejects a page whose table does not agree with the list, before anything is played.
pub(super) fn agree(known_gaps: &KnownGaps, page: &GapsPage) -> Result<()> {
    let faults = page.faults(known_gaps);
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
    known_gaps: &KnownGaps,
    page: &GapsPage,
) -> Result<GapsPage> {
    let old = page.rows();
    let mut rows = Vec::new();
    for (scenario, known) in &known_gaps.scenarios {
        let played = Scores::of(&verdict::gaps(comparison, scenario, targets));
        let kept = || old.iter().find(|row| row.scenario == *scenario);
        let Some(scores) = played.or_else(|| kept().map(|row| row.scores.clone())) else {
            bail!("{PAGE}: {scenario} has no row yet: play it as well");
        };
        rows.push(GapRow::new(scenario, scores, known));
    }
    let page = page
        .with_rows(&rows)
        .with_context(|| format!("{PAGE}: there is no table of limits"))?;
    fs::write(at(PAGE), page.text()).with_context(|| format!("write {PAGE}"))?;
    Ok(page)
}
