//! The demo: the same load on an Envoy with the filter and on one without.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use tidegate_testbed::demo::{self, DemoResult, Story, phases, report};
use tidegate_testbed::{about, envoy, run};

/// Tells one story on real sockets: steady, overload, outage, recovery, a pushed configuration.
#[derive(Debug, Parser)]
struct DemoOptions {
    /// Length of the story in seconds, 10 to 600.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(10..=600))]
    seconds: u64,
    /// Fail unless the side with the filter does what it promises.
    #[arg(long)]
    check: bool,
    /// Folder for `report.html`, with its data as `report.json`.
    #[arg(long, default_value = "out/demo")]
    out: PathBuf,
    /// Also write the main chart as an SVG file.
    #[arg(long)]
    chart: Option<PathBuf>,
}

/// Exit code of a program that was interrupted.
const INTERRUPTED: u8 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    let options = DemoOptions::parse();
    // If a signal comes first, dropping the run ends both Envoys.
    let told = tokio::select! {
        told = tell(&options) => told,
        () = run::interrupted() => {
            eprintln!("\ndemo: interrupted; nothing is left running");
            return ExitCode::from(INTERRUPTED);
        }
    };
    match told.and_then(|told| finish(&options, &told)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn tell(options: &DemoOptions) -> Result<DemoResult> {
    for (file, target) in [
        (envoy::binary(), "make tools"),
        (envoy::release_module(), "make filter"),
    ] {
        if !file.exists() {
            bail!("{} is missing: run `{target}`", file.display());
        }
    }
    run::raise_file_limit();
    let story = Story::told_in(Duration::from_secs(options.seconds))?;
    println!(
        "One story of {} seconds on two Envoys: one with Tidegate, one without; each in front of a service for {:.0} requests a second.\n",
        options.seconds,
        story.capacity()
    );
    Ok(demo::tell(story).await?)
}

/// Prints the table and writes the files; false when `--check` found a fault.
fn finish(options: &DemoOptions, told: &DemoResult) -> Result<bool> {
    println!("\nRates are per second.\n{}", told.table().text());
    println!(
        "good answers in all: {:.0} with Tidegate, {:.0} without",
        told.good(&told.with),
        told.good(&told.without)
    );
    let report = report::page(told, &about::metadata()).write(&options.out, "report")?;
    if let Some(chart) = &options.chart {
        fs::write(chart, demo::main_chart(told).file())
            .with_context(|| format!("write {}", chart.display()))?;
        println!("chart:  {}", chart.display());
    }
    println!("report: {}", report.display());
    let (with, without) = told.figures();
    let faults = phases::faults(&with, &without);
    // First the reason, because it makes the faults of little weight.
    for one in &told.disturbed {
        println!(
            "the machine disturbed the demo, in the repetitions too, so that these figures say little: {one}"
        );
    }
    faults
        .iter()
        .for_each(|fault| println!("check failed: {fault}"));
    // Flush everything before the exit code.
    let _ = std::io::stdout().flush();
    Ok(faults.is_empty() || !options.check)
}
