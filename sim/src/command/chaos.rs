//! `chaos`: stories of faults, each played with them and without.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use tidegate_sim::compare::OURS;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::sweep::chaos::{judge, story};

use super::{jobs, stories};

/// Plays stories of faults: crashes, pushes, clock steps, late workers, proxies replaced, a service that is down or slow.
#[derive(Debug, Parser)]
pub(crate) struct ChaosSweepOptions {
    /// Seed of the stories.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many stories.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    stories: u32,
    /// Number of the first story.
    #[arg(long, default_value_t = 0)]
    first: u32,
    /// Play the story in this file instead of random ones.
    #[arg(long, conflicts_with_all = ["seed", "stories", "first"])]
    story: Option<PathBuf>,
    /// Threads; the result does not depend on them.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Folder for the stories that fail, as files.
    #[arg(long, default_value = "out/sim-chaos")]
    out: PathBuf,
}

fn stories(options: &ChaosSweepOptions) -> Result<Vec<Scenario>> {
    if let Some(path) = &options.story {
        return Ok(vec![Scenario::read(path)?]);
    }
    let numbers = options.first..options.first.saturating_add(options.stories);
    Ok(numbers.map(|number| story(options.seed, number)).collect())
}

pub(crate) fn run(options: &ChaosSweepOptions) -> Result<ExitCode> {
    let stories = stories(options)?;
    let kinds = [super::contender(OURS)?];
    let jobs = jobs::all(&stories, &kinds, 1);
    let judged = jobs::play(&jobs, options.threads, |job| {
        judge::judge(job.scenario, job.contender)
            .with_context(|| format!("story {}", job.scenario.name))
    })?;
    let mut failed = Vec::new();
    for ((story, number), faults) in stories.iter().zip(options.first..).zip(&judged) {
        if faults.is_empty() {
            continue;
        }
        out!("FAILED  {}: {}", story.name, story.title);
        faults.iter().for_each(|fault| out!("        {fault}"));
        out!(
            "        again: make sim ARGS=\"chaos --seed {} --first {number} --stories 1\"",
            options.seed
        );
        failed.push(story.clone());
    }
    stories::save_stories(&options.out, &failed)?;
    if !failed.is_empty() {
        let folder = options.out.display();
        out!("to see one: make sim ARGS=\"run {folder}/NAME.toml\"");
    }
    out!(
        "{} passed, {} failed",
        stories.len() - failed.len(),
        failed.len()
    );
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
