//! Injects faults into real processes under load, and checks what must hold after each.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use tidegate_testbed::chaos::conduct::{ChaosRun, ChaosSettings, conduct};
use tidegate_testbed::chaos::fault::FaultKind;
use tidegate_testbed::chaos::{backend, plan, report};
use tidegate_testbed::{about, envoy, run};

/// Injects faults drawn from a seed into an Envoy with the filter, the control service and two upstreams.
#[derive(Debug, Parser)]
struct ChaosOptions {
    #[command(subcommand)]
    part: Option<ChaosPart>,
    /// Seed of the random choice of the faults, their times and the load.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Approximate length of the run in seconds, with the start and the checks.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// Kinds of faults, separated by commas (default: all).
    #[arg(long, value_delimiter = ',')]
    faults: Vec<FaultKind>,
    /// Print the plan and inject no faults.
    #[arg(long)]
    plan: bool,
    /// Folder for `report.md` and `report.json`.
    #[arg(long, default_value = "out/chaos")]
    out: PathBuf,
    /// The control service's binary (default: `tidegate` beside this program).
    #[arg(long)]
    service: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ChaosPart {
    /// One of the upstreams: a process that this program starts.
    #[command(hide = true)]
    Upstream {
        /// Its name.
        name: String,
        /// Where it listens.
        port: u16,
        /// Where it writes what it answers.
        ledger: PathBuf,
    },
}

/// Exit code of a program that was interrupted.
const INTERRUPTED: u8 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    let options = ChaosOptions::parse();
    if let Some(ChaosPart::Upstream { name, port, ledger }) = &options.part {
        return match backend::serve(name, *port, ledger).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        };
    }
    // If a signal comes first, dropping the run ends all processes.
    let ran = tokio::select! {
        ran = play(&options) => ran,
        () = run::interrupted() => {
            eprintln!("\nchaos: interrupted; nothing is left running");
            return ExitCode::from(INTERRUPTED);
        }
    };
    match ran.and_then(|ran| ran.map_or(Ok(true), |(run, about)| finish(&options, &run, &about))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("chaos: {error:#}");
    ExitCode::from(2)
}

/// Machine, date, versions and commit of a run.
type About = BTreeMap<String, String>;

/// The run; `None` if only the plan was requested.
async fn play(options: &ChaosOptions) -> Result<Option<(ChaosRun, About)>> {
    let beside = || Ok::<_, std::io::Error>(std::env::current_exe()?.with_file_name("tidegate"));
    let order = ChaosSettings {
        seed: options.seed,
        length: Duration::from_secs(options.seconds),
        kinds: if options.faults.is_empty() {
            FaultKind::ALL.to_vec()
        } else {
            options.faults.clone()
        },
        logs: options.out.join("logs"),
        service: options.service.clone().map_or_else(beside, Ok)?,
    };
    let steps = plan::plan(order.seed, &order.kinds, order.length);
    if options.plan {
        for step in &steps {
            println!("after {} ms: {}", step.before.as_millis(), step.fault);
        }
        return Ok(None);
    }
    if steps.is_empty() {
        bail!("--seconds {}: too short for any fault", options.seconds);
    }
    for (file, target) in [
        (envoy::binary(), "make tools"),
        (envoy::test_module(), "make filter"),
        (order.service.clone(), "cargo build --bin tidegate"),
    ] {
        if !file.exists() {
            bail!("{} is missing: run `{target}`", file.display());
        }
    }
    run::raise_file_limit();
    let say = |line: &str| {
        println!("{line}");
        // A run takes minutes, and people watch it.
        let _ = std::io::stdout().flush();
    };
    // Before the run: the sources may change while it runs.
    let about = about::metadata();
    Ok(Some((conduct(&order, say).await?, about)))
}

/// Writes the report; false when a fault failed.
fn finish(options: &ChaosOptions, run: &ChaosRun, about: &About) -> Result<bool> {
    let out = &options.out;
    fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
    let page = out.join("report.md");
    fs::write(&page, report::page(run, about))?;
    fs::write(out.join("report.json"), serde_json::to_vec_pretty(run)?)?;
    println!("report: {}", page.display());
    let (passed, failed) = report::tally(run);
    if failed > 0 {
        println!("replay: {}", report::replay(run));
    }
    if !report::is_complete(run) {
        println!("not every kind of fault came: give it more seconds");
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0 && report::is_complete(run))
}
