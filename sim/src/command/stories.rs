//! Stories of sweeps: saved, played and judged.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::sweep::PlayedStory;
use tidegate_sim::targets::TargetVerdict;
use tidegate_sim::world;

use super::jobs;

/// Writes each story as a scenario's file.
pub(super) fn save_stories(folder: &Path, stories: &[Scenario]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    for story in stories {
        let path = folder.join(format!("{}.toml", story.name));
        save(&path, story.text()?.as_bytes())?;
    }
    Ok(())
}

/// Plays every story with every contender.
pub(super) fn play(
    stories: &[Scenario],
    contenders: &[ContenderKind],
    threads: usize,
) -> Result<Vec<PlayedStory>> {
    let jobs = jobs::all(stories, contenders, 1);
    let scores = jobs::play(&jobs, threads, |job| {
        let run = world::play(job.scenario, job.contender);
        let run = run.with_context(|| format!("story {}", job.scenario.name))?;
        anyhow::Ok((job.contender.name, run.figures.score))
    })?;
    let of_each = scores.chunks(contenders.len().max(1));
    let played = stories.iter().zip(of_each).map(|(story, scores)| {
        let scores = scores.iter().copied();
        PlayedStory::of(&story.name, &story.title, scores).on(story)
    });
    Ok(played.collect())
}

/// Prints the verdicts and their count; a failure where a bound is missed.
pub(super) fn closing(verdicts: &[TargetVerdict]) -> ExitCode {
    for verdict in verdicts {
        let word = if verdict.is_met { "passed" } else { "FAILED" };
        out!("{word}  {}: {}", verdict.target, verdict.found);
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.is_met).count();
    out!("{} passed, {failed} failed", verdicts.len() - failed);
    if failed > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

pub(super) fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("write {}", path.display()))
}
