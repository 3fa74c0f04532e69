//! The benchmark: every scenario on every contender, one after the other, on real sockets.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use tidegate_sim::scenario::{self, Scenario};
use tidegate_sim::targets::Targets;
use tidegate_testbed::bench::clock::{BenchClock, spoken};
use tidegate_testbed::bench::journal::{Journal, JournalContents, JournalLine, Metadata};
use tidegate_testbed::bench::plan::{PlannedRun, turns};
use tidegate_testbed::bench::report::median::Runs;
use tidegate_testbed::bench::report::{self, targets};
use tidegate_testbed::run::{self, RunOutcome};
use tidegate_testbed::variant::Variant;
use tidegate_testbed::{about, envoy};

/// Runs scenarios on real sockets against Tidegate and its rivals, and compares them.
#[derive(Debug, Parser)]
struct BenchOptions {
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
    /// Worker threads of Envoy, instead of what the scenario says.
    #[arg(long)]
    workers: Option<u32>,
    /// Folder for `runs.jsonl`, and for `report.html` with its data as `report.json`.
    #[arg(long, default_value = "out/bench")]
    out: PathBuf,
    /// Keep the runs in `runs.jsonl` that were made in the same conditions, and make only the others.
    #[arg(long)]
    resume: bool,
    /// End with a failure when Tidegate misses a target or an expected range.
    #[arg(long)]
    check: bool,
    /// Print the scenarios and contenders and how long they take, and run nothing.
    #[arg(long)]
    list: bool,
}

/// Exit code of a program that was interrupted.
const INTERRUPTED: u8 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    let options = BenchOptions::parse();
    // If a signal comes first, dropping the run ends its Envoy.
    let ended = tokio::select! {
        ended = bench(&options) => ended,
        () = run::interrupted() => {
            eprintln!("\nbench: interrupted; nothing is left running, and --resume goes on from here");
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

/// Runs everything; false if `--check` found a missed target or range.
async fn bench(options: &BenchOptions) -> Result<bool> {
    let scenarios = scenarios(options)?;
    let variants = variants(options)?;
    let turns = turns(&scenarios, &variants, options.repeat);
    if options.list {
        list(&scenarios, &variants, &turns);
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
    metadata.insert("planned".to_owned(), turns.len().to_string());
    // Without the module only the other contenders take part.
    if let Ok(digest) = about::module_sha256() {
        metadata.insert("module".to_owned(), digest);
    }

    let outcomes = run_all(options, &turns, &metadata).await?;
    finish(options, &scenarios, &outcomes, &metadata)
}

fn list(scenarios: &[Scenario], variants: &[Variant], turns: &[PlannedRun]) {
    for scenario in scenarios {
        let length = spoken(scenario.duration);
        println!("{:<18} {length:>6}  {}", scenario.name, scenario.title);
    }
    let names: Vec<&str> = variants.iter().map(|variant| variant.name()).collect();
    println!("variants: {}", names.join(", "));
    let left = BenchClock::new(turns.iter().map(PlannedRun::length)).left();
    println!("{} runs, about {}", turns.len(), spoken(left));
}

/// Makes every run that is not in the journal yet, and records each.
async fn run_all(
    options: &BenchOptions,
    turns: &[PlannedRun],
    metadata: &Metadata,
) -> Result<Vec<RunOutcome>> {
    let path = options.out.join("runs.jsonl");
    let (mut journal, found) = if options.resume {
        Journal::resume(&path, metadata)
    } else {
        Journal::begin(&path).map(|journal| (journal, JournalContents::default()))
    }
    .with_context(|| format!("open {}", path.display()))?;
    let is_made = |turn: &&PlannedRun| found.kept.iter().any(|line| line.is_of(turn));
    let (made, due): (Vec<&PlannedRun>, Vec<&PlannedRun>) = turns.iter().partition(is_made);
    if options.resume {
        println!(
            "resume: {} runs are made already, {} lines do not count",
            made.len(),
            found.dropped
        );
    }
    let mut clock = BenchClock::new(due.iter().map(|turn| turn.length()));
    println!("{} runs, about {}", due.len(), spoken(clock.left()));
    let is_wanted = |line: &JournalLine| made.iter().any(|turn| line.is_of(turn));
    let kept = found.kept.iter().filter(|line| is_wanted(line));
    let mut outcomes: Vec<RunOutcome> = kept.map(|line| line.outcome.clone()).collect();
    for (number, turn) in (made.len() + 1..).zip(due) {
        let name = &turn.scenario.name;
        let head = format!("[{number}/{}] {name:<18} {:<20}", turns.len(), turn.variant);
        let begun = Instant::now();
        let outcome = run::run(&turn.scenario, turn.variant, progress(&head, turn, clock)).await?;
        clock.ended(turn.length(), begun.elapsed());
        clear_line();
        let (summary, left) = (report::summary(&outcome), spoken(clock.left()));
        println!("{head} {summary}  ({left} left)");
        let line = JournalLine {
            metadata: metadata.clone(),
            repetition: turn.repetition,
            seed: turn.scenario.seed,
            workers: turn.scenario.workers,
            outcome,
        };
        journal
            .note(&line)
            .with_context(|| format!("write {}", path.display()))?;
        outcomes.push(line.outcome);
    }
    Ok(outcomes)
}

/// Prints tables and writes the page; false if `--check` found a missed target or range.
fn finish(
    options: &BenchOptions,
    scenarios: &[Scenario],
    outcomes: &[RunOutcome],
    metadata: &Metadata,
) -> Result<bool> {
    println!("{}", report::tables(scenarios, outcomes));
    let runs = Runs(outcomes);
    let verdicts = targets::judge(&Targets::read()?, scenarios, runs);
    if !verdicts.is_empty() {
        println!("{}", report::targets_table(&verdicts));
    }
    let unexpected = targets::missed_expectations(scenarios, runs);
    for miss in &unexpected {
        println!("{}: {}, found {}", miss.scenario, miss.target, miss.found);
    }
    if (options.scale - 1.0).abs() > f64::EPSILON {
        let scale = options.scale;
        println!("The targets are meant for scale 1; at {scale} an outage is another story.");
    }
    let page = report::page(scenarios, outcomes, &verdicts, metadata);
    let path = page.write(&options.out, "report")?;
    println!("report: {}", path.display());
    let is_well = unexpected.is_empty() && verdicts.iter().all(|verdict| verdict.is_met);
    Ok(is_well || !options.check)
}

/// Cells of the progress bar.
const CELLS: u32 = 30;

/// A progress bar on a terminal; nothing otherwise.
fn progress(
    head: &str,
    turn: &PlannedRun,
    clock: BenchClock,
) -> impl Fn(Duration) + Send + Sync + use<> {
    let (head, length) = (head.to_owned(), turn.length());
    let is_terminal = std::io::stdout().is_terminal();
    move |passed| {
        if !is_terminal {
            return;
        }
        let share = (passed.as_secs_f64() / length.as_secs_f64()).min(1.0);
        let is_full = |cell| f64::from(cell) < share * f64::from(CELLS);
        let cells = (0..CELLS).map(|cell| if is_full(cell) { '█' } else { '░' });
        let bar: String = cells.collect();
        let left = spoken(clock.left().saturating_sub(passed));
        print!("\r\x1b[2K{head} {bar} {left} left");
        // If the terminal is gone, progress is not needed.
        let _ = std::io::stdout().flush();
    }
}

fn clear_line() {
    if std::io::stdout().is_terminal() {
        print!("\r\x1b[2K");
    }
}

/// The chosen scenarios. Those that sockets cannot play are reported and left out.
fn scenarios(options: &BenchOptions) -> Result<Vec<Scenario>> {
    if !(0.05..=100.0).contains(&options.scale) {
        bail!(
            "--scale: found {}, expected a number in 0.05..=100",
            options.scale
        );
    }
    let known = Scenario::read_folder(&scenario::folder())?;
    let mut chosen = Vec::new();
    for name in &options.scenarios {
        let is_meant = |scenario: &&Scenario| name == "all" || &scenario.name == name;
        let found: Vec<&Scenario> = known.iter().filter(is_meant).collect();
        if found.is_empty() {
            let names: Vec<&str> = known.iter().map(|s| s.name.as_str()).collect();
            bail!(
                "scenario: found {name}, expected one of: {}",
                names.join(", ")
            );
        }
        for scenario in found {
            let keys = scenario.only_simulated();
            if keys.is_empty() {
                let mut scenario = scenario.clone().scaled(options.scale);
                scenario.workers = options.workers.unwrap_or(scenario.workers);
                chosen.push(scenario);
            } else {
                let (name, keys) = (&scenario.name, keys.join(", "));
                eprintln!("bench: skipped {name}: only the simulator can play its {keys}");
            }
        }
    }
    if chosen.is_empty() {
        bail!("none of the chosen scenarios can be played on sockets");
    }
    Ok(chosen)
}

/// The chosen contenders; for `all`, those whose modules are built.
fn variants(options: &BenchOptions) -> Result<Vec<Variant>> {
    let mut chosen = Vec::new();
    for name in &options.variants {
        if name == "all" {
            chosen.extend(Variant::ALL.into_iter().filter(|v| v.is_available()));
            for (variant, module, target) in missing(&Variant::ALL) {
                eprintln!(
                    "bench: without {variant}: {} is missing ({target})",
                    module.display()
                );
            }
            continue;
        }
        let variant: Variant = name.parse()?;
        if let Some((_, module, target)) = missing(&[variant]).next() {
            bail!(
                "variant {variant}: {} is missing: run `{target}`",
                module.display()
            );
        }
        chosen.push(variant);
    }
    Ok(chosen)
}

/// Contenders whose modules are not built, with the commands that build them.
fn missing(variants: &[Variant]) -> impl Iterator<Item = (Variant, PathBuf, &'static str)> {
    variants
        .iter()
        .filter(|variant| !variant.is_available())
        .filter_map(|variant| {
            let (module, target) = variant.module()?;
            Some((*variant, module, target))
        })
}
