//! Measures the cost of the filter, compared with no filter, in one run.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::Value;
use tidegate_supervise::ProcessError;
use tidegate_testbed::cost::counter::CounterTool;
use tidegate_testbed::cost::report::{CostReport, targets};
use tidegate_testbed::cost::subject::Subject;
use tidegate_testbed::cost::{CostError, empty, interrupt, memory, requests};
use tidegate_testbed::{about, envoy, run};

/// Measures instructions per request, memory per worker and the module's size.
#[derive(Debug, Parser)]
struct CostOptions {
    /// Counter: perf, valgrind, cpu, or auto for the first of them that works.
    #[arg(long, default_value = "auto")]
    counter: String,
    /// Number of rounds. Each round measures everything once. Default: enough for the counter.
    #[arg(long)]
    rounds: Option<u32>,
    /// Requests of each kind in a round. Default: enough for the counter.
    #[arg(long)]
    requests: Option<u64>,
    /// The module to measure.
    #[arg(long)]
    module: Option<PathBuf>,
    /// The native module, measured as well (default: the output of `make native`, if it exists).
    #[arg(long)]
    native: Option<PathBuf>,
    /// Options of the native module, such as '{"hosts": 100}'. The native module is measured once more with them.
    #[arg(long, value_parser = options)]
    native_options: Option<Value>,
    /// Measure only these, and no filter: names from the table, separated by semicolons.
    #[arg(long, value_delimiter = ';')]
    subjects: Vec<String>,
    /// Do not measure memory.
    #[arg(long)]
    no_memory: bool,
    /// Measure only memory and upkeep.
    #[arg(long, conflicts_with = "no_memory")]
    only_memory: bool,
    /// Number of upstreams that every worker has served before memory is measured.
    #[arg(long, default_value_t = 1_000)]
    upstreams: u32,
    /// Number of workers of the larger Envoy of which memory and upkeep are measured; the smaller has one.
    #[arg(long, default_value_t = memory::MemoryEffort::default().workers)]
    workers: u32,
    /// File for the figures.
    #[arg(long, default_value = "out/bench-cost.json")]
    out: PathBuf,
    /// Exit with a failure if a target is missed.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match cost(&CostOptions::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cost: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Measures everything; false if `--check` found a missed target.
fn cost(options: &CostOptions) -> Result<bool> {
    let module = options.module.clone().unwrap_or_else(envoy::release_module);
    let module = fs::canonicalize(&module)
        .with_context(|| format!("find {} (make filter)", module.display()))?;
    if !envoy::binary().exists() {
        bail!("{} is missing: run `make tools`", envoy::binary().display());
    }
    let module_bytes = fs::metadata(&module)
        .with_context(|| format!("read {}", module.display()))?
        .len();
    run::raise_file_limit();
    interrupt::watch();
    let folder = tempfile::tempdir().context("make a folder")?;
    let mut bare_and_module = vec![Subject::NoFilter, Subject::Module(module.clone())];
    let mut all = vec![
        Subject::NoFilter,
        Subject::AdaptiveConcurrency,
        Subject::Empty(empty::module(folder.path())?),
        Subject::Module(module.clone()),
    ];
    if let Some(native) = native(options)? {
        bare_and_module.push(Subject::Native(native.clone()));
        all.push(Subject::Native(native.clone()));
        if let Some(own) = &options.native_options {
            bare_and_module.push(Subject::NativeWith(native.clone(), own.clone()));
            all.push(Subject::NativeWith(native, own.clone()));
        }
    }
    select(&mut all, &options.subjects)?;
    bare_and_module.retain(|subject| all.contains(subject));
    let CountedCost {
        tool,
        refusals,
        effort,
        rows,
    } = count(options, &all)?;
    let memory = if options.no_memory {
        Vec::new()
    } else {
        let effort = memory::MemoryEffort {
            upstreams: options.upstreams,
            workers: options.workers,
            ..memory::MemoryEffort::default()
        };
        memory::measure(&bare_and_module, effort, &mut progress)?
    };
    clear_line();

    let mut metadata = about::metadata();
    metadata.insert("module".to_owned(), module.display().to_string());
    metadata.insert("rounds".to_owned(), effort.rounds.to_string());
    metadata.insert("upstreams".to_owned(), options.upstreams.to_string());
    let report = CostReport {
        metadata,
        counter: tool.name(),
        unit: tool.unit(),
        refusals,
        targets: targets(tool, &rows, &memory, module_bytes),
        requests: rows,
        memory,
        module_bytes,
    };
    write(options, &report)?;
    println!("{}", report.text());
    println!("figures: {}", options.out.display());
    let missed = report
        .targets
        .iter()
        .any(|target| target.required && !target.kept);
    Ok(!options.check || !missed)
}

fn options(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("expected JSON: {error}"))
}

/// Keeps the first subject and those with these names; without names, keeps all.
fn select(all: &mut Vec<Subject>, names: &[String]) -> Result<()> {
    let known: Vec<&str> = all.iter().map(Subject::name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!(
            "--subjects: found {unknown}, expected some of {}",
            known.join("; ")
        );
    }
    if !names.is_empty() {
        all.retain(|it| *it == Subject::NoFilter || names.iter().any(|name| name == it.name()));
    }
    Ok(())
}

/// The native module, if there is one to measure.
fn native(options: &CostOptions) -> Result<Option<PathBuf>> {
    let path = match &options.native {
        Some(path) => path.clone(),
        None if envoy::native_module().exists() => envoy::native_module(),
        None => return Ok(None),
    };
    let path = fs::canonicalize(&path)
        .with_context(|| format!("find {} (make native)", path.display()))?;
    Ok(Some(path))
}

/// The counts, and the tool that counted.
struct CountedCost {
    tool: CounterTool,
    refusals: Vec<String>,
    effort: requests::RequestEffort,
    rows: Vec<requests::RequestRow>,
}

/// Counts with the requested tool, or else with the best one that works to the end.
fn count(options: &CostOptions, subjects: &[Subject]) -> Result<CountedCost> {
    if options.only_memory {
        return Ok(CountedCost {
            tool: CounterTool::Cpu,
            refusals: Vec::new(),
            effort: effort(options, CounterTool::Cpu)?,
            rows: Vec::new(),
        });
    }
    let tools: Vec<CounterTool> = if options.counter == "auto" {
        CounterTool::ALL.to_vec()
    } else {
        vec![options.counter.parse().context("--counter")?]
    };
    let mut refusals = Vec::new();
    for tool in tools {
        let effort = effort(options, tool)?;
        let refusal = match tool.refusal() {
            Some(refusal) => refusal,
            None => match requests::measure(subjects, tool, effort, &mut progress) {
                Ok(rows) => {
                    return Ok(CountedCost {
                        tool,
                        refusals,
                        effort,
                        rows,
                    });
                }
                // Valgrind may not know an instruction of the processor, or may not run another Envoy.
                Err(CostError::Process(ProcessError::Ended { status, .. }))
                    if tool == CounterTool::Valgrind =>
                {
                    format!("valgrind: envoy does not run in it ({status})")
                }
                Err(error) => return Err(error.into()),
            },
        };
        clear_line();
        eprintln!("cost: not used: {refusal}");
        refusals.push(refusal);
    }
    bail!("no counter works: {}", refusals.join("; "))
}

fn effort(options: &CostOptions, tool: CounterTool) -> Result<requests::RequestEffort> {
    let enough = requests::RequestEffort::enough_for(tool);
    let effort = requests::RequestEffort {
        rounds: options.rounds.unwrap_or(enough.rounds),
        requests: options.requests.unwrap_or(enough.requests),
        ..enough
    };
    if effort.rounds == 0 || effort.requests == 0 {
        bail!("--rounds and --requests: found 0, expected at least 1");
    }
    Ok(effort)
}

fn write(options: &CostOptions, report: &CostReport) -> Result<()> {
    if let Some(folder) = options.out.parent() {
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    let text = serde_json::to_string_pretty(report)? + "\n";
    fs::write(&options.out, text).with_context(|| format!("write {}", options.out.display()))
}

/// Prints the current action. On a terminal it replaces the line.
fn progress(doing: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K{doing}");
        // If the terminal is gone, progress is not needed.
        let _ = std::io::stderr().flush();
    } else {
        eprintln!("{doing}");
    }
}

fn clear_line() {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K");
    }
}
