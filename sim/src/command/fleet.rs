//! `fleet`: thousands of proxies in front of one service, as sidecars and as waypoints.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::json;
use tidegate_sim::fleet::{self, Fleet, FleetRun, FleetSize, FleetStory, FleetTopology, RunCost};

use super::jobs;

/// Plays a fleet: do independent proxies share fairly, and without oscillating?
#[derive(Debug, Parser)]
pub(crate) struct FleetOptions {
    /// Callers; as sidecars they are the proxies.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    proxies: u32,
    /// Requests a second of all callers, on average over the run.
    #[arg(long, default_value_t = 1_000_000.0)]
    rps: f64,
    /// Endpoints of the service.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    endpoints: u32,
    /// Simulated seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(12..))]
    seconds: u32,
    /// Stories, separated by commas: steady, overload, outage, half-lost, unequal, or all.
    #[arg(long, default_value = "overload", value_delimiter = ',')]
    scenario: Vec<String>,
    /// Topologies, separated by commas: sidecars, waypoint, waypoints-4 or any other number.
    #[arg(long, default_value = "sidecars,waypoint", value_delimiter = ',')]
    topology: Vec<String>,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs at a time; results do not depend on it, time and memory of each do.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// The proxies admit everything, to show what happens without protection.
    #[arg(long)]
    unprotected: bool,
    /// The proxies are not told how many endpoints there are.
    #[arg(long)]
    endpoints_unknown: bool,
    /// Factor for callers, requests and endpoints of all stories but the first: each proxy has the same load as in the large
    /// fleet.
    #[arg(long, default_value_t = 1.0)]
    rest_at: f64,
    /// Folder for `fleet.json`, and for `report.html` with its data as `report.json`.
    #[arg(long, default_value = "out/sim-fleet")]
    out: PathBuf,
    /// Print passed and failed checks, and fail if one failed.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &FleetOptions) -> Result<ExitCode> {
    let fleets = fleets(options)?;
    fs::create_dir_all(&options.out).with_context(|| format!("make {}", options.out.display()))?;
    let bar = jobs::progress(fleets.len());
    let runs = jobs::run(&fleets, options.threads, |fleet| {
        let run = play(fleet);
        bar.inc(1);
        run
    })?;
    bar.finish_and_clear();
    for (run, cost) in &runs {
        out!(
            "{} {}: {} requests, {} events in {:.1} s, digest {}",
            run.figures.story,
            run.figures.topology,
            run.figures.offered,
            run.events,
            cost.took.as_secs_f64(),
            run.digest
        );
    }
    out!("\n{}", fleet::table(&runs).text());
    write(options, &runs)?;
    if !options.check {
        return Ok(ExitCode::SUCCESS);
    }
    let checks = fleet::checks(&runs);
    for check in checks.iter() {
        let word = if check.is_met { "passed" } else { "FAILED" };
        out!("{word}  {}", check.text);
    }
    let failed = checks.iter().filter(|check| !check.is_met).count();
    out!("{} passed, {failed} failed", checks.len() - failed);
    Ok(if failed > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn fleets(options: &FleetOptions) -> Result<Vec<Fleet>> {
    if !(options.rps.is_finite() && options.rps > 0.0) {
        bail!("rps: found {}, expected a number above 0", options.rps);
    }
    let size = FleetSize {
        callers: options.proxies,
        rps: options.rps,
        endpoints: options.endpoints,
        seconds: options.seconds,
        seed: options.seed,
    };
    if !(options.rest_at > 0.0 && options.rest_at <= 1.0) {
        bail!(
            "rest-at: found {}, expected a number above 0 and up to 1",
            options.rest_at
        );
    }
    let mut fleets = Vec::new();
    for (index, story) in stories(&options.scenario)?.into_iter().enumerate() {
        let size = if index == 0 {
            size
        } else {
            size.scaled(options.rest_at)
        };
        for name in &options.topology {
            let Some(topology) = FleetTopology::named(name) else {
                bail!("topology: found {name}, expected sidecars, waypoint or waypoints-N");
            };
            fleets.push(Fleet {
                is_protected: !options.unprotected,
                knows_endpoints: !options.endpoints_unknown,
                ..story.fleet(&size, topology)
            });
        }
    }
    Ok(fleets)
}

fn stories(names: &[String]) -> Result<Vec<FleetStory>> {
    let mut stories = Vec::new();
    for name in names {
        if name == "all" {
            return Ok(FleetStory::ALL.to_vec());
        }
        let Some(story) = FleetStory::ALL.iter().find(|story| story.name() == name) else {
            let names: Vec<&str> = FleetStory::ALL.iter().map(|story| story.name()).collect();
            bail!(
                "scenario: found {name}, expected all or some of: {}",
                names.join(", ")
            );
        };
        stories.push(*story);
    }
    Ok(stories)
}

fn play(fleet: &Fleet) -> Result<(FleetRun, RunCost)> {
    let clock = Instant::now();
    let run = fleet::play(fleet)?;
    let cost = RunCost {
        took: clock.elapsed(),
        memory_kib: peak_memory_kib(),
    };
    Ok((run, cost))
}

/// The peak memory of this process, where the system reports it.
fn peak_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn write(options: &FleetOptions, runs: &[(FleetRun, RunCost)]) -> Result<()> {
    let entry = |(run, cost): &(FleetRun, RunCost)| {
        json!({
            "figures": run.figures,
            "digest": run.digest.to_string(),
            "events": run.events,
            "took_s": cost.took.as_secs_f64(),
            "memory_kib": cost.memory_kib,
        })
    };
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "callers": options.proxies,
        "rps": options.rps,
        "endpoints": options.endpoints,
        "seconds": options.seconds,
        "seed": options.seed,
        "protected": !options.unprotected,
        "endpoints_known": !options.endpoints_unknown,
        "runs": runs.iter().map(entry).collect::<Vec<_>>(),
    });
    save(
        &options.out.join("fleet.json"),
        &serde_json::to_vec(&document)?,
    )?;
    let report = fleet::page(runs).write(&options.out, "report")?;
    out!("report: {}", report.display());
    Ok(())
}

fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("write {}", path.display()))
}
