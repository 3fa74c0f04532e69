//! Options of `sweep`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use tidegate_sim::acceptance;

/// Plays random services and stories: are the laws overfitted to the hand-written scenarios?
#[derive(Debug, Parser)]
pub(crate) struct SweepOptions {
    /// Play the acceptance stories: 400 stories of a seed that is derived from the files of `core/src`.
    #[arg(long, conflicts_with_all = ["stories", "first", "seed", "proxies", "axes", "check"])]
    pub(super) accept: bool,
    /// How many stories.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) stories: u32,
    /// Number of the first story.
    #[arg(long, default_value_t = 0)]
    pub(super) first: u32,
    /// Seed of the stories, below 1,000.
    #[arg(long, default_value_t = 1, value_parser = development_seed)]
    pub(super) seed: u64,
    /// Contenders by name, separated by commas, or `all`; by default every untuned one, and with `--accept` Tidegate and no
    /// protection.
    #[arg(long, value_delimiter = ',')]
    pub(super) contenders: Vec<String>,
    /// Proxies and endpoints.
    #[arg(long, value_enum, default_value_t = ProxiesArgument::One)]
    pub(super) proxies: ProxiesArgument,
    /// What stories are made of.
    #[arg(long, value_enum, default_value_t = AxesArgument::Classic)]
    pub(super) axes: AxesArgument,
    /// Threads; the result does not depend on them.
    #[arg(long, default_value_t = 2)]
    pub(super) threads: usize,
    /// Folder for the scores as JSON and the stories as files.
    #[arg(
        long,
        default_value = "out/sim-sweep",
        default_value_if("accept", "true", "out/sim-sweep-accept")
    )]
    pub(super) out: PathBuf,
    /// Check the sweep against `[sweep]` of `sim/targets.toml`, and fail when a bound is missed.
    #[arg(long)]
    pub(super) check: bool,
}

/// [`tidegate_sim::sweep::Proxies`] on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ProxiesArgument {
    /// One proxy and one endpoint.
    One,
    /// 1, 2, 3, 6 or 20 proxies, and 1, 2 or 8 endpoints; of all axes 1 to 20, and 1 to 8.
    Some,
}

/// [`tidegate_sim::sweep::Axes`] on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum AxesArgument {
    /// Size, pace, objective, load, incident, workers and retries.
    Classic,
    /// Also bodies, uploads, stalls, crowds and callers without value.
    All,
}

/// A seed to develop with.
fn development_seed(text: &str) -> Result<u64> {
    let seed = text.parse()?;
    if seed >= acceptance::FIRST_SEED {
        bail!(
            "expected a seed below {}: from there on they are for acceptance, and `--accept` takes the one that follows \
             from core/src",
            acceptance::FIRST_SEED
        );
    }
    Ok(seed)
}
