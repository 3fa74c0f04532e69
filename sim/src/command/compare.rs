//! `compare`: every scenario with every contender, as tables, JSON and a page.

mod known_gaps;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::json;
use tidegate_sim::compare::{Comparison, ContenderRun, page, table, verdict};
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::known_gaps::{FILE, Grade, Judged, KnownGaps};
use tidegate_sim::scenario::{self, Scenario};
use tidegate_sim::targets::Targets;

use super::{chosen, jobs};

/// Runs scenarios with every contender, and compares them.
#[derive(Debug, Parser)]
pub(crate) struct ScenarioCompareOptions {
    /// Scenarios by name, separated by commas; `all` for every one in the folder.
    #[arg(long, default_value = "all", value_delimiter = ',')]
    scenarios: Vec<String>,
    /// Contenders by name, separated by commas; `all` for every one.
    #[arg(long, default_value = "all", value_delimiter = ',')]
    contenders: Vec<String>,
    /// Runs of each scenario with each contender, with seeds of their own; figures are medians.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Folder for `compare.json`, and for `report.html` with its data as `report.json`.
    #[arg(long, default_value = "out/sim-compare")]
    out: PathBuf,
    /// Threads; the result does not depend on them.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Fail when a target is missed; gaps that `sim/limits.toml` grants do not count.
    #[arg(long)]
    check: bool,
    /// Also check `sim/limits.toml` and its page: plays every contender with the seeds that the list asks for, and prints only
    /// the verdicts.
    #[arg(long, conflicts_with_all = ["contenders", "seeds"])]
    limits: bool,
    /// Write the measured figures into the page on known gaps.
    #[arg(long, requires = "limits")]
    write: bool,
}

pub(crate) fn run(options: &ScenarioCompareOptions) -> Result<ExitCode> {
    let known = Scenario::read_folder(&scenario::folder())?;
    let scenarios = chosen("scenario", &options.scenarios, &known, |s| &s.name)?;
    let contenders = super::contenders(&options.contenders)?;
    let targets = Targets::read()?;
    let names: BTreeSet<&str> = known.iter().map(|s| s.name.as_str()).collect();
    let (known_gaps, page) = KnownGaps::read(&names, targets.comparison)?;
    if options.limits && !options.write {
        known_gaps::agree(&known_gaps, &page)?;
    }
    let seeds = if options.limits {
        known_gaps.seeds
    } else {
        options.seeds
    };
    fs::create_dir_all(&options.out).with_context(|| format!("make {}", options.out.display()))?;
    let comparison = Comparison {
        outcomes: play(&scenarios, &contenders, seeds, options.threads)?,
        scenarios,
        contenders,
    };
    let page = if options.write {
        known_gaps::write(&comparison, &targets, &known_gaps, &page)?
    } else {
        page
    };
    let rows = page.rows();
    let bar = verdict::Requirements {
        targets: &targets,
        known_gaps: &known_gaps,
        rows: options.limits.then_some(rows.as_slice()),
    };
    let verdicts = verdict::verdicts(&comparison, bar);
    write_json(&options.out, &comparison, &verdicts)?;
    let report = page::page(&comparison, &verdicts, seeds).write(&options.out, "report")?;
    if !options.limits {
        out!("{}", table::text(&comparison, &verdicts));
    }
    Ok(sum(options, &verdicts, &report))
}

/// Prints the result; returns a failure where a check fails.
fn sum(options: &ScenarioCompareOptions, verdicts: &[Judged], report: &Path) -> ExitCode {
    let count = |standing| table::count(verdicts, standing);
    let missed = count(Grade::Missed);
    let is_check = options.check || options.limits;
    if is_check {
        for (grade, word) in [(Grade::AtLimit, "limit "), (Grade::Missed, "FAILED")] {
            for line in table::lines(verdicts, grade, word).lines() {
                out!("{line}");
            }
        }
    }
    out!("report: {}", report.display());
    out!(
        "targets: {} of {} met, {} more as near as {FILE} grants",
        count(Grade::Met),
        verdicts.len(),
        count(Grade::AtLimit)
    );
    if is_check {
        out!("{} passed, {missed} failed", verdicts.len() - missed);
    }
    if is_check && missed > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn play(
    scenarios: &[Scenario],
    contenders: &[ContenderKind],
    seeds: u64,
    threads: usize,
) -> Result<Vec<ContenderRun>> {
    let jobs = jobs::all(scenarios, contenders, seeds);
    jobs::play(&jobs, threads, |job| {
        ContenderRun::of(job.scenario, job.contender, job.repetition)
            .with_context(|| format!("scenario {}", job.scenario.name))
    })
}

fn write_json(folder: &Path, comparison: &Comparison, verdicts: &[Judged]) -> Result<()> {
    let contenders: Vec<_> = comparison
        .contenders
        .iter()
        .map(|kind| json!({"name": kind.name, "title": kind.title, "is_tuned": kind.is_tuned()}))
        .collect();
    let verdicts: Vec<_> = verdicts
        .iter()
        .map(|v| json!({"scenario": v.scenario, "target": v.target, "found": v.found, "standing": v.standing}))
        .collect();
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "contenders": contenders,
        "verdicts": verdicts,
        "runs": comparison.outcomes,
    });
    let path = folder.join("compare.json");
    let text = serde_json::to_vec(&document)?;
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}
