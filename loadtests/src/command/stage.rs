//! `stage`: upstream, Envoy and switches for k6 by hand.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tidegate_loadtests::stage::{LoadStage, faults};
use tidegate_testbed::run;
use tidegate_testbed::variant::Variant;

/// Start an upstream of known capacity behind an Envoy, for manual runs of k6, until interrupted.
#[derive(Debug, Args)]
pub(crate) struct StageOptions {
    /// The contender that protects the upstream.
    #[arg(long, default_value = "tidegate")]
    contender: String,
}

/// Prints the settings of the scenarios and waits for the end.
pub(crate) async fn run(options: &StageOptions) -> Result<ExitCode> {
    run::raise_file_limit();
    let variant: Variant = options.contender.parse()?;
    let stage = LoadStage::start(variant).await?;
    let (quantile, latency) = stage.objective();
    println!("export BASE_URL={}", stage.base_url());
    println!(
        "export FAULT_URL={}  # PUT to /{}",
        stage.fault_url(),
        faults().join(", /")
    );
    println!(
        "export CAPACITY={} SLO_MS={} SLO_QUANTILE={quantile}",
        stage.capacity(),
        latency.as_millis()
    );
    run::interrupted().await;
    Ok(ExitCode::SUCCESS)
}
