//! Measures what load reports are worth to a balancer, with real Envoys.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use tidegate_testbed::balance::{
    BalanceContender, BalancePlan, BalanceReport, DEFAULT_LOAD, play, table,
};
use tidegate_testbed::{about, envoy, run};

/// Compares ways to spread load over four servers, one of which is slow.
#[derive(Debug, Parser)]
struct BalanceOptions {
    /// Share of the servers' capacity that is asked for.
    #[arg(long, default_value_t = DEFAULT_LOAD)]
    load: f64,
    /// Length of each run, in seconds. The first half is not counted.
    #[arg(long, default_value_t = 40)]
    seconds: u64,
    /// Runs of each; the table shows medians.
    #[arg(long, default_value_t = 1)]
    repeat: u64,
    /// Only the ways whose names have this text, such as "load reports".
    #[arg(long, default_value = "")]
    only: String,
    /// File for the figures.
    #[arg(long, default_value = "out/bench-balance.json")]
    out: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    // If a signal comes first, dropping the run ends all Envoys.
    let ended = tokio::select! {
        ended = balance(BalanceOptions::parse()) => ended,
        () = run::interrupted() => Err(anyhow::anyhow!("interrupted; nothing is left running")),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("balance: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn balance(options: BalanceOptions) -> Result<()> {
    if !(0.05..=5.0).contains(&options.load) {
        bail!(
            "--load: found {}, expected a number in 0.05..=5",
            options.load
        );
    }
    if !(4..=600).contains(&options.seconds) {
        bail!(
            "--seconds: found {}, expected a number in 4..=600",
            options.seconds
        );
    }
    for (file, target) in [
        (envoy::binary(), "tools"),
        (envoy::native_module(), "native"),
    ] {
        if !file.exists() {
            bail!("{} is missing: run `make {target}`", file.display());
        }
    }
    run::raise_file_limit();
    let length = Duration::from_secs(options.seconds);
    let mut plan = BalancePlan {
        load: options.load,
        length,
        warm_up: length / 2,
        objective: Duration::from_millis(300),
        seed: 1,
    };
    let mut runs = Vec::new();
    for seed in 1..=options.repeat {
        plan.seed = seed;
        let is_chosen = |it: &BalanceContender| it.name().contains(&options.only);
        for contender in BalanceContender::ALL.into_iter().filter(is_chosen) {
            let figures = play(contender, &plan).await?;
            eprintln!(
                "{}: {:.0} good answers a second of {:.0} requests",
                contender.name(),
                figures.goodput,
                plan.rate()
            );
            runs.push(figures);
        }
    }
    println!("{}", table(&runs).text());
    let report = BalanceReport {
        metadata: about::metadata(),
        plan,
        runs,
    };
    if let Some(folder) = options.out.parent() {
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    let text = serde_json::to_string_pretty(&report)?;
    fs::write(&options.out, text).with_context(|| format!("write {}", options.out.display()))?;
    println!("figures: {}", options.out.display());
    Ok(())
}
