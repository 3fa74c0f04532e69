//! Measures what the filter costs against no filter, in one run.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use tidegate_supervise::ProcessError;
use tidegate_testbed::cost::counter::Tool;
use tidegate_testbed::cost::report::{Report, targets};
use tidegate_testbed::cost::subject::Subject;
use tidegate_testbed::cost::{CostError, interrupt, memory, requests};
use tidegate_testbed::{about, envoy, run};

/// Measures instructions per request, memory per worker and the module's size.
#[derive(Debug, Parser)]
struct Options {
    /// How to count: perf, valgrind, cpu, or auto for the first of them that works.
    #[arg(long, default_value = "auto")]
    counter: String,
    /// Rounds; each measures everything once. Left out: what is enough for the counter.
    #[arg(long)]
    rounds: Option<u32>,
    /// Requests of each kind in a round. Left out: what is enough for the counter.
    #[arg(long)]
    requests: Option<u64>,
    /// The module to measure.
    #[arg(long)]
    module: Option<PathBuf>,
    /// Leave out memory.
    #[arg(long)]
    no_memory: bool,
    /// Measure memory and upkeep alone.
    #[arg(long, conflicts_with = "no_memory")]
    only_memory: bool,
    /// Upstreams that every worker has served when memory is read.
    #[arg(long, default_value_t = 1_000)]
    upstreams: u32,
    /// File for the figures.
    #[arg(long, default_value = "out/bench-cost.json")]
    out: PathBuf,
    /// End with a failure when a target is missed.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match cost(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cost: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Measures everything; false when `--check` found a target missed.
fn cost(options: &Options) -> Result<bool> {
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
    let bare_and_module = [Subject::NoFilter, Subject::Module(module.clone())];
    let all = [
        Subject::NoFilter,
        Subject::AdaptiveConcurrency,
        Subject::Module(module.clone()),
    ];
    let Counted {
        tool,
        refusals,
        effort,
        rows,
    } = count(options, &all)?;
    let memory = if options.no_memory {
        Vec::new()
    } else {
        let effort = memory::Effort {
            upstreams: options.upstreams,
            ..memory::Effort::default()
        };
        memory::measure(&bare_and_module, effort, &mut progress)?
    };
    clear_line();

    let mut metadata = about::metadata();
    metadata.insert("module".to_owned(), module.display().to_string());
    metadata.insert("rounds".to_owned(), effort.rounds.to_string());
    metadata.insert("upstreams".to_owned(), options.upstreams.to_string());
    let report = Report {
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

/// What was counted, and how.
struct Counted {
    tool: Tool,
    refusals: Vec<String>,
    effort: requests::Effort,
    rows: Vec<requests::Row>,
}

/// Counts with the tool that was asked for, or else with the best one that works to the end.
fn count(options: &Options, subjects: &[Subject]) -> Result<Counted> {
    if options.only_memory {
        return Ok(Counted {
            tool: Tool::Cpu,
            refusals: Vec::new(),
            effort: effort(options, Tool::Cpu)?,
            rows: Vec::new(),
        });
    }
    let tools: Vec<Tool> = if options.counter == "auto" {
        Tool::ALL.to_vec()
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
                    return Ok(Counted {
                        tool,
                        refusals,
                        effort,
                        rows,
                    });
                }
                // Valgrind may not know an instruction of the processor, or refuse another Envoy.
                Err(CostError::Process(ProcessError::Ended { status, .. }))
                    if tool == Tool::Valgrind =>
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

fn effort(options: &Options, tool: Tool) -> Result<requests::Effort> {
    let enough = requests::Effort::enough_for(tool);
    let effort = requests::Effort {
        rounds: options.rounds.unwrap_or(enough.rounds),
        requests: options.requests.unwrap_or(enough.requests),
        ..enough
    };
    if effort.rounds == 0 || effort.requests == 0 {
        bail!("--rounds and --requests: found 0, expected at least 1");
    }
    Ok(effort)
}

fn write(options: &Options, report: &Report) -> Result<()> {
    if let Some(folder) = options.out.parent() {
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    let text = serde_json::to_string_pretty(report)? + "\n";
    fs::write(&options.out, text).with_context(|| format!("write {}", options.out.display()))
}

/// Prints what is done now. On a terminal it replaces the line.
fn progress(doing: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K{doing}");
        // A terminal that is gone needs no progress.
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
