//! `ablate`: what each mechanism of the laws is worth, by playing without it.

mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::json;
use tidegate_core::ablation::{Mechanism, Mechanisms, play_without};
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::scenario::{self, Scenario};
use tidegate_sim::sweep::{self, PlayedStory, Proxies};
use tidegate_sim::{tidegate, world};

use super::{chosen, jobs};
use jobs::PlayJob;
use table::{AblationRun, AblationTable, MechanismRow, StoryGroup};

/// Plays scenarios and random stories, once with all mechanisms and once without each of them.
#[derive(Debug, Parser)]
pub(crate) struct AblateOptions {
    /// Mechanisms by name, separated by commas; `all` for every one.
    #[arg(long, default_value = "all", value_delimiter = ',')]
    mechanisms: Vec<String>,
    /// Turn them off all at once: two mechanisms may stand in for one another.
    #[arg(long)]
    together: bool,
    /// Scenarios by name, separated by commas; `all` for every one in the folder.
    #[arg(long, default_value = "all", value_delimiter = ',')]
    scenarios: Vec<String>,
    /// Scenarios that are not played, separated by commas.
    #[arg(long, value_delimiter = ',')]
    skip: Vec<String>,
    /// Runs of each scenario, with seeds of their own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Random stories with one proxy and one endpoint, and as many with several.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    stories: u32,
    /// What stories are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; the result does not depend on them.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// The commit that is written above the table.
    #[arg(long, default_value = "unknown")]
    commit: String,
    /// Folder for `ablation.md` and `ablation.json`.
    #[arg(long, default_value = "out/sim-ablate")]
    out: PathBuf,
}

pub(crate) fn run(options: &AblateOptions) -> Result<ExitCode> {
    let mechanisms = chosen("mechanism", &options.mechanisms, Mechanism::ALL, |m| {
        m.name()
    })?;
    let (groups, scenarios) = cast(options)?;
    fs::create_dir_all(&options.out).with_context(|| format!("make {}", options.out.display()))?;
    let jobs = jobs(&groups, &scenarios, options.seeds);
    let base = play(&jobs, &groups, &scenarios, &[], options.threads)?;
    let mut played = base.len();
    let mut table = AblationTable::new(head(options, &groups), &base);
    let sets: Vec<&[Mechanism]> = if options.together {
        vec![&mechanisms]
    } else {
        mechanisms.chunks(1).collect()
    };
    for off in sets {
        // A run that never asked about a mechanism is the same without it.
        let concerned: Vec<PlayJob<'_>> = jobs
            .iter()
            .zip(&base)
            .filter(|(_, outcome)| off.iter().any(|one| outcome.asked.contains(*one)))
            .map(|(job, _)| *job)
            .collect();
        let without = play(&concerned, &groups, &scenarios, off, options.threads)?;
        played += without.len();
        let row = MechanismRow::new(off, &base, &without);
        out!("{}", row.line());
        table.rows.push(row);
        // What is known so far is kept if the run is interrupted.
        write(&options.out, &table)?;
    }
    out!("table: {}", options.out.join("ablation.md").display());
    out!("{played} passed, 0 failed");
    Ok(ExitCode::SUCCESS)
}

/// All scenarios and stories that are played, with their groups.
fn cast(options: &AblateOptions) -> Result<(Vec<StoryGroup>, Vec<Scenario>)> {
    let known = Scenario::read_folder(&scenario::folder())?;
    chosen("skip", &options.skip, &known, |s| &s.name)?;
    let mut scenarios = chosen("scenario", &options.scenarios, &known, |s| &s.name)?;
    scenarios.retain(|scenario| !options.skip.contains(&scenario.name));
    if scenarios.is_empty() {
        bail!("scenarios: all are skipped, expected at least one");
    }
    let mut groups = vec![StoryGroup::Scenarios; scenarios.len()];
    for (group, proxies) in [
        (StoryGroup::OneProxy, Proxies::One),
        (StoryGroup::Several, Proxies::Some),
    ] {
        for number in 0..options.stories {
            groups.push(group);
            scenarios.push(sweep::story(options.seed, number, proxies));
        }
    }
    Ok((groups, scenarios))
}

/// Every run; a random story is played once, as there are many of them.
fn jobs<'a>(groups: &[StoryGroup], scenarios: &'a [Scenario], seeds: u64) -> Vec<PlayJob<'a>> {
    const KIND: &ContenderKind = &tidegate::KIND;
    let of_one = |(group, scenario): (&StoryGroup, &'a Scenario)| {
        let seeds = if *group == StoryGroup::Scenarios {
            seeds
        } else {
            1
        };
        (0..seeds).map(move |repetition| PlayJob {
            scenario,
            contender: KIND,
            repetition,
        })
    };
    groups.iter().zip(scenarios).flat_map(of_one).collect()
}

fn play(
    jobs: &[PlayJob<'_>],
    groups: &[StoryGroup],
    scenarios: &[Scenario],
    off: &[Mechanism],
    threads: usize,
) -> Result<Vec<AblationRun>> {
    let off = off.iter().fold(Mechanisms::NONE, |set, one| set.with(*one));
    jobs::play(jobs, threads, |job| {
        let scenario = &Scenario {
            seed: job.scenario.seed.wrapping_add(job.repetition),
            ..job.scenario.clone()
        };
        let (run, asked) = play_without(off, || world::play(scenario, job.contender));
        let figures = run
            .with_context(|| format!("story {}", scenario.name))?
            .figures;
        let group = scenarios
            .iter()
            .position(|one| one.name == scenario.name)
            .and_then(|index| groups.get(index));
        let played = PlayedStory::of(&scenario.name, "", [(job.contender.name, figures.score)]);
        let expected = scenario.expected_in_sim();
        anyhow::Ok(AblationRun {
            group: group.copied().unwrap_or(StoryGroup::Scenarios),
            story: scenario.name.clone(),
            repetition: job.repetition,
            score: played.score(job.contender.name).unwrap_or(f64::NAN),
            expected: expected
                .into_iter()
                .map(|(measure, range)| (measure, range, figures.measure(measure)))
                .collect(),
            asked,
        })
    })
}

/// What was played, for the text above the table.
fn head(options: &AblateOptions, groups: &[StoryGroup]) -> String {
    let scenarios = groups
        .iter()
        .filter(|group| **group == StoryGroup::Scenarios);
    let left_out = if options.skip.is_empty() {
        "none left out".to_owned()
    } else {
        format!("left out: {}", options.skip.join(", "))
    };
    format!(
        "`make sim-ablate` at commit {}: {} scenarios (seeds of each: {}; {left_out}), {} random stories with one proxy and \
         {} with several (seed {}, numbers from 0).",
        options.commit,
        scenarios.count(),
        options.seeds,
        options.stories,
        options.stories,
        options.seed,
    )
}

fn write(folder: &Path, table: &AblationTable) -> Result<()> {
    save(&folder.join("ablation.md"), table.markdown().as_bytes())?;
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "head": table.head,
        "means": table.means,
        "mechanisms": table.rows,
    });
    let text = serde_json::to_vec_pretty(&document)?;
    save(&folder.join("ablation.json"), &text)
}

fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(off: &[Mechanism]) -> f64 {
        let scenarios = [crate::command::scenario("bursts").unwrap()];
        let groups = [StoryGroup::Scenarios];
        let jobs = jobs(&groups, &scenarios, 1);
        let played = play(&jobs, &groups, &scenarios, off, 1).unwrap();
        played[0].score
    }

    #[test]
    fn what_is_turned_off_is_missed_and_is_on_again_in_the_next_run() {
        let with = score(&[]);
        assert!(score(&[Mechanism::BurstWait]) < with - 0.1);
        assert!((score(&[]) - with).abs() < f64::EPSILON);
    }
}
