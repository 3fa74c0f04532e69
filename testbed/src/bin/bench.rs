//! The benchmark: every scenario on every contender, one after the other, on real sockets.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::json;
use tidegate_sim::scenario::{self, Scenario};
use tidegate_testbed::report::bench;
use tidegate_testbed::run::{self, Outcome};
use tidegate_testbed::variant::Variant;
use tidegate_testbed::{about, envoy};

/// Runs scenarios on real sockets against Tidegate and its rivals, and compares them.
#[derive(Debug, Parser)]
struct Options {
    /// Scenarios by name, separated by commas; `all` for every one that sockets can play.
    #[arg(long, default_value = "all", value_delimiter = ',')]
    scenarios: Vec<String>,
    /// Contenders by name, separated by commas; `all` for every one.
    #[arg(long, default_value = "all", value_delimiter = ',')]
    variants: Vec<String>,
    /// Runs of each scenario on each contender; tables show the median.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Every time of a scenario's plot is multiplied by this (0.5: half as long).
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Worker threads of Envoy, in place of what the scenario says.
    #[arg(long)]
    workers: Option<u32>,
    /// Folder for `runs.jsonl` and `report.html`.
    #[arg(long, default_value = "out/bench")]
    out: PathBuf,
    /// End with a failure when a Tidegate run misses an expected range.
    #[arg(long)]
    check: bool,
    /// Print the scenarios and contenders, and run nothing.
    #[arg(long)]
    list: bool,
}

/// Exit code of a program that was interrupted.
const INTERRUPTED: u8 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    // What is dropped here, when a signal comes first, ends the Envoy that runs.
    let ended = tokio::select! {
        ended = bench(&options) => ended,
        () = run::interrupted() => {
            eprintln!("\nbench: interrupted; nothing is left running");
            return ExitCode::from(INTERRUPTED);
        }
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs everything; false when `--check` found something missed.
async fn bench(options: &Options) -> Result<bool> {
    let scenarios = scenarios(options)?;
    let variants = variants(options)?;
    if options.list {
        scenarios
            .iter()
            .for_each(|s| println!("{:<18} {}", s.name, s.title));
        println!(
            "variants: {}",
            variants
                .iter()
                .map(|v| v.name())
                .collect::<Vec<_>>()
                .join(", ")
        );
        return Ok(true);
    }
    if !envoy::binary().exists() {
        bail!(
            "{} is missing: run `make tools`, or set {}",
            envoy::binary().display(),
            envoy::ENVOY_VARIABLE
        );
    }
    run::raise_file_limit();
    fs::create_dir_all(&options.out).with_context(|| format!("make {}", options.out.display()))?;
    let mut metadata = about::metadata();
    metadata.insert("repeat".to_owned(), options.repeat.to_string());
    metadata.insert("scale".to_owned(), options.scale.to_string());

    let outcomes = run_all(options, &scenarios, &variants, &metadata).await?;
    println!("{}", bench::tables(&scenarios, &outcomes));
    let report = options.out.join("report.html");
    fs::write(&report, bench::page(&scenarios, &outcomes, &metadata))
        .with_context(|| format!("write {}", report.display()))?;
    println!(
        "report: {}",
        fs::canonicalize(&report).unwrap_or(report).display()
    );

    let misses: Vec<_> = scenarios
        .iter()
        .flat_map(|scenario| bench::misses(scenario, &outcomes))
        .collect();
    misses
        .iter()
        .for_each(|miss| println!("missed: {}", miss.text));
    Ok(misses.is_empty() || !options.check)
}

async fn run_all(
    options: &Options,
    scenarios: &[Scenario],
    variants: &[Variant],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<Outcome>> {
    let lines = options.out.join("runs.jsonl");
    let mut file = File::create(&lines).with_context(|| format!("create {}", lines.display()))?;
    let mut outcomes = Vec::new();
    let each = u32::try_from(scenarios.len() * variants.len())?;
    let (mut number, total) = (0, each * options.repeat);
    for repetition in 0..options.repeat {
        for scenario in scenarios {
            // Another repetition draws other arrivals; within one, all contenders get the same.
            let scenario = &Scenario {
                seed: scenario.seed + u64::from(repetition),
                ..scenario.clone()
            };
            for &variant in variants {
                number += 1;
                let head = format!("[{number}/{total}] {:<18} {variant:<20}", scenario.name);
                let outcome =
                    run::run(scenario, variant, progress(&head, scenario.duration)).await?;
                clear_line();
                println!("{head} {}", bench::summary(&outcome));
                let line = json!({"metadata": metadata, "repetition": repetition, "seed": scenario.seed,
                    "workers": scenario.workers, "outcome": outcome});
                writeln!(file, "{line}").with_context(|| format!("write {}", lines.display()))?;
                outcomes.push(outcome);
            }
        }
    }
    Ok(outcomes)
}

/// Cells of the progress bar.
const CELLS: u32 = 30;

/// A bar drawn in place where somebody watches; nothing otherwise.
fn progress(head: &str, duration: Duration) -> impl Fn(Duration) + Send + Sync + use<> {
    let (head, is_terminal) = (head.to_owned(), std::io::stdout().is_terminal());
    move |passed| {
        if is_terminal {
            let share = (passed.as_secs_f64() / duration.as_secs_f64()).min(1.0);
            let bar: String = (0..CELLS)
                .map(|i| {
                    if f64::from(i) < share * f64::from(CELLS) {
                        '█'
                    } else {
                        '░'
                    }
                })
                .collect();
            print!(
                "\r\x1b[2K{head} {bar} {:.0} s",
                duration.saturating_sub(passed).as_secs_f64()
            );
            // A terminal that is gone needs no progress.
            let _ = std::io::stdout().flush();
        }
    }
}

fn clear_line() {
    if std::io::stdout().is_terminal() {
        print!("\r\x1b[2K");
    }
}

fn scenarios(options: &Options) -> Result<Vec<Scenario>> {
    if !(0.05..=100.0).contains(&options.scale) {
        bail!(
            "--scale: found {}, expected a number in 0.05..=100",
            options.scale
        );
    }
    let known = Scenario::read_folder(&scenario::folder())?;
    let mut chosen = Vec::new();
    for name in &options.scenarios {
        let found: Vec<&Scenario> = known
            .iter()
            .filter(|s| &s.name == name || name == "all" && s.only_simulated().is_empty())
            .collect();
        if found.is_empty() {
            let names: Vec<&str> = known.iter().map(|s| s.name.as_str()).collect();
            bail!(
                "scenario: found {name}, expected one of: {}",
                names.join(", ")
            );
        }
        chosen.extend(found.into_iter().cloned().map(|scenario| {
            let mut scenario = scenario.scaled(options.scale);
            scenario.workers = options.workers.unwrap_or(scenario.workers);
            scenario
        }));
    }
    Ok(chosen)
}

/// The chosen contenders; of `all`, those that can be had.
fn variants(options: &Options) -> Result<Vec<Variant>> {
    let mut chosen = Vec::new();
    for name in &options.variants {
        if name == "all" {
            chosen.extend(
                Variant::ALL
                    .into_iter()
                    .filter(|variant| variant.is_available()),
            );
        } else {
            let variant: Variant = name.parse()?;
            if !variant.is_available() {
                bail!(
                    "variant {variant}: {} is missing: run `make filter`",
                    envoy::release_module().display()
                );
            }
            chosen.push(variant);
        }
    }
    if options.variants.iter().any(|name| name == "all") && !Variant::Tidegate.is_available() {
        eprintln!(
            "bench: without tidegate: {} is missing (make filter)",
            envoy::release_module().display()
        );
    }
    Ok(chosen)
}
